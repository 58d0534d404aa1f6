# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the GPUs of Intel as its device plugin reads them: from the cards of DRM."""

from __future__ import annotations

import glob
import os
from typing import Any

from .._vendors import INTEL
from .sysfs import ADDRESS, BUS, find_nodes, list_gpus_on_bus, list_names, read_driver, read_number, read_text

DRIVERS = ("i915", "xe")
CARDS = "sys/class/drm"
PROCESSOR = "0000:00:02.0"  # the address of a GPU in the processor
# Files with a GPU's own memory in bytes: xe, by tile; Intel's own i915. Linux's i915 has none.
MEMORY: tuple[str, ...] = ("tile*/physical_vram_size_bytes", "drm/card*/lmem_total_bytes")
# PCI device id -> product, from Linux (include/drm/intel/pciids.h) and Intel's list of GPUs by device id.
MODELS: dict[str, str] = {
    "0bd5": "Intel Data Center GPU Max 1550",
    "0bda": "Intel Data Center GPU Max 1100",
    "56a0": "Intel Arc A770",
    "56a1": "Intel Arc A750",
    "56a5": "Intel Arc A380",
    "56c0": "Intel Data Center GPU Flex 170",
    "56c1": "Intel Data Center GPU Flex 140",
    "e20b": "Intel Arc B580",
    "e20c": "Intel Arc B570",
}


def read_devices(root: str = "/") -> list[dict[str, Any]]:
    """Return the GPUs of Intel below *root*, with their driver or without, in bus order. Memory is in bytes."""
    found = {
        address: os.path.join(root, BUS, address)
        for address in list_gpus_on_bus(root, INTEL.pci_vendor, INTEL.pci_classes)
    }
    for card in list_names(os.path.join(root, CARDS), r"card[0-9]+"):
        device = os.path.join(root, CARDS, card, "device")
        address = os.path.basename(os.path.realpath(device))
        if ADDRESS.fullmatch(address) and read_text(device, "vendor").lower() == INTEL.pci_vendor:
            found[address] = device
    return [_read_device(address, found[address]) for address in sorted(found)]


def read_drivers(root: str = "/") -> dict[str, dict[str, Any]]:
    """Return by driver whether it is loaded, and its version, which is empty for the one of the kernel."""
    return {
        name: {
            "loaded": os.path.isdir(os.path.join(root, "sys/module", name)),
            "version": read_text(root, "sys/module", name, "version"),
        }
        for name in DRIVERS
    }


def _read_device(address: str, folder: str) -> dict[str, Any]:
    card, render = find_nodes(folder)
    driver = read_driver(folder)
    device_id = read_text(folder, "device").lower()[2:]
    functions = read_number(folder, "sriov_numvfs") or 0
    return {
        "vendor": INTEL.name,
        "pci_address": address,
        "device_id": device_id,
        "model": MODELS.get(device_id, ""),
        "memory_bytes": _read_memory(folder),
        "numa_node": read_number(folder, "numa_node"),
        "driver": driver,
        "card": card,
        "render": render,
        "resource": f"{INTEL.domain}/{driver}" if driver in DRIVERS else "",
        # Intel's plugin offers the virtual functions of a GPU and not the GPU.
        "partitions": 0 if functions else 1,
        "partition_style": "",
        "integrated": address == PROCESSOR,
        "sriov_vfs": functions,
    }


def _read_memory(folder: str) -> int:
    """Return the bytes of memory of all tiles; 0 if the driver reports none."""
    for pattern in MEMORY:
        values = [read_number(path) or 0 for path in glob.glob(os.path.join(glob.escape(folder), pattern))]
        if any(values):
            return sum(values)
    return 0
