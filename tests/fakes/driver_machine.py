# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with NVIDIA's driver for the role of that name: its kernel, services, library and boot are below one folder.

The role is the checkout's, in a collection of another name beside the playbook, of which the modules look at that folder: Ansible
keeps modules by their names.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import kernel_node

CHECKOUT = Path(__file__).resolve().parents[2]
ROLE = "stand.ins.nvidia_driver"
FOLDER = "DRIVER_MACHINE"
# Modules that are the collection's own, but for what they look at.
REAL = {
    "nvidia_kernel_modules": ('ROOT = "/"', f'ROOT = os.path.join(os.environ["{FOLDER}"], "root")'),
    "modprobe_config": ('"default": "/boot"', f'"default": os.path.join(os.environ["{FOLDER}"], "boot")'),
}
PLACES = {
    "/lib/modules": "modules",
    "/etc/modprobe.d": "modprobe.d",
    "/etc/systemd/system": "systemd",
    "/usr/bin/nvidia-uninstall": "programs/nvidia-uninstall",
}
INVENTORY = "node ansible_connection=local ansible_become=false\n"
DAEMON = "nvidia-persistenced"
FABRIC_MANAGER = "nvidia-fabricmanager"
# A service that runs has a device open; each of its states is a file.
SYSTEMCTL = """#!/bin/sh
cd {folder}
unit=${{2%.service}} process=root/proc/4711 command=nvidia-persiste
[ $unit != {fabric} ] || {{ process=root/proc/4710 command=nv-fabricmanage; }}
case $1 in
    show) echo LoadState=loaded; [ -e $unit.running ] && echo ActiveState=active || echo ActiveState=inactive; exit ;;
    is-enabled) [ -e $unit.enabled ] && echo enabled; exit ;;
esac
echo $1 $unit >> services.log
case $1 in
    start)
        [ ! -e $unit.broken ] || {{ echo "there is no driver" >&2; exit 1; }}
        mkdir -p $process/fd; touch $unit.running; echo $command > $process/comm; echo 0::/x > $process/cgroup
        ln -sfn /dev/nvidiactl $process/fd/7 ;;
    stop) rm -r $unit.running $process ;;
    enable) touch $unit.enabled ;;
    disable) rm $unit.enabled ;;
esac
"""
MODULE = """#!/usr/bin/python
import json, os, pathlib
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.driver import Build, read_driver
folder = pathlib.Path(os.environ[{folder!r}])
module = AnsibleModule({{"gather_subset": {{"type": "list"}}}}, supports_check_mode=True)
installed = json.loads((folder / "programs/node.json").read_text())["installed"].get("nvidia", {{}})
library = (folder / "library").read_text() if (folder / "library").exists() else None
driver = read_driver(str(folder / "root"), library, Build(installed.get("version"), installed.get("srcversion")))
told = json.loads((folder / "nvml").read_text()) if (folder / "nvml").exists() else {{}}
driver.update(told)
if not {{"driver", "all"}} & set(module.params["gather_subset"] or ["all"]):
    driver = None
nvml = {{"gpus": [{{"name": "a GPU", "lost": False}}], "nvswitches": 0, "error": None, "driver": driver}}
nvml.update(source="nvml", driver_version=library)
services = {{"nvidia-persistenced.service": {{"name": "nvidia-persistenced.service", "status": "unknown"}}}}
module.exit_json(ansible_facts={facts})
"""
# A boot, which ends all that ran. Nouveau stays unless it is kept out; what of NVIDIA's is installed is loaded, or what a stale image has.
BOOT = """#!/bin/sh
cd {folder}
echo boot >> services.log
rm -rf *.running root/proc/[0-9]* root/proc/driver/nvidia root/sys/module/nvidia
echo ext4 4096 1 - Live 0x0 > root/proc/modules
sed -i 's/"loaded": {{[^}}]*}}/"loaded": {{}}/' programs/node.json
! grep -qs 'blacklist nouveau' modprobe.d/*.conf || rm -rf root/sys/module/nouveau
[ -e root/sys/module/nouveau ] || programs/modprobe nvidia_drm
[ ! -e stale ] || cp stale/* root/sys/module/nvidia
for unit in *.enabled; do [ ! -e $unit ] || programs/systemctl start ${{unit%.enabled}}; done
"""
REBOOT = """#!/usr/bin/python
import os
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"msg": {{}}, "reboot_timeout": {{}}}}, supports_check_mode=True)
if not module.check_mode:
    module.run_command([os.path.join(os.environ[{folder!r}], "programs", "boot")], check_rc=True)
module.exit_json(changed=True)
"""
# The kernel that a boot brought.
SETUP = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"gather_subset": {{"type": "list"}}}}, supports_check_mode=True)
module.exit_json(changed=False, ansible_facts={facts})
"""
NEXT_KERNEL = "6.1.0-57-amd64"
INSTALL = """
- ansible.builtin.lineinfile: {{path: "{folder}/installed", create: true, line: "{{{{ item }}}}"}}
  loop: "{{{{ vendor_packages_unversioned }}}}"
