# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake GPUs of AMD and Intel on a running node: a tree of sysfs below a folder, and null devices in /dev."""

from __future__ import annotations

from . import nodes
from .settings import FAKES, Node

#: Below it, playbooks and the fakes of device plugins find the GPUs (gpu_devices_root).
ROOT = "/srv/lab/gpu-sysfs"
_PROGRAM = "/srv/lab/gpu_sysfs.py"


def set_gpus(node: Node, case: str) -> None:
    """Give NODE the GPUs of a case of tests/fakes/gpu_sysfs.py beside those of NVIDIA, instead of those of the last call; ``none`` removes them."""
    nodes.put(node, {_PROGRAM: (FAKES / "gpu_sysfs.py").read_bytes()})
    options = ("--devices", "/dev", "--beside", "/sys/bus/pci/devices")
    nodes.execute(node, "python3", _PROGRAM, ROOT, case, *options)
