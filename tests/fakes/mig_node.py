# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node for MIG: the simulated NVML, nvidia-smi and nvidia-ctk (fakes), and systemctl, which logs. Runs on Python 3.8.

Both programs are fakes and say so. NVML's state is below the folder, where programs find it through the environment.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

SMI = """#!/bin/sh
# nvidia-smi (fake)
echo nvidia-smi "$@" >> {log}
[ "$1" = -L ] || NVML_LIBRARY={library} exec {python} {fakes}/nvml/nvidia_smi.py "$@"
"""
CTK = """#!{python}
# nvidia-ctk (fake): a specification with the MIG devices of the simulated NVML.
import sys
sys.path[:0] = {places!r}
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import mig
devices = ["%d:%d" % (gpu.index, part.number) for gpu in mig.Mig({library!r}).read() for part in gpu.partitions]
print("cdiVersion: 0.6.0 # fake")
print("devices: [" + ", ".join(devices) + "]")
"""
SYSTEMCTL = """#!/bin/sh
case "$1" in
is-active) [ "$4" = nvidia-dcgm ] && [ ! -e {folder}/dcgm-stopped ]; exit ;;
is-enabled) [ -e {folder}/units/multi-user.target.wants/"$2" ]; exit ;;
show) echo LoadState=loaded; echo ActiveState=inactive; exit ;;
esac
echo systemctl "$@" >> {log}
case "$1 $3" in
"stop nvidia-dcgm") : > {folder}/dcgm-stopped ;;
"start nvidia-dcgm") rm -f {folder}/dcgm-stopped ;;
"enable ") mkdir -p {folder}/units/multi-user.target.wants; ln -s ../"$2" {folder}/units/multi-user.target.wants/ ;;
esac
"""


class MigNode:
    """A node with the GPUs of a profile of the simulated NVML. Set ``environment`` for all programs that use NVML."""

    def __init__(self, folder: Path, library: str) -> None:
        self.folder = folder
        self.library = library
        self.programs = folder / "programs"
        self.root = folder / "root"
        self.state = folder / "state"
        self.log = folder / "log"
        self.spec = folder / "nvidia.yaml"
        self.environment = {"NVML_STATE": str(folder / "nvml-state"), "NVML_INFOROM": str(folder / "nvml-inforom")}
        (self.root / "proc").mkdir(parents=True)
        self.programs.mkdir()
        values = {
            "python": sys.executable,
            "log": str(self.log),
            "library": library,
            "places": [place for place in sys.path if place],
            "folder": str(folder),
            "fakes": str(Path(__file__).parent),
        }
        for name, text in (("nvidia-smi", SMI), ("nvidia-ctk", CTK), ("systemctl", SYSTEMCTL)):
            (self.programs / name).write_text(text.format(**values))
            (self.programs / name).chmod(0o755)

    def arguments(self, **more: Any) -> dict[str, Any]:
        """Parameters of the module mig_layout for this node."""
        return {
            "library": self.library,
            "nvidia_smi": str(self.programs / "nvidia-smi"),
            "cdi_specs": [str(self.spec)],
            "cdi_command": [str(self.programs / "nvidia-ctk"), "cdi", "generate"],
            "services": ["nvidia-persistenced", "nvidia-dcgm"],
            "state_dir": str(self.state),
            "boot_program": str(self.folder / "lib" / "mig.pyz"),
            "boot_config": str(self.folder / "etc" / "mig.json"),
            **more,
        }

    def boot(self) -> None:
        """Restart the node: the driver forgets its state, the InfoROM of the GPUs does not."""
        Path(self.environment["NVML_STATE"]).unlink(missing_ok=True)

    def add_holder(self, pid: int, program: str, device: str, pod: str = "") -> None:
        """Have a process hold a device open, in the pod with that UID if it is given."""
        folder = self.root / "proc" / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "comm").write_text(program)
        (folder / "cgroup").write_text(f"0::/kubepods/besteffort/pod{pod}/{'0' * 64}\n" if pod else "0::/user.slice\n")
        (folder / "fd" / "3").symlink_to(device)

    def remove_holder(self, pid: int) -> None:
        """End that process."""
        shutil.rmtree(self.root / "proc" / str(pid))

    def read_log(self) -> list[str]:
        """What was started since the last call, without queries of systemctl."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return lines

    def read_record(self) -> dict[str, Any] | None:
        """The record of the GPUs as first met."""
        path = self.state / "state" / "mig.json"
        return json.loads(path.read_text()) if path.exists() else None

    def list_files(self) -> list[str]:
        """The files that the module has written."""
        folders = [self.state, self.folder / "lib", self.folder / "etc"]
        return sorted(
            os.path.join(at, name) for folder in folders for at, _dirs, names in os.walk(folder) for name in names
        )
