# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds NVIDIA GPUs on the PCI bus, where no driver is needed."""

from __future__ import annotations

import os

from .model import Gpu, address_key

VENDOR = "0x10de"
DISPLAY_CLASS = "0x03"  # 0x0300 with display output, 0x0302 without
# PCI device id -> name as NVML gives it, for data-centre GPUs. An unknown id has no name, nothing worse.
NAMES: dict[str, str] = {
    "0x15f8": "Tesla P100-PCIE-16GB",
    "0x15f9": "Tesla P100-SXM2-16GB",
    "0x1b38": "Tesla P40",
    "0x1bb3": "Tesla P4",
    "0x1db1": "Tesla V100-SXM2-16GB",
    "0x1db4": "Tesla V100-PCIE-16GB",
    "0x1db5": "Tesla V100-SXM2-32GB",
    "0x1db6": "Tesla V100-PCIE-32GB",
    "0x1eb8": "Tesla T4",
    "0x20b0": "NVIDIA A100-SXM4-40GB",
    "0x20b2": "NVIDIA A100-SXM4-80GB",
    "0x20b5": "NVIDIA A100 80GB PCIe",
    "0x20b7": "NVIDIA A30",
    "0x20f1": "NVIDIA A100-PCIE-40GB",
    "0x20f3": "NVIDIA A800-SXM4-80GB",
    "0x20f5": "NVIDIA A800 80GB PCIe",
    "0x2235": "NVIDIA A40",
    "0x2236": "NVIDIA A10",
    "0x2237": "NVIDIA A10G",
    "0x2321": "NVIDIA H100 NVL",
    "0x2324": "NVIDIA H800",
    "0x2329": "NVIDIA H20",
    "0x2330": "NVIDIA H100 80GB HBM3",
    "0x2331": "NVIDIA H100 PCIe",
    "0x2335": "NVIDIA H200",
    "0x2342": "NVIDIA GH200 480GB",
    "0x26b5": "NVIDIA L40",
    "0x26b9": "NVIDIA L40S",
    "0x27b8": "NVIDIA L4",
    "0x2901": "NVIDIA B200",
}


def read(path: str) -> tuple[Gpu, ...]:
    """The GPUs below ``path`` (a ``/sys/bus/pci/devices``), in bus order; none where it cannot be read."""
    found: list[Gpu] = []
    try:
        addresses = os.listdir(path)
    except OSError:
        return ()
    for address in addresses:
        folder = os.path.join(path, address)
        if _value(folder, "vendor") == VENDOR and (_value(folder, "class") or "").startswith(DISPLAY_CLASS):
            found.append(Gpu(pci_address=address, name=NAMES.get(_value(folder, "device") or "")))
    return tuple(sorted(found, key=lambda gpu: address_key(gpu.pci_address or "")))


def _value(folder: str, name: str) -> str | None:
    """One attribute of a device; it may go away while it is read."""
    try:
        with open(os.path.join(folder, name), encoding="ascii", errors="replace") as file:
            return file.read().strip().lower()
    except OSError:
        return None
