#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_packages
short_description: Install or remove packages with nothing but the host's package manager
version_added: 0.1.0
description:
  - Installs and removes packages with apt, dnf, zypper or pacman.
  - Unlike M(ansible.builtin.apt) and M(ansible.builtin.dnf) it needs no Python bindings on the host, and its check mode
    works before the repository is set up. For anything else than this collection's own packages, use those.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  name:
    description: Names of the packages.
    type: list
    elements: str
    required: true
  state:
    description: Whether they should be installed.
    type: str
    choices: [present, absent]
    default: present
  version:
    description:
      - The version that they should have. Without the packager's revision, any revision of it.
      - Left out, an installed version stays. With pacman there is no choice.
    type: str
  manager:
    description: The package manager.
    type: str
    choices: [apt, dnf, zypper, pacman]
    required: true
  source:
    description: With apt, the sources file of the repository to refresh before installing. Left out, all are.
    type: path
seealso:
  - module: ansible.builtin.package
"""

EXAMPLES = r"""
- name: Install the NVIDIA container toolkit
  gpu.kubernetes.host_packages:
    name: [nvidia-container-toolkit]
    version: 1.17.8
    manager: apt
    source: /etc/apt/sources.list.d/nvidia-container-toolkit.sources
"""

RETURN = r"""
packages:
  description: The packages that were installed or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [nvidia-container-toolkit]
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _packages
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import host

ARGUMENTS = {
    "name": {"type": "list", "elements": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "version": {"type": "str"},
    "manager": {"type": "str", "choices": ["apt", "dnf", "zypper", "pacman"], "required": True},
    "source": {"type": "path"},
}
QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8", "NEEDRESTART_SUSPEND": "1"}


def find_installed(module: AnsibleModule, manager: str) -> dict[str, str | None]:
    """Return the installed version of each named package."""

    def run(command: t.Sequence[str]) -> tuple[int, str]:
        status, output, _errors = module.run_command(list(command))
        return status, output

    return {name: host.package_version(manager, name, run) for name in module.params["name"]}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params
    installed = find_installed(module, params["manager"])
    request = _packages.Request(
        tuple(params["name"]), params["state"] == "present", params["version"], params["source"]
    )
    names = _packages.pending(request, installed)
    try:
        commands = _packages.commands(params["manager"], request, installed)
    except _packages.PackageError as error:
        module.fail_json(msg=f"Cannot install {' and '.join(names)}: {error}.")
    for command in [] if module.check_mode else commands:
        status, output, errors = module.run_command(command, environ_update=QUIET)
        if status:
            module.fail_json(
                msg=f"{command[0]} failed for {' and '.join(names)}: {_packages.last_words(output, errors)}",
                command=command,
                stdout=output,
                stderr=errors,
            )
    after = (params["version"] or "installed") if request.present else "not installed"
    module.exit_json(
        changed=bool(names),
        packages=list(names),
        diff={
            "before": "".join(f"{name}: {installed[name] or 'not installed'}\n" for name in names),
            "after": "".join(f"{name}: {after}\n" for name in names),
        },
    )


if __name__ == "__main__":
    main()
