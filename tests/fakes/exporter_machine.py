# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host for the role gpu_exporter below one folder: systemd (fake), which starts the fake exporter on the simulated NVML, and /proc with its socket."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from lab.fakes.exporter import write_archive

CHECKOUT = Path(__file__).resolve().parents[2]
ROLE = "fake.machine.gpu_exporter"
UNIT = "nvidia_gpu_exporter.service"
SYSTEMCTL = """#!{python}
# systemctl (fake)
import os, pathlib, shlex, signal, subprocess, sys
folder = pathlib.Path({folder!r})
action, unit = sys.argv[1], pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "").name
unit += "" if unit.endswith(".service") else ".service"
file, wanted, running, loaded = folder / "units" / unit, folder / "units/multi-user.target.wants" / unit, folder / "pid", folder / "loaded"
proc = folder / "root/proc"

def log():
    with open(folder / "log", "a") as text:
        text.write(" ".join([action, unit] if action != "daemon-reload" else [action]) + "\\n")

def stop():
    if running.exists():
        pid = int(running.read_text())
        os.kill(pid, signal.SIGKILL)
        subprocess.run(["rm", "-r", str(proc / "12")], check=True)
        running.unlink()
        (proc / "net/tcp").write_text("header\\n")

def read_unit():
    return "".join(path.read_text() for path in [file, *sorted(file.with_name(unit + ".d").glob("*.conf"))])

def start():
    if running.exists():
        return
    text = read_unit()
    loaded.write_text(text)
    command = shlex.split([line[10:] for line in text.splitlines() if line.startswith("ExecStart=")][-1])
    with open(folder / "exporter.log", "w") as output:
        process = subprocess.Popen(command, start_new_session=True, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    running.write_text(str(process.pid))
    address, _colon, port = command[1].rpartition("=")[2].rpartition(":")
    (proc / "12/fd").mkdir(parents=True)
    (proc / "12/fd/3").symlink_to("socket:[101]")
    (proc / "12/cmdline").write_text("\\0".join(command))
    (proc / "12/cgroup").write_text("0::/system.slice/" + unit + "\\n")
    (proc / "net/tcp").write_text("header\\n 0: 0100007F:%04X 0:0 0A 0:0 0:0 0 0 0 101 1\\n" % int(port))

if action == "show":
    print("LoadState=" + ("loaded" if file.exists() else "not-found"))
    print("ActiveState=" + ("active" if running.exists() else "inactive"))
    print("NeedDaemonReload=" + ("yes" if running.exists() and loaded.read_text() != read_unit() else "no"))
    sys.exit()
if action == "is-enabled":
    print("enabled" if wanted.is_symlink() else "disabled")
    sys.exit(not wanted.is_symlink())
log()
if action == "enable":
    wanted.parent.mkdir(exist_ok=True)
    wanted.symlink_to("../" + unit)
elif action == "disable":
    wanted.unlink()
    wanted.parent.rmdir()
elif action in ("stop", "restart"):
    stop()
if action in ("start", "restart"):
    start()
"""
# A package (fake) is the program, with the unit of its maintainer.
APT = """#!/usr/bin/python
import pathlib, shutil
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"deb": {{}}, "name": {{}}, "state": {{}}, "purge": {{}}}})
folder = pathlib.Path({folder!r})
program, unit = folder / "usr/bin/nvidia_gpu_exporter", folder / "units/nvidia_gpu_exporter.service"
if module.params["deb"]:
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(module.params["deb"], program)
    program.chmod(0o755)
    unit.write_text("[Service]\\nExecStart=/nonexistent\\n")
elif module.params["name"] == "nvidia-gpu-exporter":
    unit.unlink()
    shutil.rmtree(program.parent)
module.exit_json(changed=True)
"""
PACKAGES = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
AnsibleModule({}).exit_json(ansible_facts={"packages": {"another-package": []}})
"""
# The accounts of the host, a file each: root, and those that the role creates.
GETENT = """#!/usr/bin/python
import pathlib
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"database": {{}}, "key": {{}}, "fail_key": {{}}}}, supports_check_mode=True)
key, database = module.params["key"], module.params["database"]
known = key == "root" or pathlib.Path({folder!r}, database, key).exists()
module.exit_json(ansible_facts={{"getent_" + database: {{key: ["x"] if known else None}}}})
"""
ACCOUNT = """#!/usr/bin/python
import pathlib
from ansible.module_utils.basic import AnsibleModule
names = ("group", "system", "home", "create_home", "shell")
module = AnsibleModule({{"name": {{}}, "state": {{"default": "present"}}, **dict.fromkeys(names, {{}})}}, supports_check_mode=True)
file = pathlib.Path({folder!r}, {database!r}, module.params["name"])
absent, group = module.params["state"] == "absent", module.params["group"] or ""
changes = file.exists() if absent else not file.exists() or file.read_text() != group
if changes and not module.check_mode:
    file.parent.mkdir(exist_ok=True)
    if not absent:
        file.write_text(group)
    else:
        # As userdel does with the primary group of the user's name.
        if file.read_text() == file.name:
            (file.parent.parent / "group" / file.name).unlink(missing_ok=True)
        file.unlink()
