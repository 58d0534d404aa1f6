# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules that prove nodes by pods have in common.

Their other half is the documentation fragment ``smoke_test``.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Callable, Mapping, NoReturn

from .api import ApiError
from .smoke import Smoke

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from .smoking import Outcome

ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "nodes": {"type": "list", "elements": "str"},
    "image": {"type": "str"},
    "image_pull_policy": {"type": "str", "choices": ["Always", "IfNotPresent", "Never"], "default": "IfNotPresent"},
    "image_pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "command": {"type": "list", "elements": "str", "default": []},
    "args": {"type": "list", "elements": "str", "default": []},
    "expected_output": {"type": "str", "default": "Test PASSED"},
    "runtime_class": {"type": "str", "default": ""},
    "namespace": {"type": "str", "default": "default"},
    "tolerations": {"type": "list", "elements": "dict", "default": []},
    "run_as_user": {"type": "int", "default": 65534},
}
REQUIRED_IF = [("state", "present", ("nodes", "image"))]

_OF_THE_POD = (
    *("image", "image_pull_policy", "image_pull_secrets", "command", "args", "expected_output", "runtime_class"),
    *("namespace", "tolerations", "run_as_user", "timeout"),
)


def smoke_of(params: Mapping[str, Any], **more: Any) -> Smoke:
    """Make what to run of a module's parameters, which include a ``timeout``, and of what only that module has."""
    return Smoke(**{name: params[name] for name in _OF_THE_POD}, **more)


def run(module: AnsibleModule, act: Callable[[], Outcome[Any]]) -> NoReturn:
    """Act, and exit or fail with the answer."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        outcome = act()
    except ApiError as error:
        module.fail_json(msg=str(error))
        raise
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(**outcome.as_dict())
    raise AssertionError("exit_json returned")


def _stop(*_details: object) -> NoReturn:
    """Let a terminated run pass through its cleaning up."""
    raise SystemExit("terminated")
