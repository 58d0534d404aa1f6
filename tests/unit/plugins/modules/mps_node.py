# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with control daemons of MPS: its /proc, its folder of MPS, and the programs nvidia-cuda-mps-control (fake) and umount (fake)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import node_module

# Answers as the driver's program does, if the folder of the pipe has a file "answers"; it notes its commands. A daemon that quits ends its processes.
CONTROL = """#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY" || exit 1
read command
echo "$CUDA_MPS_PIPE_DIRECTORY: $command" >> "{commands}"
[ -e answers ] || {{ echo "Cannot find MPS control daemon process" >&2; exit 1; }}
if [ "$command" = quit ]; then [ -e busy ] || rm -r $(cat processes); exit 0; fi
sed -n "s/^$command = //p" answers
"""
UMOUNT = """#!/bin/sh
echo "umount $1" >> "{commands}"
[ -e "{root}/busy" ] && {{ echo "umount: $1: target is busy." >&2; exit 32; }}
# The last one, as the kernel does.
tac "{mounts}" | awk -v place="$1" '$5 == place && !done {{ done = 1; next }} 1' | tac > "{mounts}.new"; mv "{mounts}.new" "{mounts}"
"""


class Node:
    """``path`` is its folder of MPS."""

    def __init__(self, folder: Path) -> None:
        self.root, self.programs = folder / "root", folder / "bin"
        self.path, self.proc = self.root / "run/nvidia/mps", self.root / "proc"
        self.mounts, self.noted = self.proc / "self/mountinfo", folder / "commands"
        self.mounts.parent.mkdir(parents=True)
        self.mounts.write_text("22 1 0:20 / / rw - ext4 /dev/sda rw\n23 22 0:21 / /run rw - tmpfs tmpfs rw\n")
        self.programs.mkdir()
        places = {"commands": self.noted, "root": self.root, "mounts": self.mounts}
        for name, script in (("nvidia-cuda-mps-control", CONTROL), ("umount", UMOUNT)):
            (self.programs / name).write_text(script.format(**places))
            (self.programs / name).chmod(0o755)

    @property
    def pipe(self) -> Path:
        """The folder of the pipe of the whole GPUs' daemon."""
        return self.path / "nvidia.com/gpu/pipe"

    def leave(self) -> None:
        """Leave what a daemon leaves that was killed: files and the tmpfs."""
        self.pipe.mkdir(parents=True)
        (self.pipe / "control").touch()
        (self.path / "shm").mkdir()
        with self.mounts.open("a") as file:
            file.write(f"24 23 0:22 / {self.path}/shm rw - tmpfs tmpfs rw\n")

    def start(self, pid: int, program: str, pipe: str = "/mps/nvidia.com/gpu/pipe", answers: str = "") -> None:
        """Add a process; with answers, the control program reaches it."""
        process = self.proc / str(pid)
        process.mkdir()
        (process / "cmdline").write_bytes(f"/usr/bin/{program}\0-d\0".encode())
        (process / "environ").write_bytes(f"HOME=/\0CUDA_MPS_PIPE_DIRECTORY={pipe}\0".encode())
        if answers:
            (self.pipe / "answers").write_text(answers)
            with (self.pipe / "processes").open("a") as file:
                file.write(f"{process}\n")

    def commands(self) -> list[str]:
        """The commands of both programs so far, without the host's folder."""
        text = self.noted.read_text() if self.noted.exists() else ""
        return text.replace(str(self.path), "MPS").splitlines()

    def run(self, name: str, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        """Run a module on the host."""
        given = {"path": str(self.path), **arguments}
        return node_module.run(name, given, check=check, folder=str(self.programs), root=str(self.root))
