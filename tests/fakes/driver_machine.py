# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine for the role nvidia_driver: its kernel, services, library and boot are below one folder.

The role is that of the checkout, in a collection with another name beside the playbook, whose modules read that folder: Ansible caches
modules by name.
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
ROLE = "fake.machine.nvidia_driver"
FOLDER = "DRIVER_MACHINE"
# Modules of the collection, with another path.
REAL = {
    "nvidia_kernel_modules": ('ROOT = "/"', f'ROOT = os.path.join(os.environ["{FOLDER}"], "root")'),
    "modprobe_config": ('"default": "/boot"', f'"default": os.path.join(os.environ["{FOLDER}"], "boot")'),
}
PLACES = {
    "/lib/modules": "modules",
    "/etc/modprobe.d": "modprobe.d",
    "/etc/systemd/system": "systemd",
    "/usr/bin/nvidia-uninstall": "programs/nvidia-uninstall",
    "/etc/nvidia": "nvidia",
}
INVENTORY = "node ansible_connection=local ansible_become=false\n"
DAEMON = "nvidia-persistenced"
FABRIC_MANAGER = "nvidia-fabricmanager"
LICENSE_DAEMON = "nvidia-gridd"
# A running service has a device open; each of its states is a file.
SYSTEMCTL = """#!/bin/sh
cd {folder}
unit=${{2%.service}} process=root/proc/4711 command=nvidia-persiste
[ $unit != {fabric} ] || {{ process=root/proc/4710 command=nv-fabricmanage; }}
[ $unit != {license} ] || {{ process=root/proc/4712 command={license}; }}
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
    restart) touch $unit.running ;;
    stop) rm -rf $unit.running $process ;;
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
facts = json.loads((folder / "nvml").read_text()) if (folder / "nvml").exists() else {{}}
driver.update(facts)
if not {{"driver", "all"}} & set(module.params["gather_subset"] or ["all"]):
    driver = None
nvml = {{"gpus": [{{"name": "a GPU", "lost": False}}], "nvswitches": 0, "error": None, "driver": driver}}
nvml.update(source="nvml", driver_version=library)
services = {{"nvidia-persistenced.service": {{"name": "nvidia-persistenced.service", "status": "unknown"}}}}
if (folder / "nvidia-gridd.service").exists():
    state = "running" if (folder / "nvidia-gridd.running").exists() else "stopped"
    services["nvidia-gridd.service"] = {{"name": "nvidia-gridd.service", "status": "enabled", "state": state}}
module.exit_json(ansible_facts={facts})
"""
# A boot ends all processes. Nouveau is loaded unless it is blacklisted; else the installed driver is loaded, or that of a stale image.
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
# The kernel after a boot.
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
  # A log of the tests is not a change of the machine.
  changed_when: false
"""
PENDING = """
- ansible.builtin.set_fact:
    vendor_packages_result:
      replaced: "{{{{ lookup('ansible.builtin.file', '{folder}/pending').split() }}}}"
      packages: "{{{{ vendor_packages_names if '{folder}/others' is exists else [] }}}}"
