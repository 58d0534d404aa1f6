# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Action show_report: prints a report in colour, not as a data structure."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation import render as allocation
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import render as cost
from ansible_collections.gpu.kubernetes.plugins.module_utils._lines import Line
from ansible_collections.gpu.kubernetes.plugins.module_utils._report import render
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._show import show_lines


class ActionModule(ActionBase):
    """Runs on the controller only."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Print the report and return nothing but that nothing changed."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _unused, arguments = self.validate_argument_spec(
            argument_spec={
                "report": {"type": "dict"},
                "path": {"type": "str", "default": ""},
                "hosts": {"type": "list", "elements": "str"},
                "tested": {"type": "list", "elements": "str"},
                "allocation": {"type": "dict"},
                "lines": {"type": "list", "elements": "str"},
                "cost": {"type": "dict"},
                "format": {"type": "str", "default": "table", "choices": list(allocation.FORMATS)},
                "details": {"type": "bool", "default": False},
                "bars": {"type": "bool", "default": True},
            },
            required_one_of=[["report", "allocation", "cost", "lines"]],
            mutually_exclusive=[["report", "allocation", "cost", "lines"]],
        )
        show_lines(_lines(arguments))
        result["changed"] = False
        return result


def _lines(arguments: dict[str, Any]) -> list[Line]:
    if arguments["lines"] is not None:
        return [(line, "") for line in arguments["lines"]]
    form, details, bars = (arguments[name] for name in ("format", "details", "bars"))
    what, source = "the allocation", allocation.SOURCE
    try:
        if arguments["cost"] is not None:
            what, source = "the hours", "the report of gpu_cost"
            return cost.render_lines(arguments["cost"], form)
        if arguments["allocation"] is not None:
            return allocation.render_lines(arguments["allocation"], form, details, bars)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleActionFail(f"show_report cannot read {what} ({error!r}); give it {source}.") from error
    return render.render_lines(**{name: arguments[name] for name in ("report", "path", "hosts", "tested")})
