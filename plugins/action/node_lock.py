# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action node_lock: names the run to the module."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.gpu.kubernetes.plugins.plugin_utils._lease_action import call_as_run


class ActionModule(ActionBase):
    """Holds or releases as this run."""

    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Hold or release the lock as the task's arguments request."""
        result: dict[str, Any] = super().run(tmp, task_vars)

        def call(**added: Any) -> dict[str, Any]:
            reported: dict[str, Any] = self._execute_module(
                module_args={**self._task.args, **added}, task_vars=task_vars
            )
            return reported

        return {**result, **call_as_run(call)}
