# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that decide on the controller; the module of the same name reads and writes on the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.controller import Send
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.redact import mask_text
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.yaml_nodes import Syntax
from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _yaml


class Controller(Protocol):
    """The controller's half, a file of module_utils."""

    def run(
        self, arguments: Mapping[str, Any], syntax: Syntax, send: Send, check_mode: bool, diff: bool
    ) -> dict[str, Any]:
        """Bring one node to what the arguments request; return the result, with the difference if *diff*. Raises ConfigError."""


class _NoAnswer(Exception):
    """The node's half failed with this result."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class ControllerAction(ActionBase):
    """Reads a node's files, decides, and has the node write them."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    #: The module with its collection, its arguments, and the controller's half.
    MODULE: str
    ARGUMENTS: dict[str, Any]
    CONTROLLER: Controller

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Bring the files of one node to what the arguments request."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if _yaml.MISSING_LIBRARY is not None:
            raise AnsibleActionFail(
                f"ruamel.yaml cannot be imported where Ansible runs ({_yaml.MISSING_LIBRARY}): install it for the Python of Ansible, as in"
                " pip install 'ruamel.yaml>=0.17.21'."
            )
        _unused, arguments = self.validate_argument_spec(argument_spec=self.ARGUMENTS)

        def send(request: dict[str, Any]) -> dict[str, Any]:
            reported = self._execute_module(
                module_name=self.MODULE, module_args={"_request": request}, task_vars=task_vars, wrap_async=False
            )
            if "answer" not in reported:
                raise _NoAnswer({key: value for key, value in reported.items() if key != "invocation"})
            answer: dict[str, Any] = reported["answer"]
            return answer

        try:
            done = self.CONTROLLER.run(arguments, _yaml.RoundTrip(), send, self._task.check_mode, self._task.diff)
            return {**result, **done, "warnings": [mask_text(warning) for warning in done["warnings"]]}
        except ConfigError as error:
            raise AnsibleActionFail(mask_text(str(error))) from error
        except _NoAnswer as none:
            return {**result, **none.result, "failed": True}
