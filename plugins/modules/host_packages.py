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
  - With zypper the licences of the packages are agreed to, without which it installs none that has one, such as NVIDIA's. The
    others ask for no agreement. Read the licences before you install packages.
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
    description:
      - Names of the packages. They may be left out where O(record) tells what to remove.
    type: list
    elements: str
    default: []
  unversioned:
    description:
      - Packages that are installed in the same transaction, in whatever version. They are not put on hold.
    type: list
    elements: str
    default: []
  state:
    description:
      - Whether they should be installed.
      - Packages that others depend on are not removed; the module fails and names those, also in check mode.
      - Nor are packages removed for an installation, as apt does for a conflict, but those that O(record) has; the module fails and
        names them, in check mode and with V(available) as far as the lists of apt tell.
      - V(available) installs nothing and fails where no repository has such packages, be they installed or not, or where a hold is on
        those that would be changed. It has the package manager fetch their lists anew, also in check mode, if it does not know the
        packages. pacman is not asked.
    type: str
    choices: [present, absent, available]
    default: present
  version:
    description:
      - The version that they should have. Without the packager's revision, any revision of exactly that version, so
        that V(1.17.8) takes 1.17.8-1 and V(1.17) does not. With apt, an epoch is part of the version.
      - V(1.17.*) takes all that begin with 1.17 and a dot. With zypper that has to be a number after which another comes, as 1.18 does.
        Several packages get one upstream version of those that begin so and that all of them have, the newest. If they are installed in
        different ones they are brought to one, which is the one that most of them have, if it can be had of all.
      - Left out, an installed version stays. With pacman there is no choice.
    type: str
  same_version:
    description:
      - Whether several packages of O(name) get one upstream version without O(version) too, as parts of a driver that do not depend on
        each other need it. Those that are installed in different ones are brought to the one that most of them have, if it can be
        had of all, else to the newest of their release. With pacman there is no choice.
      - With V(false) each gets what there is. Left out, those that join packages which O(record) has come in the version of these.
    type: bool
  manager:
    description: The package manager.
    type: str
    choices: [apt, dnf, zypper, pacman]
    required: true
  source:
    description: With apt, the sources file of the repository to refresh before installing. Left out, all are.
    type: path
  hold:
    description:
      - Whether the packages are kept from being changed by anybody else, with C(apt-mark hold), C(dnf versionlock) or C(zypper addlock).
      - V(false) lets go only what was put on hold by O(hold=true) with the same O(record). Left out, holds stay as they are.
      - Packages of O(name) that were there before are put on hold as well, and let go with O(state=absent).
      - A hold of somebody else is respected; the module fails and names the packages, also in check mode.
    type: bool
  record:
    description:
      - File in which the module notes what it installed, which it needs for the way back. Packages that were there before are not in it.
      - Packages that came with those of O(name) and have the same upstream version, as the parts of a driver have, are noted with
        them, put on hold with them and removed with them. Other packages that came with them go with what they depend on, or
        where nothing needs them any more; a mere suggestion does not count. What somebody asked for or put on hold since stays.
      - What O(unversioned) has with its version in its name, as C(kernel-devel-5.14.0-427.el9.x86_64), is noted and removed by that name,
        and other versions of it stay.
      - With O(state=absent) what is noted is removed, and nothing else.
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

- name: Install a driver whose parts unattended upgrades must not touch
  gpu.kubernetes.host_packages:
    name: [nvidia-driver-libs, nvidia-smi]
    version: 535.*
    manager: apt
    hold: true
    record: /var/lib/gpu-kubernetes/state/packages-nvidia-driver.json

- name: Ask whether another version can be had
  gpu.kubernetes.host_packages:
    name: [nvidia-driver-libs, nvidia-smi]
    state: available
    version: 550.*
    manager: apt
    record: /var/lib/gpu-kubernetes/state/packages-nvidia-driver.json

- name: Remove it with all that came with it
  gpu.kubernetes.host_packages:
    state: absent
    manager: apt
    record: /var/lib/gpu-kubernetes/state/packages-nvidia-driver.json
"""

RETURN = r"""
packages:
  description: The packages that were installed or removed, or would be in check mode or after O(state=available).
  returned: success
  type: list
  elements: str
  sample: [nvidia-container-toolkit]
replaced:
  description:
    - Those of RV(packages) that were there in another version than they were asked for, and with apt what was brought with the same O(record)
      and makes way for them.
  returned: success
  type: list
  elements: str
  sample: []
held:
  description: The packages that were put on hold, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [nvidia-container-toolkit]
released:
  description: The packages that were let go, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: []
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.keeping import Outcome, Wish, ask, keep
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.patience import PATIENCE
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
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
# Words are searched for what was meant, so they must not be translated; LANGUAGE would go before the locale C.UTF-8.
ENVIRONMENT = {
    "DEBIAN_FRONTEND": "noninteractive",
    "LANGUAGE": "",
    "LC_ALL": "C.UTF-8",
    "NEEDRESTART_SUSPEND": "1",
    "ZYPP_LOCK_TIMEOUT": str(PATIENCE),
}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    params = module.params

    def run(command: t.Sequence[str]) -> tuple[int, str, str]:
        try:
            return _commands.run(command, ENVIRONMENT)
        except OSError as error:
            remedy = f"name the package manager that this host has instead of {params['manager']}"
            raise PackageError(f"Cannot run {command[0]} ({error.strerror}): {remedy}") from error

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
        wish = Wish(request, params["record"], params["hold"])
        if params["state"] == "available":
            outcome = ask(params["manager"], wish, query, run)
            module.exit_json(changed=False, **told(outcome, request))
        outcome = keep(params["manager"], wish, query, run, module.check_mode)
    except PackageError as error:
        module.fail_json(msg=f"{error}.", **error.details)
    module.exit_json(
        changed=outcome.changed,
        **told(outcome, request),
        diff=difference(outcome, (params["version"] or "installed") if request.present else "not installed"),
    )


def told(outcome: Outcome, request: Request) -> dict[str, list[str]]:
    """Return what became of packages and holds, or would."""
    replaced = [name for name in outcome.packages if outcome.before.get(name)] if request.present else []
    replaced += outcome.way
    return {
        "packages": list(outcome.packages),
        "replaced": replaced,
        "held": list(outcome.held),
        "released": list(outcome.released),
    }


def difference(outcome: Outcome, after: str) -> dict[str, str]:
    """Return both sides of what changed."""
    holds = [(name, "not on hold", "on hold") for name in outcome.held]
    holds += [(name, "on hold", "not on hold") for name in outcome.released]
    lines = [(name, outcome.before.get(name) or "not installed", after) for name in outcome.packages] + holds
    return {
        "before": "".join(f"{name}: {before}\n" for name, before, _after in lines),
        "after": "".join(f"{name}: {now}\n" for name, _before, now in lines),
    }


if __name__ == "__main__":
    main()
