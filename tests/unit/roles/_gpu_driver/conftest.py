# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles for AMD's and Intel's drivers on a fake machine, which logs packages, drains and reboots in their order."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from fakes.gpu_sysfs import CASES, amd_tree

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

FACTS = {
    "distribution": "Ubuntu",
    "distribution_version": "24.04",
    "distribution_major_version": "24",
    "distribution_release": "noble",
    "os_family": "Debian",
    "architecture": "x86_64",
    "kernel": "6.8.0-60-generic",
    "nodename": "node",
}
#: A fake of modinfo: the module of DKMS once it is installed, else the one of the kernel.
MODINFO = """#!/bin/sh
[ "$3" = amdgpu ] || exit 1
case $2 in
    filename) [ -e {folder}/installed ] && echo /lib/modules/x/updates/dkms/amdgpu.ko || echo /lib/modules/x/kernel/amdgpu.ko ;;
    version) [ ! -e {folder}/installed ] || cat {folder}/installed ;;
esac
"""
#: Fakes of roles: the entry point of each writes a line, and the packages are a file with their version.
LOG = """
- ansible.builtin.shell: {{cmd: "echo '{line}' >> {folder}/log; [ ! -e {folder}/stuck ]"}}
  changed_when: false
  when: not ansible_check_mode
"""
PLAN = """
- ansible.builtin.set_fact:
    vendor_packages_result:
      packages: "{{{{ [] if '{folder}/installed' is exists and lookup('file', '{folder}/installed') == requested else vendor_packages_names }}}}"
  vars: {{requested: "{{{{ vendor_packages_version or '6.14.14' }}}}"}}
"""
PRESENT = (
    PLAN
    + """
- ansible.builtin.copy: {{dest: "{{{{ item }}}}", content: "{{{{ vendor_packages_version or '6.14.14' }}}}", mode: "0644"}}
  loop: ["{folder}/installed", "{{{{ vendor_packages_state_dir }}}}/state/packages-{{{{ vendor_packages_set }}}}.json"]
  when: vendor_packages_result.packages | length > 0
"""
)
ABSENT = """
- ansible.builtin.file: {{path: "{{{{ item }}}}", state: absent}}
  loop: ["{folder}/installed", "{{{{ vendor_packages_state_dir }}}}/state/packages-{{{{ vendor_packages_set }}}}.json"]
"""
REBOOT = """#!/usr/bin/python
import pathlib, shutil
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"msg": {{}}, "reboot_timeout": {{}}}}, supports_check_mode=True)
folder = pathlib.Path({folder!r})
if not module.check_mode:
    with (folder / "log").open("a") as log:
        log.write("reboot\\n")
    if (folder / "lost").exists():
        module.fail_json(msg="connection lost")
    shutil.rmtree(folder / "root/proc/7", ignore_errors=True)
    version = folder / "root/sys/module/amdgpu/version"
    version.unlink(missing_ok=True)
    if (folder / "installed").exists() and not (folder / "stale").exists():
        version.write_text((folder / "installed").read_text())
module.exit_json(changed=True)
"""


class Machine:
    """A machine with two AMD GPUs and the driver of its kernel. Its folder has a copy of the roles with fakes of what they include."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        amd_tree(self.root, 2)
        (self.root / "proc/sys/kernel").mkdir(parents=True)
        (self.root / "proc/sys/kernel/osrelease").write_text(FACTS["kernel"] + "\n")
        (folder / "kmsg").touch()
        (folder / "state/state").mkdir(parents=True)
        self._collect(folder / "collections/ansible_collections/fake/machine")

    def _collect(self, collection: Path) -> None:
        (collection / "plugins/modules").mkdir(parents=True)
        (collection / "plugins/modules/reboot.py").write_text(REBOOT.format(folder=str(self.folder)))
        names = ["_gpu_driver", "amdgpu_driver", "vendor_packages", "gpu_node_maintenance"]
        for name in names[:2]:
            shutil.copytree(ROOT / "roles" / name, collection / "roles" / name)
        tasks = {
            "vendor_packages": {
                "check": "[]",
                "removable": "[]",
                "state_absent": "[]",
                "available": PLAN,
                "present": PRESENT,
                "absent": ABSENT,
            },
            "gpu_node_maintenance": {"inspect": "[]", "begin": LOG, "wait": LOG, "end": LOG},
        }
        for role, files in tasks.items():
            for name, text in files.items():
                path = collection / "roles" / role / "tasks" / f"{name}.yml"
                path.parent.mkdir(parents=True, exist_ok=True)
                more = LOG if text in (PRESENT, ABSENT) else ""
                path.write_text((text + more).format(folder=self.folder, line=f"{role} {name}"))
        for path in collection.glob("roles/*gpu_driver/tasks/*.yml"):
            text = path.read_text().replace(" ansible.builtin.reboot:", " fake.machine.reboot:")
            path.write_text(
                re.sub(rf"gpu[.]kubernetes[.]({'|'.join(names)})$", r"fake.machine.\1", text, flags=re.MULTILINE)
            )

    def use_gpu(self) -> None:
        """Let a process use a GPU."""
        (self.root / "proc/7/fd").mkdir(parents=True)
        (self.root / "proc/7/fd/3").symlink_to("/dev/kfd")
        (self.root / "proc/7/comm").write_text("train\n")

    def lose_driver(self) -> None:
        """Replace the tree by one without a driver."""
        shutil.rmtree(self.root / "sys")
        CASES["amd-no-driver"](self.root)

    def install(self, version: str) -> None:
        """Install and load the vendor's driver, as an earlier run does."""
        for name in ("installed", "state/state/packages-amdgpu-driver.json", "root/sys/module/amdgpu/version"):
            (self.folder / name).write_text(version)

    def has_packages(self) -> bool:
        """Whether the fake packages are installed."""
        return (self.folder / "installed").exists()

    def read_log(self) -> list[str]:
        """The steps since the last call."""
        path = self.folder / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        path.write_text("")
        return lines


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def apply(run, machine):
    """Run the role of AMD's driver: exit code, number of changed tasks, output in one line."""
    programs = machine.folder / "programs"
    programs.mkdir()
    (programs / "modinfo").write_text(MODINFO.format(folder=machine.folder))
    (programs / "modinfo").chmod(0o755)

    def play(*options, task_vars=None, **variables):
        playbook = machine.folder / "play.yml"
        defaults = {"kernel_log": str(machine.folder / "kmsg")}
        role = {"name": "fake.machine.amdgpu_driver"}
        tasks = [
            {"ansible.builtin.set_fact": {**FACTS, "cacheable": True}},
            {"ansible.builtin.include_role": role, "vars": task_vars or {}},
            {
                "ansible.builtin.debug": {
                    "msg": "REQUIRED={{ amdgpu_driver_reboot_required }} AWAITED={{ gpu_driver_awaited | default(false) }}"
                }
            },
        ]
        where = {"hosts": "all", "gather_facts": False, "module_defaults": {"gpu.kubernetes.gpu_driver_info": defaults}}
        playbook.write_text(json.dumps([{**where, "tasks": tasks}]))
        code, output = run(
            "node ansible_connection=local ansible_become=false\n",
            playbook,
            *options,
            environment={"PATH": f"{programs}:{os.environ['PATH']}"},
            gpu_devices_root=str(machine.root),
            amdgpu_driver_state_dir=str(machine.folder / "state"),
            **variables,
        )
        return code, int(re.findall(r"\bchanged=(\d+)", output)[-1]), " ".join(output.split())

    return play
