# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action node_leases: names the run to the module."""

from __future__ import annotations

from functools import partial
from typing import Any

from ansible_collections.gpu.kubernetes.plugins.modules import node_leases
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._api_action import ApiAction
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._lease_action import call_as_run


class ActionModule(ApiAction):
    """Holds or releases as this run."""

    _supports_async = False

    MODULE = node_leases

    def call(self, task_vars: dict[str, Any] | None, **added: Any) -> dict[str, Any]:
        """Return the result of the module for this run."""
        return call_as_run(partial(super().call, task_vars, **added))
