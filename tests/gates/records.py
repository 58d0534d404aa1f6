# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node on which one version of the collection changes files, and another one undoes that by the records of the first.

Its package manager and promtool are fakes, and so are GPUs with MIG, which require root.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakes.mig_node import MigNode
from fakes.nvml.simulated import NvmlBuilder
from lab.shell import run as shell

from . import release
from ._common import FQCN, ROOT

FOLDER = "{{ folder }}"
STATE = f"{FOLDER}/state"
FIXTURES = ROOT / "tests" / "unit" / "plugins" / "module_utils"
# Files as an administrator has them.
CONTAINERD = (
    'version = 2  # by the administrator\n\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "pause:3.9"\n'
)
CRIO = '[crio.runtime]\ndefault_runtime = "runc"\n\n[crio.runtime.runtimes.runc]\nruntime_root = "/run/runc"\n'
DOCKER = '{\n    "log-driver": "journald"\n}\n'
KUBELET = (FIXTURES / "_kubelet" / "fixtures" / "kubeadm-1.34.4.yaml").read_text(encoding="utf-8")
SCHEDULER = (FIXTURES / "_scheduler" / "fixtures" / "kubeadm-1.34.4.yaml").read_text(encoding="utf-8")
PROMETHEUS = "global:\n  scrape_interval: 15s   # as everywhere\n"
PACKAGES = "base 3-1\n"
PACMAN = """#!/bin/sh
# pacman (fake): the installed packages are the lines of a file. The package driver brings the package helper.
cd {folder}
case "$1 $2" in
"--query --") grep "^$3 " packages ;;
"--query --deps") grep -q "^driver " packages || grep -o "^helper" packages ;;
"--query ") cat packages ;;
"--sync --noconfirm") printf 'driver 1.0-1\\nhelper 2.0-1\\n' >> packages ;;
"--remove --print") ;;
"--remove --nosave")
    shift 3
    for name; do sed -i "/^$name /d" packages; done ;;
*) exit 2 ;;
esac
"""
PROMTOOL = "#!/bin/sh\n# promtool (fake): it accepts all files.\n"
# The MIG devices of the simulated GPUs, by profile.
DEVICES = [{"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}, {}]
WRITE_DEVICES: dict[str, Any] = {
    "ansible.builtin.copy": {
        "content": "{{ mig.gpus | map(attribute='after') | map(attribute='profiles') | to_json(sort_keys=true) }}",
        "dest": f"{FOLDER}/devices.json",
    }
}
PLAY = [
    {
        "hosts": "all",
        "gather_facts": False,
        # The rows are independent of each other.
        "strategy": "ansible.builtin.free",
        "tasks": [{"ansible.builtin.include_tasks": "{{ state }}-{{ inventory_hostname }}.yml"}],
    }
]

Tasks = list[dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """What one module does: the files below the row's folder, before it and after its undo, the tasks that change them, and those that undo it."""

    module: str
    files: Mapping[str, str]
    present: Tasks
    absent: Tasks
    environment: Mapping[str, str] = field(default_factory=dict)


def task(module: str, **arguments: Any) -> dict[str, Any]:
    """A task with a module of this collection."""
    return {f"{FQCN}.{module}": arguments}


def row(module: str, files: Mapping[str, str], **arguments: Any) -> Row:
    """A module that changes with ``state: present`` and the arguments what it undoes with ``state: absent`` and the same."""
    return Row(
        module,
        files,
        present=[task(module, state="present", **arguments)],
        absent=[task(module, state="absent", **arguments)],
    )


ROWS = (
    row(
        "containerd_config",
        {"config.toml": CONTAINERD},
        path=f"{FOLDER}/config.toml",
        containerd_version="1.7.28",
        validate=False,
        state_dir=STATE,
    ),
    row("crio_config", {"crio.conf": CRIO}, path=f"{FOLDER}/crio.conf", validate=False, state_dir=STATE),
    row("docker_daemon_config", {"daemon.json": DOCKER}, path=f"{FOLDER}/daemon.json", validate=False, state_dir=STATE),
    row(
        "kubelet_config",
        {"config.yaml": KUBELET},
        path=f"{FOLDER}/config.yaml",
        values={"kubeReserved": {"memory": "1Gi"}},
        state_dir=STATE,
    ),
    row(
        "kube_scheduler_manifest",
        {"manifests/kube-scheduler.yaml": SCHEDULER},
        path=f"{FOLDER}/manifests/kube-scheduler.yaml",
        config_path=f"{FOLDER}/scheduler.yaml",
        extenders=[
            {
                "urlPrefix": "http://127.0.0.1:12345/gpushare-scheduler",
                "filterVerb": "filter",
                "bindVerb": "bind",
                "weight": 1,
                "nodeCacheCapable": True,
                "managedResources": [{"name": "aliyun.com/gpu-mem"}],
            }
        ],
        state_dir=STATE,
    ),
    row(
        "prometheus_config",
        {"prometheus.yml": PROMETHEUS},
        path=f"{FOLDER}/prometheus.yml",
        targets={"gpu1": {"address": "127.0.0.1:9835", "scheme": "http", "labels": {"node": "gpu1"}}},
        reload="none",
        state_dir=STATE,
    ),
    row(
        "modprobe_config",
        {},
        path=f"{FOLDER}/gpu-kubernetes.conf",
        blacklist=["nouveau"],
        initramfs=False,
        state_dir=STATE,
    ),
    # Each kernel of Linux has this file system and this value.
    row(
        "kernel_settings",
        {},
        modules=["proc"],
        sysctl={"kernel.ostype": "Linux"},
        modules_file=f"{FOLDER}/modules.conf",
        sysctl_file=f"{FOLDER}/sysctl.conf",
    ),
    row(
        "host_packages",
        {"packages": PACKAGES},
        name=["driver"],
        manager="pacman",
        record=f"{STATE}/state/packages-driver.json",
    ),
    # A change that was not verified.
    Row(
        "config_snapshot",
        {"daemon.json": DOCKER},
        [
            task("config_snapshot", paths=[f"{FOLDER}/daemon.json"], state="taken", state_dir=STATE),
            task("docker_daemon_config", path=f"{FOLDER}/daemon.json", validate=False, state_dir=STATE),
        ],
        [
            task("config_snapshot", paths=[f"{FOLDER}/daemon.json"], state=state, state_dir=STATE)
            for state in ("restored", "dropped")
        ],
    ),
)


def make_mig_row(folder: Path) -> Row:
    """The row of the module mig_layout, with simulated GPUs in the folder. The module requires root."""
    folder.mkdir()
    node = MigNode(folder / "node", NvmlBuilder(folder).library("h100-mig"))
    arguments = node.arguments(
        layout=[{"gpus": "all", "profiles": {"1g.10gb": 7}}],
        services=[],
        boot_program=f"{FOLDER}/mig.pyz",
        boot_config=f"{FOLDER}/mig.json",
        state_dir=STATE,
    )
    present, absent = (
        [{**task("mig_layout", state=state, **arguments), "register": "mig"}, WRITE_DEVICES]
        for state in ("present", "absent")
    )
    files = {"devices.json": json.dumps(DEVICES, sort_keys=True)}
    return Row("mig_layout", files, present, absent, node.environment)


class Host:
    """A node: below its folder, each row has one of its own."""

    def __init__(self, folder: Path, rows: Iterable[Row]) -> None:
        self.folder, self.rows = folder, {each.module: each for each in rows}
        hosts = {name: {"folder": str(folder / name)} for name in self.rows}
        here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        self._write("inventory.yml", json.dumps({"all": {"hosts": hosts, "vars": here}}))
        self._write("play.yml", json.dumps(PLAY))
        for name, each in self.rows.items():
            (folder / name).mkdir()
            self._write(f"present-{name}.yml", json.dumps(each.present))
            self._write(f"absent-{name}.yml", json.dumps(each.absent))
            for file, content in each.files.items():
                self._write(f"{name}/{file}", content)
        for name, text in (("pacman", PACMAN.format(folder=folder / "host_packages")), ("promtool", PROMTOOL)):
            self._write(f"programs/{name}", text).chmod(0o755)

    def _write(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        return path

    def change(self, state: str, collections: Path) -> None:
        """Run the tasks of all rows for a state, with the collection below *collections*. Raises LabError."""
        env = release.environment(self.folder) | {
            "ANSIBLE_COLLECTIONS_PATH": str(collections),
            "ANSIBLE_PIPELINING": "1",
            "PATH": os.pathsep.join([str(self.folder / "programs"), os.environ["PATH"]]),
        }
        for each in self.rows.values():
            env |= each.environment
        # A lab on this machine may hold the devices of its own simulated GPUs.
        alone = ["unshare", "--pid", "--fork", "--mount-proc"] if os.geteuid() == 0 else []
        options = ["--inventory", "inventory.yml", "--extra-vars", f"state={state}"]
        shell([*alone, release.tool("ansible-playbook"), *options, "play.yml"], env=env, cwd=self.folder)

    def read(self, module: str) -> dict[str, str]:
        """The files of a row now, by their path below its folder; without the collection's own."""
        folder = self.folder / module
        paths = [path for path in folder.rglob("*") if path.is_file() and folder / "state" not in path.parents]
        return {str(path.relative_to(folder)): path.read_bytes().decode("utf-8", "replace") for path in paths}

    def find_unchanged(self) -> list[str]:
        """The modules whose files are as before."""
        return [name for name, each in self.rows.items() if self.read(name) == each.files]

    def find_differences(self) -> list[str]:
        """The files that are not as before, and the records that are left, each with its module."""
        found = []
        for name, each in self.rows.items():
            now = self.read(name)
            differing = sorted(file for file in {*now, *each.files} if now.get(file) != each.files.get(file))
            records = sorted(str(path.relative_to(self.folder / name)) for path in self._list_records(name))
            found += [f"{name}: {file}" for file in [*differing, *records]]
        return found

    def _list_records(self, module: str) -> Iterable[Path]:
        return (self.folder / module / "state").rglob("*.json")
