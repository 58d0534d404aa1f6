# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that hold leases: they name the run to the module of the same name, and find runs of this controller that have ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.holder import (
    describe_holder,
    has_ended,
    read_start,
)


def call_as_run(call: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    """Return what *call*, the module, reports for this run, or at the second call if it was refused because of runs that have ended."""
    # A worker of ansible-playbook runs this; its parent lives as long as the run.
    holder = describe_holder(os.getppid())
    reported = call(holder=holder, ended=[])
    holders = [str(each["holder"]) for each in reported.get("refused") or []]
    ended = [each for each in holders if has_ended(each, holder, read_start)]
    return call(holder=holder, ended=ended) if ended else reported
