# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules that edit a daemon's configuration file do in their main()."""

from __future__ import annotations

import typing as t

from .apply import Host, Outcomes, build_result
from .errors import ConfigError
from .files import FilesError
from .redact import list_secrets, mask_text
from .validate import find_program

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

#: Brings the files to the state that a module's parameters describe; raises ConfigError or FilesError.
Act = t.Callable[[t.Mapping[str, t.Any], Host], Outcomes]


def run(module: AnsibleModule, program: str, act: Act) -> None:
    """Act on the parameters of *module* for the daemon *program*, and exit with the result or fail with one sentence."""
    params = module.params
    module.no_log_values.update(list_secrets(params["settings"]))
    host = Host(
        state_dir=params["state_dir"],
        check_mode=module.check_mode,
        keep_backup=params["backup"],
        binary=find_program(params[f"{program}_binary"], program),
        validate=params["validate"],
        workdir=module.tmpdir,
    )
    try:
        outcomes = list(act(params, host))
    except (ConfigError, FilesError) as exc:
        module.fail_json(msg=mask_text(str(exc)))
    for _daemon, outcome in outcomes:
        for warning in outcome.warnings:
            module.warn(mask_text(warning))
    module.exit_json(**build_result(outcomes, module._diff))
