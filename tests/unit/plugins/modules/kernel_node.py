# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake kernel of a node: a tree of files, and fake programs modprobe, rmmod and modinfo that change it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEPENDS = {
    "nvidia": [],
    "nvidia_uvm": ["nvidia"],
    "nvidia_modeset": ["nvidia"],
    "nvidia_drm": ["nvidia_modeset"],
    "gdrdrv": ["nvidia"],
}

# The part of kmod that the module uses. "errors" are {"program module": message of its failure}, and "files" are the other file names of
# modules, as modprobe.d has them.
PROGRAM = """#!{python}
import json, os, shutil, sys

folder = os.path.dirname(os.path.abspath(__file__))
def node(): return json.load(open(os.path.join(folder, "node.json")))
def path(name): return os.path.join(data["root"], name)
def put(name, text):
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    open(path(name), "w").write(text)
def fail(words): sys.exit(program + ": ERROR: " + words)

data = node()
program, name = os.path.basename(__file__), sys.argv[-1]
if sys.argv[1] == "--show-depends":
    if name not in data["files"]: fail("FATAL: Module " + name + " not found in directory /lib/modules")
    print("install modprobe nvidia ; modprobe -i " + data["files"][name] + " $CMDLINE_OPTS ")
    sys.exit()
with open(os.path.join(folder, "log"), "a") as log: log.write(program + " " + name + "\\n")
words = data["errors"].get(program + " " + name)
if words: fail(words)
if program == "modinfo":
    found = [each for each in data["installed"] if data["files"].get(each, each) == name]
    if not found: fail("Module " + name + " not found.")
    print(data["installed"][found[0]].get(sys.argv[2], ""))
    sys.exit()

def load(name):
    for each in data["depends"][name]:
        if each not in data["loaded"]: load(each)
    if name not in data["installed"]: fail("FATAL: Module " + name + " not found.")
    data["loaded"][name] = 0

if program == "modprobe" and name not in data["loaded"]:
    fresh = "nvidia" not in data["loaded"]
    load(name)
    if fresh:
        facts = data["installed"]["nvidia"]
        for key in ("version", "srcversion"): put("sys/module/nvidia/" + key, facts[key] + "\\n")
        put("proc/driver/nvidia/params", "".join(k + ": " + v + "\\n" for k, v in data["modprobe_d"].items()))
if program == "rmmod":
    holders = [each for each in data["loaded"] if name in data["depends"][each]]
    if holders: fail("Module " + name + " is in use by: " + " ".join(holders))
    if data["loaded"][name]: fail("Module " + name + " is in use")
    del data["loaded"][name]
    if name == "nvidia":
        shutil.rmtree(path("sys/module/nvidia")); shutil.rmtree(path("proc/driver/nvidia"))
rows = []
for each, uses in data["loaded"].items():
    holders = [other for other in data["loaded"] if each in data["depends"][other]]
    count = str(uses + len(holders))
    rows.append(" ".join([each, "4096", count, "".join(h + "," for h in holders) or "-", "Live", "0x0"]) + "\\n")
put("proc/modules", "ext4 4096 1 - Live 0x0\\n" + "".join(rows))
json.dump(data, open(os.path.join(folder, "node.json"), "w"))
"""


def build(version: str, srcversion: str = "AAA") -> dict[str, dict[str, str]]:
    """Return what modinfo reports of each module of a driver."""
    parameters = "NVreg_EnableStreamMemOPs:int\nNVreg_RestrictProfilingToAdminUsers:int\nNVreg_Secret:int"
    common = {"filename": "/lib/modules/x.ko", "version": version, "srcversion": srcversion, "parm": parameters}
    return {name: dict(common) for name in DEPENDS}


@dataclass
class Node:
    """Below ``folder``: the tree ``root``, and the programs in ``programs``."""

    folder: Path

    def __post_init__(self) -> None:
        """Make a node with the driver 570.2 installed and nothing loaded."""
        self.root, self.programs = self.folder / "root", self.folder / "programs"
        self.programs.mkdir()
        for name in ("modprobe", "rmmod", "modinfo"):
            (self.programs / name).write_text(PROGRAM.replace("{python}", sys.executable, 1))
            (self.programs / name).chmod(0o755)
        data = {
            "root": str(self.root),
            "depends": DEPENDS,
            "loaded": {},
            "installed": build("570.2"),
            "errors": {},
            "files": {},
        }
        self._write({**data, "modprobe_d": {"EnableStreamMemOPs": "0", "RmProfilingAdminOnly": "1"}})
        self.put("proc/modules", "ext4 4096 1 - Live 0x0\n")

    def _read(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.programs / "node.json").read_text())
        return data

    def _write(self, data: dict[str, Any]) -> None:
        (self.programs / "node.json").write_text(json.dumps(data))

    def put(self, path: str, text: str) -> Path:
        """Write a file of the tree."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def set(self, **values: Any) -> None:
        """Change the data of the programs, such as ``installed``, ``errors`` and ``modprobe_d``."""
        self._write({**self._read(), **values})

    def hold(self, name: str, count: int = 1) -> None:
        """Add users to a loaded module, as others do after a check."""
        data = self._read()
        self.set(loaded={**data["loaded"], name: count})

    def load(self, *names: str) -> None:
        """Load modules, as an administrator would."""
        for name in names:
            subprocess.run([str(self.programs / "modprobe"), "--", name], check=True)
        self.clear_commands()

    def process(self, pid: int, device: str, command: str = "python3", cgroup: str = "/user.slice") -> None:
        """Let a process have a device open."""
        self.put(f"proc/{pid}/comm", f"{command}\n")
        self.put(f"proc/{pid}/cgroup", f"0::{cgroup}\n")
        folder = self.root / f"proc/{pid}/fd"
        folder.mkdir(exist_ok=True)
        (folder / "0").symlink_to("/dev/null")
        (folder / "7").symlink_to(device)

    def loaded(self) -> list[str]:
        """The modules that are loaded, in the order of loading."""
        return list(self._read()["loaded"])

    def clear_commands(self) -> None:
        """Clear the list of commands."""
        (self.programs / "log").write_text("")

    def commands(self) -> list[str]:
        """The commands since then, without those that only read."""
        path = self.programs / "log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if not line.startswith("modinfo ")]
