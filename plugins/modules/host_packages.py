#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_packages
short_description: Install or remove packages with the host's package manager alone
version_added: 0.1.0
description:
  - Installs and removes packages with apt, dnf, zypper or pacman.
  - Unlike M(ansible.builtin.apt) and M(ansible.builtin.dnf) it needs no Python bindings on the host, and its check mode
    works before the repository is set up. Use those modules for other packages than this collection's.
  - With zypper the module accepts the licences of the packages; without that, zypper does not install NVIDIA's packages, for example. Other
    package managers do not prompt for licences. Read the licences before you install packages.
  - Waits up to 5 minutes for the lock of another package manager.
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
    description:
      - Names of the packages. With O(state=absent) and O(record) they are not required.
    type: list
    elements: str
    default: []
  unversioned:
    description:
      - Packages to install in the same transaction, in any version. They are not put on hold.
    type: list
    elements: str
    default: []
  state:
    description:
      - Whether they should be installed.
      - Packages that others depend on are not removed; the module fails and names the dependents, also in check mode.
      - With apt, an installation removes conflicting packages only if they are in O(record). Otherwise the module fails and names them; in
        check mode and with V(available) it uses apt's current lists.
      - V(available) installs nothing. It fails if no repository has the packages, also if they are installed, or if one of the packages to
        change has a hold. If the package manager does not know the packages, its lists are refreshed, also in check mode. pacman is not
        checked.
    type: str
    choices: [present, absent, available]
    default: present
  version:
    description:
      - The requested version. Without the packager's revision, it matches each revision of exactly that version, so that V(1.17.8) matches
        1.17.8-1 and V(1.17) does not. With apt, an epoch is part of the version.
      - V(1.17.*) matches all versions that begin with 1.17 and a dot. With zypper its last part has to be a number. Several packages get the
        newest matching upstream version that all of them have. If they are installed in different versions, they get the most frequent
        one, if it is available for all.
      - Left out, an installed version stays. With pacman there is no choice.
    type: str
  same_version:
    description:
      - Whether several packages of O(name) get one upstream version also without O(version), as parts of a driver without dependencies on
        each other need it. If they are installed in different versions, they get the most frequent one, if it is available for all,
        else the newest of their release. With pacman there is no choice.
      - With V(false) each gets its own available version. Left out, packages that join those of O(record) get their version.
    type: bool
  manager:
    description: The package manager.
    type: str
    choices: [apt, dnf, zypper, pacman]
    required: true
  source:
    description: With apt, the sources file of the repository to refresh before the installation. Left out, all are refreshed.
    type: path
  hold:
    description:
      - Whether the packages are excluded from upgrades, with C(apt-mark hold), C(dnf versionlock) or C(zypper addlock).
      - V(false) releases only the holds of O(hold=true) with the same O(record). Left out, the holds do not change.
      - Packages of O(name) that were installed before are put on hold as well, and released with O(state=absent).
      - The module does not change packages with an unmanaged hold; it fails and names them, also in check mode.
    type: bool
  record:
    description:
      - File in which the module records the packages that it installed, for the undo. It does not contain packages that were installed
        before.
      - Dependencies of O(name) with the same upstream version, such as parts of a driver, are recorded, put on hold and removed with the
        packages. Other dependencies are removed if they depend on a removed package, or if no package needs them; a suggestion does not
        count. Dependencies that someone requested or put on hold since stay.
      - A package of O(unversioned) with its version in its name, as C(kernel-devel-5.14.0-427.el9.x86_64), is recorded and removed by that
        name, and other versions of it stay.
      - With O(state=absent) exactly the recorded packages are removed.
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

- name: Install a driver, and exclude it from upgrades
  gpu.kubernetes.host_packages:
    name: [nvidia-driver-libs, nvidia-smi]
    version: 535.*
    manager: apt
    hold: true
    record: /var/lib/gpu-kubernetes/state/packages-nvidia-driver.json

- name: Check whether another version is available
  gpu.kubernetes.host_packages:
    name: [nvidia-driver-libs, nvidia-smi]
    state: available
    version: 550.*
    manager: apt
    record: /var/lib/gpu-kubernetes/state/packages-nvidia-driver.json

- name: Remove it with its dependencies
  gpu.kubernetes.host_packages:
    state: absent
    manager: apt
    record: /var/lib/gpu-kubernetes/state/packages-nvidia-driver.json
