# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake GPUs of AMD and Intel on a running node: a tree of sysfs below a folder, and null devices in /dev; simulated GPUs of NVIDIA taken out and put back."""

from __future__ import annotations

from . import gpus, nodes
from .settings import FAKES, Node, Settings

#: Below it, playbooks and the fakes of device plugins find the GPUs (gpu_devices_root).
ROOT = "/srv/lab/gpu-sysfs"
_PROGRAM = "/srv/lab/gpu_sysfs.py"
_PCI = "/sys/bus/pci/devices"


def set_gpus(node: Node, case: str) -> None:
    """Give NODE the GPUs of a case of tests/fakes/gpu_sysfs.py beside those of NVIDIA, instead of those of the last call; ``none`` removes them."""
    nodes.put(node, {_PROGRAM: (FAKES / "gpu_sysfs.py").read_bytes()})
    options = ("--devices", "/dev", "--beside", "/sys/bus/pci/devices")
    nodes.execute(node, "python3", _PROGRAM, ROOT, case, *options)


def take_nvidia(settings: Settings, node: Node) -> None:
    """Take NVIDIA's simulated GPUs out of a running node: the files of the driver, device nodes and PCI devices."""
    nodes.execute(node, "rm", *gpus.files(settings, node))
    nodes.execute(node, "sh", "-c", f"rm -r /dev/nvidia* {gpus.LIBRARIES}/libnvidia-ml.so.1 && ldconfig")
    nodes.execute(node, "mount", "-t", "tmpfs", "none", _PCI)


def return_nvidia(settings: Settings, node: Node) -> None:
    """Put back what ``take_nvidia`` has taken."""
    nodes.execute(node, "umount", _PCI, check=False)  # not mounted if it was not taken as a whole
    nodes.put(node, gpus.files(settings, node), dict.fromkeys(gpus.programs(node), 0o755))
    nodes.execute(node, "sh", "-c", f"ldconfig && systemd-tmpfiles --create {gpus.DEVICES}")