module.exit_json(changed=changes)
"""
REPLACED = ("apt", "package_facts", "getent", "user", "group")


class ExporterMachine:
    """The host, and the role with a module that reads the host's /proc."""

    def __init__(self, folder: Path, library: str) -> None:
        self.folder = folder
        self.library = library
        for name in ("units", "root/proc/net", "programs", "usr", "etc", "driver"):
            (folder / name).mkdir(parents=True)
        (folder / "root/proc/net/tcp").write_text("header\n")
        (folder / "driver" / "version").touch()
        (folder / "programs" / "systemctl").write_text(SYSTEMCTL.format(python=sys.executable, folder=str(folder)))
        (folder / "programs" / "systemctl").chmod(0o755)
        self.archive = folder / "archive.tar.gz"
        self.sha256 = write_archive(self.archive, sys.executable)
        collection = folder / "collections" / "ansible_collections" / "fake" / "machine"
        role = shutil.copytree(CHECKOUT / "roles" / "gpu_exporter", collection / "roles" / "gpu_exporter")
        # Relative paths lead to this role's tasks.
        shutil.copytree(CHECKOUT / "roles" / "_cluster_api", collection / "roles" / "_cluster_api")
        for path in (role / "tasks").glob("*.yml"):
            text = path.read_text().replace("gpu.kubernetes.listening", "fake.machine.listening")
            for module in REPLACED:
                text = text.replace(f" ansible.builtin.{module}:", f" fake.machine.{module}:")
            path.write_text(text)
        modules = collection / "plugins" / "modules"
        modules.mkdir(parents=True)
        (modules / "apt.py").write_text(APT.format(folder=str(folder)))
        (modules / "package_facts.py").write_text(PACKAGES)
        (modules / "getent.py").write_text(GETENT.format(folder=str(folder)))
        for name, database in (("user", "passwd"), ("group", "group")):
            (modules / f"{name}.py").write_text(ACCOUNT.format(folder=str(folder), database=database))
        module = (CHECKOUT / "plugins" / "modules" / "listening_sockets_info.py").read_text()
        (modules / "listening_sockets_info.py").write_text(
            module.replace('ROOT = "/"', f"ROOT = {str(folder / 'root')!r}")
        )

    def build_places(self) -> dict[str, str | list[str]]:
        """The role's places on this host, for extra variables, which precede the role's own."""
        return {
            "__gpu_exporter_units": str(self.folder / "units"),
            "__gpu_exporter_packaged_program": str(self.folder / "usr" / "bin" / "nvidia_gpu_exporter"),
            "__gpu_exporter_libraries": str(self.folder / "usr" / "lib"),
            "__gpu_exporter_configuration": str(self.folder / "etc" / "gpu-kubernetes"),
            "__gpu_exporter_driver_paths": [str(self.folder / "driver" / "version"), "/dev/nvidiactl"],
        }

    def write_play(self, *steps: dict[str, Any], port: int) -> Path:
        """A playbook that runs the role with the variables of each step, and prints the target after each."""
        common = {
            "gpu_exporter_read_cluster": False,
            "gpu_exporter_src": str(self.archive),
            "gpu_exporter_sha256": {os.uname().machine: self.sha256},
            "gpu_exporter_listen_address": "127.0.0.1",
            "gpu_exporter_port": port,
            "gpu_exporter_user": "root",
            "gpu_exporter_state_dir": str(self.folder / "state"),
            "gpu_exporter_wait_timeout": 20,
        }
        target = {"ansible.builtin.debug": {"msg": "TARGET|{{ gpu_exporter_target.values() | join('|') }}|END"}}
        roles = [{"ansible.builtin.include_role": {"name": ROLE}, "vars": {**common, **step}} for step in steps]
        environment = {"PATH": f"{self.folder / 'programs'}:{os.environ['PATH']}", "NVML_LIBRARY": self.library}
        tasks = [task for role in roles for task in (role, target)]
        play = {"hosts": "all", "gather_facts": False, "environment": environment, "tasks": tasks}
        path = self.folder / "play.yml"
        path.write_text(json.dumps([play]))
        return path

    def hide(self, variables: dict[str, Any]) -> None:
        """Set variables of all hosts by a file, since -vvv prints those of a playbook's task."""
        (self.folder / "group_vars").mkdir(exist_ok=True)
        (self.folder / "group_vars" / "all.json").write_text(json.dumps(variables))

    def add_listener(self, program: str, address: str, port: int, unit: str = "") -> None:
        """Have a process of others listen."""
        proc = self.folder / "root" / "proc"
        (proc / "30" / "fd").mkdir(parents=True)
        (proc / "30" / "fd" / "3").symlink_to("socket:[301]")
        (proc / "30" / "cmdline").write_text(program)
        (proc / "30" / "cgroup").write_text(f"0::/system.slice/{unit}.service\n" if unit else "0::/\n")
        with (proc / "net" / "tcp").open("a") as sockets:
            sockets.write(f" 1: {address}:{port:04X} 0:0 0A 0:0 0:0 0 0 0 301 1\n")

    def read_tree(self) -> dict[str, tuple[int, bytes]]:
        """Mode and content of all that the role may change."""
        found = {}
        for name in ("units", "usr", "etc", "state"):
            for path in sorted((self.folder / name).rglob("*")):
                content = (
                    b"" if path.is_dir() else os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                )
                found[str(path.relative_to(self.folder))] = (path.lstat().st_mode, content)
        return found

    def list_accounts(self) -> list[str]:
        """The users and groups that the role has created."""
        return sorted(
            str(path.relative_to(self.folder))
            for name in ("passwd", "group")
            for path in (self.folder / name).glob("*")
        )

    def read_log(self) -> list[str]:
        """The actions of systemctl since the last call."""
        log = self.folder / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def end(self) -> None:
        """End the exporter."""
        pid = self.folder / "pid"
        if pid.exists():
            # One that has failed has ended.
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
