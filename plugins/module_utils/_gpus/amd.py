# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the GPUs of AMD as its device plugin reads them: from the driver amdgpu and the topology of KFD."""

from __future__ import annotations

import os
from typing import Any

from .._vendors import AMD
from .sysfs import (
    BUS,
    find_nodes,
    list_addresses,
    list_gpus_on_bus,
    list_names,
    read_driver,
    read_number,
    read_text,
)

DRIVER = "amdgpu"
# The folder is also there if the driver is part of the kernel, unlike the module's initstate.
BOUND = "sys/module/amdgpu/drivers/pci:amdgpu"
KFD = "sys/class/kfd"
PARTITIONS = "sys/devices/platform"
SMALLEST_BOARD = 4 * 1024**3  # bytes: GPUs in processors have less memory of their own
# PCI device id -> product, from the documentation of AMD's GPU operator (its list of supported devices).
MODELS: dict[str, str] = {
    "738c": "AMD Instinct MI100",
    "738e": "AMD Instinct MI100",
    "7408": "AMD Instinct MI250X",
    "740c": "AMD Instinct MI250",
    "740f": "AMD Instinct MI210",
    "7448": "AMD Radeon PRO W7900",
    "744c": "AMD Radeon RX 7900 XT",
    "745e": "AMD Radeon PRO W7800",
    "74a0": "AMD Instinct MI300A",
    "74a1": "AMD Instinct MI300X",
    "74a2": "AMD Instinct MI308X",
    "74a5": "AMD Instinct MI325X",
    "7550": "AMD Radeon RX 9070",
    "7551": "AMD Radeon AI PRO R9700",
    "75a0": "AMD Instinct MI350X",
    "75a3": "AMD Instinct MI355X",
    "75a8": "AMD Instinct MI350P",
}
# How AMD's labeller names the families of GPUs, by the generation of the instruction set.
FAMILIES: dict[int, str] = {9: "AI", 10: "NV"}


def read_devices(root: str = "/") -> list[dict[str, Any]]:
    """Return the GPUs of AMD below *root*, with their driver or without, in bus order. Memory is in bytes."""
    bound = {address: os.path.join(root, BOUND, address) for address in list_addresses(os.path.join(root, BOUND))}
    found = {
        address: os.path.join(root, BUS, address) for address in list_gpus_on_bus(root, AMD.pci_vendor, AMD.pci_classes)
    }
    topology = _read_topology(root)
    partitions = _find_partitions(root, topology)
    return [
        _read_device(
            address,
            bound.get(address) or found[address],
            DRIVER if address in bound else read_driver(found[address]),
            topology,
            partitions,
        )
        for address in sorted({**found, **bound})
    ]


def read_drivers(root: str = "/") -> dict[str, dict[str, Any]]:
    """Return whether amdgpu is loaded, its version (empty for the one of the kernel), and whether it offers KFD."""
    return {
        DRIVER: {
            "loaded": os.path.isdir(os.path.join(root, "sys/module/amdgpu")),
            "version": read_text(root, "sys/module/amdgpu/version"),
            "kfd": os.path.isdir(os.path.join(root, KFD)),
        }
    }


def _read_device(
    address: str,
    folder: str,
    driver: str,
    topology: dict[int, dict[str, int]],
    partitions: dict[str, list[int]],
) -> dict[str, Any]:
    card, render = find_nodes(folder)
    numa = read_number(folder, "numa_node")
    style = _read_style(folder)
    minor = int(render[len("renderD") :] or 0)
    # AMD's plugin leaves out further partitions of a GPU without a NUMA node.
    more = partitions.get(address, []) if numa is not None and numa >= 0 else []
    nodes = [topology[each] for each in (minor, *more) if each in topology]
    first = nodes[0] if nodes else {}
    simd_count = sum(node.get("simd_count", 0) for node in nodes)
    memory = read_number(folder, "mem_info_vram_total") or sum(node.get("memory_bytes", 0) for node in nodes)
    device_id = read_text(folder, "device").lower()[2:]
    return {
        "vendor": AMD.name,
        "pci_address": address,
        "device_id": device_id,
        "model": read_text(folder, "product_name") or MODELS.get(device_id, ""),
        "memory_bytes": memory,
        "numa_node": numa,
        "driver": driver,
        "card": card,
        "render": render,
        "resource": AMD.resource,
        "partitions": 1 + len(more),
        "partition_style": style,
        "integrated": 0 < memory < SMALLEST_BOARD,
        "gfx": _name_gfx(first.get("gfx_target_version", 0)),
        "compute_units": simd_count // (first.get("simd_per_cu") or 4),
        "simd_count": simd_count,
        "family": FAMILIES.get(first.get("gfx_target_version", 0) // 10000, ""),
    }


def _read_style(folder: str) -> str:
    """Return how a GPU is partitioned, such as ``cpx_nps4``; empty for one that cannot be."""
    parts = [read_text(folder, f"current_{kind}_partition").lower() for kind in ("compute", "memory")]
    return "_".join(parts) if all(parts) else ""


def _name_gfx(version: int) -> str:
    """Return the name of an instruction set, such as ``gfx90a``, from its number, such as 90010."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else ""


def _read_topology(root: str) -> dict[int, dict[str, int]]:
    """Return the properties of KFD's GPUs by the minor number of their render node, with ``memory_bytes``."""
    nodes = os.path.join(root, KFD, "kfd/topology/nodes")
    found: dict[int, dict[str, int]] = {}
    for name in list_names(nodes, "[0-9]+"):
        values = _read_properties(os.path.join(nodes, name, "properties"))
        if values.get("simd_count") and values.get("drm_render_minor"):
            bank = _read_properties(os.path.join(nodes, name, "mem_banks/0/properties"))
            found[values["drm_render_minor"]] = {**values, "memory_bytes": bank.get("size_in_bytes", 0)}
    return found


def _read_properties(path: str) -> dict[str, int]:
    pairs = (line.split() for line in read_text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _find_partitions(root: str, topology: dict[int, dict[str, int]]) -> dict[str, list[int]]:
    """Return the render minors of the further partitions of each GPU. One that KFD does not have is not offered."""
    platform = os.path.join(root, PARTITIONS)
    found: dict[str, list[int]] = {}
    for name in list_names(platform, r"amdgpu_xcp_[0-9]+"):
        minor = int(find_nodes(os.path.join(platform, name))[1][len("renderD") :] or 0)
        if minor in topology:
            location = topology[minor].get("location_id", 0)
            address = f"{topology[minor].get('domain', 0):04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.0"
            found.setdefault(address, []).append(minor)
    return found
