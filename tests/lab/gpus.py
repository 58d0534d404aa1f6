# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated GPUs of a node: an NVML library, device nodes and a PCI tree. Nothing above NVML is simulated."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from fakes.nvml import nvml_profile

from .progress import step
from .settings import FAKES, Node, Settings
from .shell import run

SOURCE = FAKES / "nvml"
_MAJOR, _CAPABILITIES_MAJOR = 195, 236
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
#: Has the device nodes.
DEVICES = "/etc/tmpfiles.d/nvidia.conf"
# What the simulated GPUs remember: until the next boot, and for longer. Containers have both folders, since a driver is the same for all of a machine.
_STATE, _INFOROM = "/run/nvml-fake", "/var/lib/nvml-fake"
FOLDERS = (_STATE, _INFOROM)
_PROC = f"{_STATE}/proc"
# Of the node image's unit nvml-fake.service, which runs only where the program is.
_PROGRAM = "/usr/local/lib/nvml-fake/capabilities.py"


def profile(node: Node) -> Path:
    """Profile file of NODE; a node without GPUs has the profile ``none``."""
    return SOURCE / "profiles" / f"{node.gpus or 'none'}.profile"


def _digest(settings: Settings) -> str:
    sources = [
        path
        for path in sorted(SOURCE.rglob("*"))
        if (path.is_file() and path.suffix in {".c", ".h", ".py", ".profile"}) or path.name == "Makefile"
    ]
    content = b"".join(path.read_bytes() for path in sources)
    return hashlib.sha256(content + (settings.nvml.read_bytes() if settings.nvml else b"")).hexdigest()[:12]


def library(settings: Settings) -> Path:
    """The NVML library: the simulated one, or the file of LAB_NVML."""
    if settings.nvml:
        return settings.nvml
    target = settings.cache / f"nvml-{_digest(settings)}"
    built = target / "libnvidia-ml.so.1"
    if not built.is_file():
        with step("build the simulated NVML library"):
            run(["make", "-C", SOURCE, f"OUT={target}"])
    return built


def pci_tree(settings: Settings, node: Node) -> Path:
    """Folder that is mounted over the node's /sys/bus/pci/devices."""
    target = settings.cache / f"pci-{_digest(settings)}" / profile(node).stem
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            run(["python3", SOURCE / "pci_tree.py", profile(node), f"{scratch}/tree"])
            Path(scratch, "tree").rename(target)
    return target


def files(settings: Settings, node: Node) -> dict[str, bytes]:
    """The files of a driver on NODE: library and device nodes."""
    if not has_driver(node):
        return {}
    scratch = settings.state / "nodes" / node.name
    scratch.mkdir(parents=True, exist_ok=True)
    composed = scratch / "libnvidia-ml.so"
    paths = {"state": f"{_STATE}/state", "inforom": f"{_INFOROM}/inforom", "proc": _PROC}
    keys = [word for key, path in paths.items() for word in ("--set", f"{key}={path}")]
    run(["python3", SOURCE / "compose.py", library(settings), profile(node), composed, "--seed", node.name, *keys])
    return {
        f"{LIBRARIES}/libnvidia-ml.so.{driver_version(node)}": composed.read_bytes(),
        DEVICES: "".join([*_device_lines(node), *_capability_lines(node, composed)]).encode(),
        **{path: (SOURCE / name).read_bytes() for path, name in programs(node).items()},
    }


def programs(node: Node) -> dict[str, str]:
    """The programs of a driver on NODE: path -> file of the simulation."""
    if not has_driver(node):
        return {}
    return {"/usr/bin/nvidia-smi": "nvidia_smi.py", **({_PROGRAM: "capabilities.py"} if has_mig(node) else {})}


def has_driver(node: Node) -> bool:
    """Whether NODE has GPUs."""
    return node.gpus not in ("", "none")


def has_mig(node: Node) -> bool:
    """Whether a GPU of NODE has MIG."""
    return "mig_profile" in nvml_profile.sections(profile(node).read_text())[0]


def driver_version(node: Node) -> str:
    """Version of the simulated driver, as in its library's file name."""
    return nvml_profile.sections(profile(node).read_text())[0]["driver_version"]


def _device_lines(node: Node) -> list[str]:
    """The lines of tmpfiles.d that create at boot the character devices of a driver."""
    minors = {
        **{f"nvidia{gpu.minor}": gpu.minor for gpu in nvml_profile.read(profile(node))},
        "nvidiactl": 255,
        "nvidia-modeset": 254,
    }
    return [f"c /dev/{name} 0666 root root - {_MAJOR}:{minor}\n" for name, minor in minors.items()]


def _capability_lines(node: Node, composed: Path) -> list[str]:
    """The lines of tmpfiles.d for the devices of all MIG partitions that the GPUs of NODE can have, and for the folders of the state."""
    folders = [f"d {folder} 0755 root root -\n" for folder in FOLDERS]
    if not has_mig(node):
        return folders
    with tempfile.TemporaryDirectory() as scratch:
        command: list[str | Path] = ["python3", SOURCE / "capabilities.py", composed, f"{scratch}/proc"]
        environment = {"NVML_STATE": f"{scratch}/state", "NVML_INFOROM": f"{scratch}/inforom"}
        printed = run([*command, "--devices", str(_CAPABILITIES_MAJOR)], env={**os.environ, **environment})
    return [*folders, "d /dev/nvidia-caps 0755 root root -\n", printed]


def identity(settings: Settings, node: Node) -> str:
    """A text that changes with the simulation on NODE."""
    return f"{profile(node).stem} {_digest(settings)}"