- ansible.builtin.shell: {{cmd: "echo '{{{{ vendor_packages_version }}}}' >> {folder}/versions"}}
  # The tests' own log, which is nothing of the machine's.
  changed_when: false
"""
PENDING = """
- ansible.builtin.set_fact:
    vendor_packages_result:
      replaced: "{{{{ lookup('ansible.builtin.file', '{folder}/pending').split() }}}}"
      packages: "{{{{ vendor_packages_names if '{folder}/others' is exists else [] }}}}"
"""
# What a removal runs, and what it asks of packages; see Machine.failing.
PROGRAMS = {
    "nvidia-uninstall": "[ ! -e {folder}/uninstall.fails ] || exit 1; echo uninstall >> {folder}/services.log; rm $0 {folder}/library",
    "update-initramfs": "[ ! -e {folder}/initramfs.fails ] || {{ echo no space left >&2; exit 1; }}; echo initramfs >> {folder}/services.log",
}
REHEARSE = """
- ansible.builtin.assert:
    that: "'{folder}/packages.fails' is not exists"
    fail_msg: The packages of {{{{ vendor_packages_set }}}} have to stay.
"""
REMOVE = """
- ansible.builtin.assert: {{that: "'{folder}/removal.fails' is not exists"}}
- ansible.builtin.file: {{path: "{{{{ vendor_packages_state_dir }}}}/state/packages-{{{{ vendor_packages_set }}}}.json", state: absent}}
- ansible.builtin.assert: {{that: "'{folder}/repository.fails' is not exists"}}
"""


class Machine:
    """One with the daemon, and with GPUs whose driver 570.2 is installed and loaded."""

    def __init__(self, folder: Path) -> None:
        """Lay it out below the folder, which the playbook has to be in too."""
        self.folder = folder
        self.node = kernel_node.Node(folder)
        (folder / "library").write_text("570.2")
        (folder / "pending").touch()
        self.node.load("nvidia_uvm", "nvidia_drm")
        for name, text in {
            "systemctl": SYSTEMCTL,
            "boot": BOOT,
            **{name: f"#!/bin/sh\n{text}\n" for name, text in PROGRAMS.items()},
        }.items():
            (self.node.programs / name).write_text(text.format(folder=folder, fabric=FABRIC_MANAGER))
            (self.node.programs / name).chmod(0o755)
        (folder / "modules" / "6.1.0-56-amd64" / "build").mkdir(parents=True)
        (folder / "boot").mkdir()
        (folder / "boot" / "initrd.img-6.1.0-56-amd64").touch()
        self._collect(folder / "collections" / "ansible_collections" / "stand" / "ins")

    def installer(self, text: str) -> dict[str, Any]:
        """What asks the role for an installer of this text."""
        path = self.folder / "theirs.run"
        path.write_text(text)
        return {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "580.1",
            "nvidia_driver_runfile": {
                "url": f"file://{path}",
                "checksum": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
            },
        }

    def _collect(self, collection: Path) -> None:
        folder = collection / "plugins" / "modules"
        folder.mkdir(parents=True)
        real = {name: (CHECKOUT / "plugins" / "modules" / f"{name}.py").read_text() for name in REAL}
        modules = {
            **{f"gpu.kubernetes.{name}": text.replace(*REAL[name]) for name, text in real.items()},
            "gpu.kubernetes.nvml_facts": MODULE.format(folder=FOLDER, facts='{"nvml": nvml}'),
            "ansible.builtin.reboot": REBOOT.format(folder=FOLDER),
            "ansible.builtin.setup": SETUP.format(facts={"kernel": NEXT_KERNEL}),
            "ansible.builtin.service_facts": MODULE.format(folder=FOLDER, facts='{"services": services}'),
        }
        role = shutil.copytree(CHECKOUT / "roles" / "nvidia_driver", collection / "roles" / "nvidia_driver")
        packages = collection / "roles" / "vendor_packages" / "tasks"
        packages.mkdir(parents=True)
        (packages / "present.yml").write_text(INSTALL.format(folder=self.folder))
        for entry in ("check", "available"):
            (packages / f"{entry}.yml").write_text("[]")
        (packages / "pending.yml").write_text(PENDING.format(folder=self.folder))
        (packages / "removable.yml").write_text(REHEARSE.format(folder=self.folder))
        (packages / "absent.yml").write_text((REHEARSE + REMOVE).format(folder=self.folder))
        shutil.copy(CHECKOUT / "roles" / "vendor_packages" / "tasks" / "state_absent.yml", packages)
        shutil.copytree(CHECKOUT / "roles" / "vendor_packages" / "vars", packages.parent / "vars")
        for path in [*(role / "tasks").glob("*.yml"), *(role / "vars").glob("*.yml")]:
            text = path.read_text().replace("gpu.kubernetes.vendor_packages", "stand.ins.vendor_packages")
            for place, instead in PLACES.items():
                text = text.replace(place, f"{self.folder}/{instead}")
            path.write_text(text)
        for name, text in modules.items():
            short = name.rpartition(".")[2]
            (folder / f"{short}.py").write_text(text)
            for path in (role / "tasks").glob("*.yml"):
                path.write_text(path.read_text().replace(f" {name}:", f" stand.ins.{short}:"))

    def start(self, unit: str = DAEMON) -> None:
        """Have the daemon or the fabric manager run."""
        pid, command = (4711, "nvidia-persiste") if unit == DAEMON else (4710, "nv-fabricmanage")
        self.node.process(pid, "/dev/nvidiactl", command)
        (self.folder / f"{unit}.running").touch()

    def update(self, version: str = "570.2") -> None:
        """Install another build of the driver, or another version of it, beside the loaded one."""
        self.node.set(installed=kernel_node.build(version, "BBB"))
        (self.folder / "library").write_text(version)

    def boot(self) -> None:
        """Boot it."""
        subprocess.run([str(self.node.programs / "boot")], check=True)

    def have_a_stale_image(self) -> None:
        """Let each boot load the driver that is loaded now, as from an initramfs that was not rebuilt."""
        shutil.copytree(self.node.root / "sys" / "module" / "nvidia", self.folder / "stale")

    def have_nouveau(self) -> None:
        """Have nouveau loaded and no driver of NVIDIA's there, but the modules 580.1 ready for an installer: ``modules.json``."""
        node = self.node.programs / "node.json"
        self.node.set(installed={})
        (self.folder / "library").unlink()
        self.boot()
        self.node.set(installed=kernel_node.build("580.1"))
        shutil.copy(node, self.folder / "modules.json")
        self.node.set(installed={})
        self.node.put("sys/module/nouveau/refcnt", "1\n")
        self.done()

    def tell(self, **driver: Any) -> None:
        """Set these facts of the driver, such as ``secure_boot``."""
        (self.folder / "nvml").write_text(json.dumps(driver))

    def differ(self, *packages: str) -> None:
        """Have these packages be there in other versions than they are asked for."""
        (self.folder / "pending").write_text(" ".join(packages))

    def have_others(self) -> None:
        """Have none of the packages there that are asked for, as those of another provider are."""
        (self.folder / "others").touch()

    def versions(self) -> list[str]:
        """The requested versions of packages, in order."""
        return (self.folder / "versions").read_text().splitlines()

    def installed(self) -> list[str]:
        """The requested packages without the driver's version."""
        file = self.folder / "installed"
        return file.read_text().splitlines() if file.exists() else []

    def note(self, *names: str) -> None:
        """Have the role's records and notes there, without their contents."""
        for name in names:
            path = self.folder / "state" / "state" / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}\n")

    def notes(self) -> list[str]:
        """The names of those that are there."""
        return sorted(path.stem for path in (self.folder / "state").glob("state/*.json"))

    def configure(self) -> None:
        """Have the file of modprobe.d there that the role writes."""
        path = self.folder / "modprobe.d" / "gpu-kubernetes-nvidia-driver.conf"
        path.parent.mkdir()
        path.write_text("blacklist nouveau\n")

    @contextmanager
    def failing(self, step: str) -> Iterator[None]:
        """Meanwhile a step of a removal fails, and ends the run there as a kill would.

        ``packages`` that have to stay, by the rehearsal too; their ``removal``, without that; the ``repository`` after they are gone;
        ``uninstall``, and ``initramfs``.
        """
        file = self.folder / f"{step}.fails"
        file.touch()
        yield
        file.unlink()

    def is_(self, state: str, unit: str = DAEMON) -> bool:
        """Whether the daemon, or the fabric manager, is running, enabled or broken."""
        return (self.folder / f"{unit}.{state}").exists()

    def log(self, words: str) -> None:
        """Have this told among what was done with services."""
        with (self.folder / "services.log").open("a") as log:
            log.write(f"{words}\n")

    def done(self) -> list[str]:
        """What was done with modules, then with services, since the last time."""
        log = self.folder / "services.log"
        services = log.read_text().splitlines() if log.exists() else []
        log.write_text("")
        commands = self.node.commands()
        self.node.forget()
        return [*commands, *services]

    def variables(self, **asked: Any) -> dict[str, Any]:
        """The role's variables."""
        return {
            "nvidia_driver_state_dir": str(self.folder / "state"),
            "nvidia_driver_kernel_modules": "open",
            "vendor_packages_result": {"changed": False},
            **asked,
        }

    def play(
        self,
        *parts: str,
        path_of_programs: str = "",
        distribution: str = "Debian",
        family: str = "Debian",
        then: Sequence[dict[str, Any]] = (),
        **asked: Any,
    ) -> Path:
        """Write a playbook that has the role look, then runs files of its tasks, and other tasks after them."""
        facts = {
            "distribution": distribution,
            "os_family": family,
            "kernel": "6.1.0-56-amd64",
            "architecture": "x86_64",
        }
        more = {"nodename": "node", "distribution_release": "bookworm", "distribution_major_version": "12"}
        roles = [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": file}} for file in ("set_vars", *parts)]
        told = {**facts, **more, "distribution_version": "12.5", "cacheable": True}
        path = self.folder / "play.yml"
        play = {
            "hosts": "all",
            "gather_facts": False,
            "environment": {
                "PATH": path_of_programs or f"{self.node.programs}:{os.environ['PATH']}",
                FOLDER: str(self.folder),
            },
            "vars": self.variables(**asked),
            "tasks": [{"ansible.builtin.set_fact": told}, *roles, *then],
        }
        path.write_text(json.dumps([play]))
        return path
