# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules for configuration files of container runtimes have in common.  Private to this collection.

Their other half is the documentation fragment `runtime_config`.
"""

from __future__ import annotations

import typing as t

from .._files import FilesError
from .apply import Host, answer
from .errors import ConfigError
from .masking import secret_words

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from .apply import Steps

ARGUMENTS: dict[str, t.Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "runtime_name": {"type": "str", "default": "nvidia"},
    "runtime_path": {"type": "path", "default": "/usr/bin/nvidia-container-runtime"},
    "set_default": {"type": "bool"},
    "enable_cdi": {"type": "bool"},
    "validate": {"type": "bool", "default": True},
    "settings": {"type": "dict", "default": {}},
    "backup": {"type": "bool", "default": True},
    "state_dir": {"type": "path", "default": "/var/lib/gpu-kubernetes"},
}

#: Makes of a module's parameters what is to be done, and the daemon's program on this node, if there is one.
Interpreter = t.Callable[[t.Mapping[str, t.Any]], "tuple[Steps, str | None]"]


def run(module: AnsibleModule, interpret: Interpreter) -> None:
    """Do what the parameters of *module* ask, and exit or fail with the answer."""
    module.no_log_values.update(secret_words(module.params["settings"]))
    try:
        result, warnings = _act(module, interpret)
    except (ConfigError, FilesError) as exc:
        module.fail_json(msg=str(exc))
    for warning in warnings:
        module.warn(warning)
    module.exit_json(**result)


def _act(module: AnsibleModule, interpret: Interpreter) -> tuple[dict[str, t.Any], list[str]]:
    params = module.params
    steps, binary = interpret(params)
    host = Host(
        state_dir=params["state_dir"],
        check_mode=module.check_mode,
        keep_copy=params["backup"],
        binary=binary if params["validate"] else None,
        workdir=module.tmpdir,
    )
    done = list(steps(host))
    return answer(done, module._diff), [warning for _daemon, outcome in done for warning in outcome.warnings]
