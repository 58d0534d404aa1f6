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
  - Waits up to 5 minutes for a lock that another package manager holds.
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
    description:
      - Whether they should be installed.
      - Packages that others depend on are not removed; the module fails and names those, also in check mode.
    type: str
    choices: [present, absent]
    default: present
  version:
    description:
      - The version that they should have. Without the packager's revision, any revision of exactly that version, so
        that V(1.17.8) takes 1.17.8-1 and V(1.17) does not. With apt, an epoch is part of the version.
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
  change_held:
    description:
      - With apt, whether packages that are on hold may be changed. Say so where the hold is your own; otherwise the module
        fails and names them, also in check mode.
      - The locks of the other managers are theirs to enforce.
    type: bool
    default: false
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
    "change_held": {"type": "bool", "default": False},
}
# Words are searched for what was meant, so they must not be translated; LANGUAGE would go before the locale C.UTF-8.
ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "LANGUAGE": "",
    "LC_ALL": "C.UTF-8",
    "NEEDRESTART_SUSPEND": "1",
    "ZYPP_LOCK_TIMEOUT": str(_packages.PATIENCE),
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params

    def run(command: t.Sequence[str]) -> tuple[int, str, str]:
        try:
            status, output, errors = module.run_command(
                list(command), environ_update=ENVIRONMENT, handle_exceptions=False
            )
        except OSError as error:
            remedy = f"name the package manager that this host has instead of {params['manager']}"
            raise _packages.PackageError(f"Cannot run {command[0]} ({error.strerror}): {remedy}") from error
        return status, output, errors

    def query() -> dict[str, str | None]:
        return {name: host.package_version(params["manager"], name, lambda c: run(c)[:2]) for name in params["name"]}

    try:
        request = _packages.Request(
            names=tuple(params["name"]),
            present=params["state"] == "present",
            **{key: params[key] for key in ("version", "source", "change_held")},
        )
        before, names = _packages.apply(params["manager"], request, query, run, module.check_mode)
    except _packages.PackageError as error:
        module.fail_json(msg=f"{error}.", **error.details)
    after = (params["version"] or "installed") if request.present else "not installed"
    module.exit_json(
        changed=bool(names),
        packages=list(names),
        diff={
            "before": "".join(f"{name}: {before[name] or 'not installed'}\n" for name in names),
            "after": "".join(f"{name}: {after}\n" for name in names),
        },
    )


if __name__ == "__main__":
    main()