"""

RETURN = r"""
packages:
  description: The packages that were installed or removed; in check mode and with O(state=available) the planned ones.
  returned: success
  type: list
  elements: str
  sample: [nvidia-container-toolkit]
replaced:
  description:
    - The packages of RV(packages) that were installed in another version. With apt, also packages of O(record) that are removed because they
      conflict.
  returned: success
  type: list
  elements: str
  sample: []
held:
  description: The packages that were put on hold; in check mode the planned ones.
  returned: success
  type: list
  elements: str
  sample: [nvidia-container-toolkit]
released:
  description: The packages whose hold was released; in check mode the planned ones.
  returned: success
  type: list
  elements: str
  sample: []
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.desired_state import (
    Desired,
    Outcome,
    apply_desired,
    plan_changes,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.runner import LOCK_TIMEOUT
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import host

ARGUMENTS = {
    "name": {"type": "list", "elements": "str", "default": []},
    "unversioned": {"type": "list", "elements": "str", "default": []},
    "state": {"type": "str", "choices": ["present", "absent", "available"], "default": "present"},
    "version": {"type": "str"},
    "same_version": {"type": "bool"},
    "manager": {"type": "str", "choices": ["apt", "dnf", "zypper", "pacman"], "required": True},
    "source": {"type": "path"},
    "hold": {"type": "bool"},
    "record": {"type": "path"},
}
# The module searches the output, so it must not be translated; LANGUAGE has precedence over the locale.
ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "LANGUAGE": "",
    "LC_ALL": "C.UTF-8",
    "NEEDRESTART_SUSPEND": "1",
    "ZYPP_LOCK_TIMEOUT": str(LOCK_TIMEOUT),
}
# Seconds of one command, below the timeout of the tasks: a driver may be built by DKMS, and a killed transaction leaves half-installed packages.
COMMAND_LIMIT = 3500


def run_command(command: t.Sequence[str], manager: str) -> tuple[int, str, str]:
    """Return exit status, output and errors of a command of the package manager. Raises PackageError if it cannot be started."""
    try:
        return _commands.run(command, ENVIRONMENT, limit=COMMAND_LIMIT)
    except OSError as error:
        remedy = f"name the package manager that this host has instead of {manager}"
        raise PackageError(f"Cannot run {command[0]} ({error.strerror}): {remedy}") from error


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params

    def run(command: t.Sequence[str]) -> tuple[int, str, str]:
        return run_command(command, params["manager"])

    def query(names: t.Sequence[str]) -> dict[str, str | None]:
        half = params["state"] == "absent"
        return {name: host.read_package_version(params["manager"], name, lambda c: run(c)[:2], half) for name in names}

    try:
        request = Request(
            names=(*params["name"], *params["unversioned"]),
            unversioned=frozenset(params["unversioned"]),
            present=params["state"] != "absent",
            version=params["version"],
            same_version=None if params["manager"] == "pacman" else params["same_version"],
            source=params["source"],
        )
        desired = Desired(request, params["record"], params["hold"])
        if params["state"] == "available":
            outcome = plan_changes(params["manager"], desired, query, run)
            module.exit_json(changed=False, **format_changes(outcome, request))
        outcome = apply_desired(params["manager"], desired, query, run, module.check_mode)
    except PackageError as error:
        module.fail_json(msg=f"{error}.", **error.details)
    module.exit_json(
        changed=outcome.changed,
        **format_changes(outcome, request),
        diff=format_diff(outcome, (params["version"] or "installed") if request.present else "not installed"),
    )


def format_changes(outcome: Outcome, request: Request) -> dict[str, list[str]]:
    """Return the changed packages and holds; in check mode the planned ones."""
    replaced = [name for name in outcome.packages if outcome.before.get(name)] if request.present else []
    replaced += outcome.removed
    return {
        "packages": list(outcome.packages),
        "replaced": replaced,
        "held": list(outcome.held),
        "released": list(outcome.released),
    }


def format_diff(outcome: Outcome, after: str) -> dict[str, str]:
    """Return the changes as lines before and after."""
    holds = [(name, "not on hold", "on hold") for name in outcome.held]
    holds += [(name, "on hold", "not on hold") for name in outcome.released]
    lines = [(name, outcome.before.get(name) or "not installed", after) for name in outcome.packages] + holds
    return {
        "before": "".join(f"{name}: {before}\n" for name, before, _after in lines),
        "after": "".join(f"{name}: {now}\n" for name, _before, now in lines),
    }


if __name__ == "__main__":
    main()
