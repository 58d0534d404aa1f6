# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that hold leases: they name the run to the module of the same name, and find runs of this controller that have ended."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.holder import (
    describe_holder,
    has_ended,
    read_start,
)


class LeaseAction(ActionBase):
    """Runs the module as this run, and again if it was refused because of runs that have ended."""

    _supports_check_mode = True
    _supports_async = False

    #: The module with its collection.
    MODULE: str

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Hold or release leases as the task's arguments request."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        # A worker of ansible-playbook runs this; its parent lives as long as the run.
        holder = describe_holder(os.getppid())

        def call(ended: list[str]) -> dict[str, Any]:
            arguments = {**self._task.args, "holder": holder, "ended": ended}
            reported: dict[str, Any] = self._execute_module(
                module_name=self.MODULE, module_args=arguments, task_vars=task_vars, wrap_async=False
            )
            return reported

        reported = call([])
        holders = [str(each["holder"]) for each in reported.get("refused") or []]
        ended = [each for each in holders if has_ended(each, holder, read_start)]
        return {**result, **(call(ended) if ended else reported)}
