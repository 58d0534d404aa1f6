# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that decide on the controller; the module of the same name reads and writes on the node. Private to this collection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.errors import EditError
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.scalars import Syntax
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.steps import Ask
from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _yaml


class Face(Protocol):
    """The controller's half, a file of module_utils."""

    ARGUMENTS: dict[str, Any]

    def run(self, arguments: Mapping[str, Any], syntax: Syntax, ask: Ask, check_mode: bool) -> dict[str, Any]:
        """Do what the arguments ask of one node; return the result. Raises EditError."""


class _NoAnswer(Exception):
    """The node's half failed; `said` is all that Ansible knows of it."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__()
        self.said = said


class TwoHalves(ActionBase):
    """Asks the node for its files, decides, and has them written."""

    _requires_connection = True
    _supports_check_mode = True
    _supports_async = False

    #: The module with its collection, and the controller's half.
    NODE_SIDE: str
    FACE: Face

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Bring the files of one node to what the arguments ask."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if _yaml.MISSING_LIBRARY is not None:
            raise AnsibleActionFail(
                f"ruamel.yaml cannot be imported where Ansible runs ({_yaml.MISSING_LIBRARY}): install it for the Python of Ansible, as in"
                " pip install 'ruamel.yaml>=0.17.21'."
            )
        _unused, arguments = self.validate_argument_spec(argument_spec=self.FACE.ARGUMENTS)

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            said = self._execute_module(
                module_name=self.NODE_SIDE, module_args={"_request": request}, task_vars=task_vars, wrap_async=False
            )
            if "answer" not in said:
                raise _NoAnswer({key: value for key, value in said.items() if key != "invocation"})
            answer: dict[str, Any] = said["answer"]
            return answer

        try:
            return {**result, **self.FACE.run(arguments, _yaml.RoundTrip(), ask, self._task.check_mode)}
        except EditError as error:
            raise AnsibleActionFail(str(error)) from error
        except _NoAnswer as none:
            return {**result, **none.said, "failed": True}
