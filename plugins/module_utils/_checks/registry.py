# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry: all checks, from the hardware to the pod and its monitoring."""

from __future__ import annotations

from typing import Mapping, Sequence

from .driver import DRIVER, LIBRARY, TOOLKIT
from .hardware import HARDWARE
from .kernel import KERNEL
from .model import LAYERS, Check
from .monitoring import MONITORING
from .node_services import KUBELET, RUNTIME
from .vendors import VENDOR_CHECKS
from .workloads import PLUGIN, POD, SCHEDULER

CHECKS: tuple[Check, ...] = (
    *HARDWARE,
    *KERNEL,
    *VENDOR_CHECKS,
    *DRIVER,
    *LIBRARY,
    *TOOLKIT,
    *RUNTIME,
    *KUBELET,
    *PLUGIN,
    *SCHEDULER,
    *POD,
    *MONITORING,
)
BY_ID: Mapping[str, Check] = {check.id: check for check in CHECKS}


class UnknownCheckError(ValueError):
    """A name is neither a check nor a layer; the message is one sentence."""


def select_checks(names: Sequence[str], skip: Sequence[str] = ()) -> tuple[Check, ...]:
    """The checks with these ids or layers, all of them without *names*, and without those of *skip*. Raises UnknownCheckError."""
    known = {*BY_ID, *LAYERS}
    for name in (*names, *skip):
        if name not in known:
            raise UnknownCheckError(
                f"There is no check or layer {name}; use a layer ({', '.join(LAYERS)}) or an id of the guide."
            )
    return tuple(
        check
        for check in CHECKS
        if (not names or check.id in names or check.layer in names) and check.id not in skip and check.layer not in skip
    )