"""
# Programs and tasks of a removal; see Machine.fail_step.
PROGRAMS = {
    "nvidia-uninstall": "[ ! -e {folder}/uninstall.fails ] || exit 1; echo uninstall >> {folder}/services.log; rm $0 {folder}/library",
    "update-initramfs": "[ ! -e {folder}/initramfs.fails ] || {{ echo no space left >&2; exit 1; }}; echo initramfs >> {folder}/services.log",
}
CHECK_REMOVAL = """
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
    """A machine with the daemon, and with GPUs whose driver 570.2 is installed and loaded."""

    def __init__(self, folder: Path) -> None:
        """Create it below the folder, in which the playbook has to be, too."""
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
            (self.node.programs / name).write_text(
                text.format(folder=folder, fabric=FABRIC_MANAGER, license=LICENSE_DAEMON)
            )
            (self.node.programs / name).chmod(0o755)
        (folder / "modules" / "6.1.0-56-amd64" / "build").mkdir(parents=True)
        (folder / "boot").mkdir()
        (folder / "boot" / "initrd.img-6.1.0-56-amd64").touch()
        self._collect(folder / "collections" / "ansible_collections" / "fake" / "machine")

    def write_installer(self, text: str) -> dict[str, Any]:
        """Write an installer with this text and return the role's variables for it."""
        path = self.folder / "installer.run"
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
        (packages / "removable.yml").write_text(CHECK_REMOVAL.format(folder=self.folder))
        (packages / "absent.yml").write_text((CHECK_REMOVAL + REMOVE).format(folder=self.folder))
        shutil.copy(CHECKOUT / "roles" / "vendor_packages" / "tasks" / "state_absent.yml", packages)
        shutil.copytree(CHECKOUT / "roles" / "vendor_packages" / "vars", packages.parent / "vars")
        for path in [*(role / "tasks").glob("*.yml"), *(role / "vars").glob("*.yml")]:
            text = path.read_text().replace("gpu.kubernetes.vendor_packages", "fake.machine.vendor_packages")
            for place, instead in PLACES.items():
                text = text.replace(place, f"{self.folder}/{instead}")
            path.write_text(text)
        for name, text in modules.items():
            short = name.rpartition(".")[2]
            (folder / f"{short}.py").write_text(text)
            for path in (role / "tasks").glob("*.yml"):
                path.write_text(path.read_text().replace(f" {name}:", f" fake.machine.{short}:"))

    def start(self, unit: str = DAEMON) -> None:
        """Start the daemon or the fabric manager."""
        pid, command = (4711, "nvidia-persiste") if unit == DAEMON else (4710, "nv-fabricmanage")
        self.node.process(pid, "/dev/nvidiactl", command)
        (self.folder / f"{unit}.running").touch()

    def install_license_daemon(self) -> Path:
        """Install the daemon of NVIDIA's guest driver, and return the folder of its configuration."""
        (self.folder / f"{LICENSE_DAEMON}.service").touch()
        (self.folder / f"{LICENSE_DAEMON}.running").touch()
        (self.folder / "nvidia").mkdir()
        return self.folder / "nvidia"

    def fail_start(self, unit: str, fails: bool = True) -> None:
        """Let each start of a daemon fail, which ends a run there as a kill does; or let it work again."""
        path = self.folder / f"{unit}.broken"
        path.touch() if fails else path.unlink()

    def install_build(self, version: str = "570.2") -> None:
        """Install another build of the driver, or another version of it, beside the loaded one."""
        self.node.set(installed=kernel_node.build(version, "BBB"))
        (self.folder / "library").write_text(version)

    def boot(self) -> None:
        """Boot the machine."""
        subprocess.run([str(self.node.programs / "boot")], check=True)

    def keep_stale_image(self) -> None:
        """Let each boot load the driver that is loaded now, as from an outdated initramfs."""
        shutil.copytree(self.node.root / "sys" / "module" / "nvidia", self.folder / "stale")

    def load_nouveau(self) -> None:
        """Load nouveau and remove NVIDIA's driver; the file ``modules.json`` has the modules 580.1 for an installer."""
        node = self.node.programs / "node.json"
        self.node.set(installed={})
        (self.folder / "library").unlink()
        self.boot()
        self.node.set(installed=kernel_node.build("580.1"))
        shutil.copy(node, self.folder / "modules.json")
        self.node.set(installed={})
        self.node.put("sys/module/nouveau/refcnt", "1\n")
        self.read_actions()

    def set_driver_facts(self, **driver: Any) -> None:
        """Set these facts of the driver, such as ``secure_boot``."""
        (self.folder / "nvml").write_text(json.dumps(driver))

    def set_pending(self, *packages: str) -> None:
        """Set the packages whose installed version differs from the requested one."""
        (self.folder / "pending").write_text(" ".join(packages))

    def remove_requested_packages(self, removed: bool = True) -> None:
        """Let none of the requested packages be installed, as with packages of another provider; or all of them again."""
        path = self.folder / "others"
        path.touch() if removed else path.unlink()

    def read_versions(self) -> list[str]:
        """The requested versions of packages, in order."""
        return (self.folder / "versions").read_text().splitlines()

    def read_installed(self) -> list[str]:
        """The requested packages without the driver's version."""
        file = self.folder / "installed"
        return file.read_text().splitlines() if file.exists() else []

    def write_records(self, *names: str) -> None:
        """Write empty records of the role."""
        for name in names:
            path = self.folder / "state" / "state" / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}\n")

    def list_records(self) -> list[str]:
        """The names of the existing records."""
        return sorted(path.stem for path in (self.folder / "state").glob("state/*.json"))

    def write_config(self) -> None:
        """Write the role's file in modprobe.d."""
        path = self.folder / "modprobe.d" / "gpu-kubernetes-nvidia-driver.conf"
        path.parent.mkdir()
        path.write_text("blacklist nouveau\n")

    @contextmanager
    def fail_step(self, step: str) -> Iterator[None]:
        """Let a step of a removal fail meanwhile, which ends the run there as a kill does.

        ``packages``: the check of their removal and the removal; ``removal``: the removal only; ``repository``: after the removal;
        ``uninstall``; ``initramfs``.
        """
        file = self.folder / f"{step}.fails"
        file.touch()
        yield
        file.unlink()

    def has_state(self, state: str, unit: str = DAEMON) -> bool:
        """Whether the daemon or the fabric manager is running, enabled or broken."""
        return (self.folder / f"{unit}.{state}").exists()

    def add_log_line(self, words: str) -> None:
        """Add a line to the log of the services."""
        with (self.folder / "services.log").open("a") as log:
            log.write(f"{words}\n")

    def read_actions(self) -> list[str]:
        """The actions on modules, then on services, since the last call."""
        log = self.folder / "services.log"
        services = log.read_text().splitlines() if log.exists() else []
        log.write_text("")
        commands = self.node.commands()
        self.node.clear_commands()
        return [*commands, *services]

    def build_variables(self, **variables: Any) -> dict[str, Any]:
        """The role's variables."""
        return {
            "nvidia_driver_state_dir": str(self.folder / "state"),
            "nvidia_driver_kernel_modules": "open",
            "vendor_packages_result": {"changed": False},
            **variables,
        }

    def write_play(
        self,
        *parts: str,
        path_of_programs: str = "",
        distribution: str = "Debian",
        family: str = "Debian",
        then: Sequence[dict[str, Any]] = (),
        **variables: Any,
    ) -> Path:
        """Write a playbook that sets the role's variables, then runs files of its tasks, then other tasks."""
        facts = {
            "distribution": distribution,
            "os_family": family,
            "kernel": "6.1.0-56-amd64",
            "architecture": "x86_64",
        }
        more = {"nodename": "node", "distribution_release": "bookworm", "distribution_major_version": "12"}
        roles = [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": file}} for file in ("set_vars", *parts)]
        set_facts = {**facts, **more, "distribution_version": "12.5", "cacheable": True}
        path = self.folder / "play.yml"
        play = {
            "hosts": "all",
            "gather_facts": False,
            "environment": {
                "PATH": path_of_programs or f"{self.node.programs}:{os.environ['PATH']}",
                FOLDER: str(self.folder),
            },
            "vars": self.build_variables(**variables),
            "tasks": [{"ansible.builtin.set_fact": set_facts}, *roles, *then],
        }
        path.write_text(json.dumps([play]))
        return path
