# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions of modules that talk to the API server: on the controller, the module's code runs in the process of the task.

Ansible imports an action once for a run, before it starts the processes of tasks. A module in its own process imports the kubernetes library and
this collection again for each task, which takes longer than its requests.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Protocol

from ansible import constants
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ansible_collections.gpu.kubernetes.plugins import filter as filters
from ansible_collections.gpu.kubernetes.plugins.module_utils import _image, _refusals, _text
from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility import check
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import IMPORT_ERROR
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes import gpu_labels
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing import plugin_config

#: All filters, which Ansible loads to find one, and what those of many tasks import. Ansible compiles a collection's files in each process that
#: imports them; a process of a task, begun after this import, has them.
PRELOADED = (
    *(_image, _refusals, _text, check, gpu_labels, plugin_config),
    *(importlib.import_module(f"{filters.__name__}.{each.name}") for each in pkgutil.iter_modules(filters.__path__)),
)


class ApiModule(Protocol):
    """A module of this collection; RULES, where it has them, are those between its arguments, such as required_if."""

    ARGUMENTS: dict[str, Any]

    def run(self, module: Module) -> None:
        """Do the module's work, and end it with exit_json or fail_json."""


class _Ended(BaseException):
    """The module has ended with this result; like SystemExit, no handler of errors catches it."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class _Call:
    """What the module uses of AnsibleModule."""

    def __init__(self, params: dict[str, Any], check_mode: bool) -> None:
        self.params, self.check_mode = params, check_mode
        self._warnings: list[str] = []

    def warn(self, warning: str) -> None:
        """Add a warning to the result."""
        self._warnings.append(warning)

    def _result(self) -> dict[str, Any]:
        return {"warnings": self._warnings} if self._warnings else {}

    def fail_json(self, msg: str, **result: Any) -> NoReturn:
        """End with a failure."""
        raise _Ended({**result, **self._result(), "msg": msg, "failed": True})

    def exit_json(self, **result: Any) -> NoReturn:
        """End with this result."""
        raise _Ended({**result, **self._result()})


class ApiAction(ActionBase):
    """Runs the module in this process if it is for this machine, and as any other module elsewhere."""

    _supports_check_mode = True
    _supports_async = True

    MODULE: ApiModule

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the module with the task's arguments."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        return {**result, **self.call(task_vars)}

    def call(self, task_vars: dict[str, Any] | None, **added: Any) -> dict[str, Any]:
        """Return the result of the module, which gets the *added* arguments besides those of the task."""
        if self._is_for_this_process():
            _unused, arguments = self.validate_argument_spec(
                argument_spec=self.MODULE.ARGUMENTS, **getattr(self.MODULE, "RULES", {})
            )
            return run_module(self.MODULE, {**arguments, **added}, self._task.check_mode)
        reported: dict[str, Any] = self._execute_module(
            module_args={**self._task.args, **added}, task_vars=task_vars, wrap_async=self._task.async_val
        )
        return reported

    def _is_for_this_process(self) -> bool:
        """Whether a process of the module would have the same machine, user and environment, and this one has the library."""
        return (
            IMPORT_ERROR is None
            and self._connection.transport == "local"
            and self._connection.become is None
            and not any(self._task.environment or ())
            and not self._task.async_val
        )


def run_module(module: ApiModule, arguments: Mapping[str, Any], check_mode: bool) -> dict[str, Any]:
    """Return the result of a module for validated arguments as its process would send it: plain JSON without secrets."""
    params = json.loads(json.dumps(arguments, default=str))
    # The kubernetes library writes keys of a kubeconfig to files, and removes them at the end of a process, which a process of a task skips.
    # Ansible removes this folder, which only its user can read, at the end of the run.
    tempfile.tempdir = constants.DEFAULT_LOCAL_TMP
    try:
        module.run(_Call(params, check_mode))
    except _Ended as ended:
        secrets = {
            text for name, rule in module.ARGUMENTS.items() if rule.get("no_log") for text in _texts(params[name])
        }
        result: dict[str, Any] = remove_values(json.loads(json.dumps(ended.result, default=str)), secrets)
        return result
    raise AssertionError("a module ends with exit_json or fail_json")


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, without empty ones."""
    if isinstance(value, str):
        yield from [value] if value else []
    elif isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)
