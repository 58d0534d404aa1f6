# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds GPUs and NVSwitches on the PCI bus, where no driver is needed: NVIDIA's, and in brief GPUs of others."""

from __future__ import annotations

import glob
import os
from typing import Any, Sequence

from .._vendors import OTHERS, SERVED
from .model import Gpu, get_sort_key

# Names of vendors and devices, from the package pci.ids or hwdata.
PCI_IDS: tuple[str, ...] = ("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids", "/var/lib/pciutils/pci.ids")
BRIDGE_CLASS = "0x0680"  # the class in which NVIDIA's driver searches for NVSwitches
# NVSwitches of V100, A100 and H100 boards, first and last id. Those of B200 boards are behind network cards and not on this bus.
SWITCHES: tuple[tuple[int, int], ...] = ((0x1AC2, 0x1AC2), (0x1AE8, 0x1AE8), (0x1AF0, 0x1AFF), (0x22A0, 0x22A7))
# Files of kernel drivers with a GPU's own memory in bytes: amdgpu; xe, by tile; Intel's own i915. Linux's i915 has none.
MEMORY: tuple[str, ...] = ("mem_info_vram_total", "tile*/physical_vram_size_bytes", "drm/card*/lmem_total_bytes")
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


def read_gpus(path: str) -> tuple[Gpu, ...]:
    """The GPUs of NVIDIA below ``path`` (a ``/sys/bus/pci/devices``), in bus order; empty if it cannot be read.

    Virtual functions of vGPU hosts do not count, as in NVML: they are for virtual machines.
    """
    found = []
    for address in _list_devices(path, [SERVED.pci_vendor], SERVED.pci_classes):
        if os.path.lexists(os.path.join(path, address, "physfn")):
            continue
        device = _read_value(os.path.join(path, address), "device") or ""
        found.append(Gpu(pci_address=address, pci_device_id=device[2:] or None, name=NAMES.get(device)))
    return tuple(found)


def read_driver_gpus(path: str) -> tuple[Gpu, ...]:
    """The GPUs of *read_gpus* with NVIDIA's driver or none: not those of a virtual machine or of nouveau."""
    return tuple(gpu for gpu in read_gpus(path) if _read_driver(path, gpu.pci_address or "") in ("", "nvidia"))


def _read_driver(path: str, address: str) -> str:
    """Name of a device's kernel driver; empty without one."""
    try:
        return os.path.basename(os.readlink(os.path.join(path, address, "driver")))
    except OSError:
        return ""


def read_numa_node(path: str, address: str) -> int | None:
    """The NUMA node of a device; ``None`` if the machine reports none."""
    try:
        number = int(_read_value(os.path.join(path, address), "numa_node") or "-1")
    except ValueError:
        return None
    return number if number >= 0 else None


def read_class(path: str, address: str | None) -> str | None:
    """The class of a device, such as ``0x030200``; ``None`` if it cannot be read."""
    return _read_value(os.path.join(path, address), "class") if address else None


def count_switches(path: str) -> int:
    """How many NVSwitches are below ``path``."""
    addresses = _list_devices(path, [SERVED.pci_vendor], (BRIDGE_CLASS,))
    return sum(_is_switch(_read_value(os.path.join(path, address), "device")) for address in addresses)


def _is_switch(device: str | None) -> bool:
    try:
        number = int(device or "", 16)
    except ValueError:
        return False
    return any(first <= number <= last for first, last in SWITCHES)


def has_other_gpus(path: str) -> bool:
    """Whether ``path`` may have GPUs of other vendors; queries no driver."""
    return any(_list_devices(path, [vendor.pci_vendor], vendor.pci_classes) for vendor in OTHERS)


def read_other_gpus(path: str, ids: Sequence[str] = PCI_IDS) -> list[dict[str, Any]]:
    """The GPUs of other vendors below ``path``, in bus order, with name and memory; *ids* are files with names of models."""
    found = []
    for vendor in OTHERS:
        for address in _list_devices(path, [vendor.pci_vendor], vendor.pci_classes):
            folder = os.path.join(path, address)
            device = _read_value(folder, "device") or ""
            found.append(
                {
                    "vendor": vendor.name,
                    "name": _read_value(folder, "product_name", lower=False)
                    or _find_model(vendor.pci_vendor[2:], device[2:], ids),
                    "pci_address": address,
                    "memory_total_bytes": _read_memory(folder),
                }
            )
    return sorted(found, key=lambda gpu: get_sort_key(gpu["pci_address"]))


def _read_memory(folder: str) -> int | None:
    """Bytes of memory of all tiles of a device; ``None`` if its driver reports no number."""
    for pattern in MEMORY:
        values = [
            _read_value(folder, name) or "" for name in sorted(glob.glob(os.path.join(glob.escape(folder), pattern)))
        ]
        if values and all(text.isdigit() for text in values):
            return sum(map(int, values))
    return None


def _list_devices(path: str, vendors: Sequence[str], classes: tuple[str, ...]) -> list[str]:
    """Addresses of the devices of *vendors* and *classes*, in bus order."""
    try:
        addresses = os.listdir(path)
    except OSError:
        return []
    found = []
    for address in addresses:
        folder = os.path.join(path, address)
        if _read_value(folder, "vendor") in vendors and (_read_value(folder, "class") or "").startswith(classes):
            found.append(address)
    return sorted(found, key=get_sort_key)


def _find_model(vendor: str, device: str, ids: Sequence[str]) -> str | None:
    """Name of a device in the first of the files *ids* that is there: devices are indented below their vendor."""
    for path in ids:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                inside = False
                for line in file:
                    if not line.startswith(("\t", "#", "\n")):
                        inside = line.startswith(f"{vendor} ")
                    elif inside and line.startswith(f"\t{device} "):
                        return line.split(None, 1)[1].strip()
                return None
        except OSError:
            continue
    return None


def _read_value(folder: str, name: str, lower: bool = True) -> str | None:
    """One attribute of a device; it may go away while it is read."""
    try:
        with open(os.path.join(folder, name), encoding="ascii", errors="replace") as file:
            text = file.read().strip()
            return text.lower() if lower else text
    except OSError:
        return None
