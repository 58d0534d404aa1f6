#!/usr/bin/env python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fake sysfs and device nodes of AMD and Intel GPUs below a folder. Runs on Python 3.8.

The trees have what the vendors' device plugins, AMD's node labeller and this collection read; links have the same direction as in the kernel's sysfs.
As a program, ``gpu_sysfs.py ROOT CASE`` replaces ROOT/sys by the tree of a case, and ``--devices DEV`` creates character devices (null) in DEV.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import stat
import sys
import typing as t
from dataclasses import dataclass, field, replace
from pathlib import Path

GIB = 1 << 30
# Device ID -> gfx_target_version, SIMDs, VRAM in bytes, name that the board reports.
AMD_MODELS = {
    "74a1": (90402, 1216, 192 * GIB, "AMD Instinct MI300X OAM"),
    "74a5": (90402, 1216, 256 * GIB, "AMD Instinct MI325X"),
    "740f": (90010, 416, 64 * GIB, "AMD Instinct MI210"),
    "744c": (110000, 192, 24 * GIB, ""),
}
_AMD_ADDRESSES = ("0000:63:00.0", "0000:83:00.0", "0000:a3:00.0", "0000:c3:00.0")
_INTEL_ADDRESSES = ("0000:03:00.0", "0000:04:00.0", "0000:07:00.0", "0000:08:00.0")
_RENDER = 128
# The first card of a partition in /dev/dri is after eight GPUs.
_FIRST_PARTITION_CARD = 8
_NULL = os.makedev(1, 3)


@dataclass(frozen=True)
class AmdGpu:
    """One GPU. *style* is ``CPX/NPS4``; *partitions* is the number of its parts, *invalid* the number of further ones that KFD has not.

    *numa* None leaves out the file.
    """

    address: str
    device: str = "74a1"
    numa: int | None = 0
    style: str = ""
    partitions: int = 1
    invalid: int = 0


@dataclass(frozen=True)
class IntelCard:
    """One card. *driver* is i915, xe or empty; *vfs* is the number of SR-IOV functions, which are further cards; *memory* in bytes."""

    address: str
    driver: str = "i915"
    device: str = "7d67"
    vendor: str = "8086"
    numa: int = -1
    vfs: int = 0
    memory: int = 0
    parent: str = field(default="", repr=False)


def amd_gpus(count: int, **same: t.Any) -> list[AmdGpu]:
    """Return *count* GPUs, at most four, in NUMA nodes 0, 1, 0, 1."""
    return [replace(AmdGpu(address, numa=index % 2), **same) for index, address in enumerate(_AMD_ADDRESSES[:count])]


def intel_cards(*drivers: str, **same: t.Any) -> list[IntelCard]:
    """Return a card, at most four, for each driver."""
    return [replace(IntelCard(_INTEL_ADDRESSES[index], driver), **same) for index, driver in enumerate(drivers)]


def amd_tree(
    root: str | Path,
    gpus: int | t.Sequence[AmdGpu] = 2,
    style: str | None = None,
    *,
    kfd: bool = True,
    module: bool = True,
    version: str = "",
    first: int = 0,
) -> None:
    """Write GPUs below *root*; a number stands for that many MI300X, with *style* of two parts each.

    *version* is that of a driver by DKMS, *first* the number of the first card.
    """
    if isinstance(gpus, int):
        gpus = amd_gpus(gpus, **({"style": style, "partitions": 2} if style else {}))
    tree = _Tree(root)
    if module:
        tree.driver("amdgpu", version)
    if kfd:
        tree.kfd_node(0, cpu_cores_count=64, simd_count=0, drm_render_minor=0, location_id=0, domain=0, vendor_id=0)
        tree.device_node("kfd")
    node, partition = 0, 0
    for index, gpu in enumerate(gpus, first):
        folder = _amd_pci(tree, gpu, module)
        if module:
            tree.drm(folder, index)
        parts = [_RENDER + index]
        for _part in range(gpu.partitions - 1 + gpu.invalid if module else 0):
            card = _FIRST_PARTITION_CARD + partition
            tree.drm(tree.folder(f"sys/devices/platform/amdgpu_xcp_{partition}"), card)
            parts.append(_RENDER + card)
            partition += 1
        for minor in parts[: gpu.partitions] if kfd else ():
            node += 1
            _amd_kfd_node(tree, node, gpu, minor)


def intel_tree(root: str | Path, cards: t.Sequence[IntelCard], *, first: int = 0) -> None:
    """Write cards below *root*; *first* is the number of the first one."""
    tree = _Tree(root)
    functions: list[IntelCard] = []
    for card in cards:
        functions.append(card)
        place = card.address[:-1]
        functions += [
            replace(card, address=f"{place}{number}", vfs=0, memory=0, parent=card.address)
            for number in range(1, card.vfs + 1)
        ]
    for index, card in enumerate(functions, first):
        folder = tree.pci(card.address, card.vendor, card.device, "0x030000", card.numa)
        if not card.parent:
            tree.write(f"{folder}/sriov_numvfs", card.vfs)
            tree.write(f"{folder}/sriov_totalvfs", max(card.vfs, 7))
        else:
            tree.link(f"{folder}/physfn", f"sys/devices/pci0000:00/{card.parent}")
        if not card.driver:
            continue
        tree.driver(card.driver)
        tree.bind(folder, card.driver)
        tree.drm(folder, index, card.address)
        if card.memory and card.driver == "i915":
            tree.write(f"{folder}/drm/card{index}/lmem_total_bytes", card.memory)
        elif card.memory:
            tree.write(f"{folder}/tile0/physical_vram_size_bytes", f"{card.memory:#x}")


def _amd_pci(tree: _Tree, gpu: AmdGpu, module: bool) -> str:
    """Write the PCI device of a GPU; returns its folder."""
    memory, name = AMD_MODELS[gpu.device][2:]
    # Instinct cards are processing accelerators, and not display controllers.
    folder = tree.pci(gpu.address, "1002", gpu.device, "0x120000" if name else "0x030000", gpu.numa)
    if module:
        tree.bind(folder, "amdgpu")
        tree.write(f"{folder}/mem_info_vram_total", memory)
        tree.write(f"{folder}/mem_info_vram_used", 0)
        if name:
            tree.write(f"{folder}/product_name", name)
        if gpu.style:
            compute, memory_style = gpu.style.split("/")
            tree.write(f"{folder}/current_compute_partition", compute)
            tree.write(f"{folder}/current_memory_partition", memory_style)
    return folder


def _amd_kfd_node(tree: _Tree, number: int, gpu: AmdGpu, minor: int) -> None:
    """Write the node of a GPU, or of a part of it, in the topology of KFD."""
    target, simds, memory, _name = AMD_MODELS[gpu.device]
    domain, bus, function = gpu.address.split(":")
    tree.kfd_node(
        number,
        cpu_cores_count=0,
        simd_count=simds // gpu.partitions,
        simd_per_cu=4,
        gfx_target_version=target,
        drm_render_minor=minor,
        location_id=int(bus, 16) << 8 | int(function.split(".")[0], 16) << 3,
        domain=int(domain, 16),
        vendor_id=0x1002,
        device_id=int(gpu.device, 16),
        unique_id=0x1000 + int(bus, 16),
        num_xcc=1,
    )
    bank = f"sys/class/kfd/kfd/topology/nodes/{number}/mem_banks/0/properties"
    tree.write(bank, f"heap_type 1\nsize_in_bytes {memory // gpu.partitions}")


class _Tree:
    """Files below a folder, by paths without a slash at the beginning."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def folder(self, path: str) -> str:
        """Create a folder and return its path."""
        (self.root / path).mkdir(parents=True, exist_ok=True)
        return path

    def write(self, path: str, value: object) -> None:
        """Write a line."""
        self.folder(os.path.dirname(path))
        (self.root / path).write_text(f"{value}\n", encoding="ascii")

    def link(self, path: str, target: str) -> None:
        """Create a relative link to another path of the tree."""
        self.folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            (self.root / path).symlink_to(os.path.relpath(target, os.path.dirname(path)))

    def pci(self, address: str, vendor: str, device: str, device_class: str, numa: int | None) -> str:
        """Write a PCI device; returns its folder."""
        folder = self.folder(f"sys/devices/pci0000:00/{address}")
        for name, value in (("vendor", f"0x{vendor}"), ("device", f"0x{device}"), ("class", device_class)):
            self.write(f"{folder}/{name}", value)
        if numa is not None:
            self.write(f"{folder}/numa_node", numa)
        self.link(f"sys/bus/pci/devices/{address}", folder)
        return folder

    def driver(self, name: str, version: str = "") -> None:
        """Write a loaded kernel module of PCI devices."""
        driver = self.folder(f"sys/bus/pci/drivers/{name}")
        self.link(f"sys/module/{name}/drivers/pci:{name}", driver)
        self.write(f"sys/module/{name}/initstate", "live")
        if version:
            self.write(f"sys/module/{name}/version", version)

    def bind(self, folder: str, driver: str) -> None:
        """Bind a PCI device to its driver."""
        self.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        self.link(f"sys/bus/pci/drivers/{driver}/{os.path.basename(folder)}", folder)

    def drm(self, folder: str, index: int, address: str = "") -> None:
        """Write the card and the render node of a device, and their device nodes; by path with *address*."""
        for name, kind in ((f"card{index}", "card"), (f"renderD{_RENDER + index}", "render")):
            self.folder(f"{folder}/drm/{name}")
            self.link(f"{folder}/drm/{name}/device", folder)
            self.link(f"sys/class/drm/{name}", f"{folder}/drm/{name}")
            self.device_node(f"dri/{name}")
            if address:
                self.link(f"dev/dri/by-path/pci-{address}-{kind}", f"dev/dri/{name}")

    def kfd_node(self, number: int, **properties: int) -> None:
        """Write a node of KFD's topology."""
        lines = "\n".join(f"{key} {value}" for key, value in properties.items())
        self.write(f"sys/class/kfd/kfd/topology/nodes/{number}/properties", lines)

    def device_node(self, name: str) -> None:
        """Write a plain file that stands for a device node."""
        self.folder(f"dev/{os.path.dirname(name)}")
        (self.root / "dev" / name).touch()


def _mixed(root: Path) -> None:
    amd_tree(root, 2)
    intel_tree(root, intel_cards("i915"), first=2)


# The trees of vendors' traps, by name.
CASES: dict[str, t.Callable[[Path], None]] = {
    "none": lambda _root: None,
    "amd": lambda root: amd_tree(root, 2),
    "amd-cpx": lambda root: amd_tree(root, 2, "CPX/NPS4"),
    "amd-heterogeneous": lambda root: amd_tree(
        root,
        [
            AmdGpu("0000:63:00.0", style="CPX/NPS4", partitions=2),
            AmdGpu("0000:83:00.0", style="SPX/NPS1", numa=1),
        ],
    ),
    "amd-invalid-partition": lambda root: amd_tree(root, amd_gpus(2, style="CPX/NPS4", partitions=2, invalid=1)),
    "amd-numa-unknown": lambda root: amd_tree(root, amd_gpus(2, style="CPX/NPS4", partitions=2, numa=-1)),
    "amd-numa-missing": lambda root: amd_tree(root, amd_gpus(2, numa=None)),
    "amd-no-kfd": lambda root: amd_tree(root, 2, kfd=False),
    "amd-no-module": lambda root: amd_tree(root, 2, module=False),
    "amd-no-driver": lambda root: amd_tree(root, 2, kfd=False, module=False),
    "amd-no-gpu": lambda root: amd_tree(root, 0),
    "intel-i915": lambda root: intel_tree(root, intel_cards("i915", memory=16 * GIB)),
    "intel-xe": lambda root: intel_tree(root, intel_cards("xe", device="e20b", memory=12 * GIB)),
    "intel": lambda root: intel_tree(root, intel_cards("i915", "xe")),
    "intel-sriov": lambda root: intel_tree(root, intel_cards("i915", device="56c0", vfs=2)),
    "intel-foreign": lambda root: intel_tree(root, [*intel_cards("i915"), IntelCard("0000:09:00.0", vendor="1a03")]),
    "intel-no-driver": lambda root: intel_tree(root, intel_cards("")),
    "mixed": _mixed,
}


def replace_tree(root: Path, case: str) -> None:
    """Replace ROOT/sys and ROOT/dev by the tree of a case. ROOT stays, so that mounts of its parent see the new tree."""
    for name in ("sys", "dev"):
        shutil.rmtree(root / name, ignore_errors=True)
        (root / name).mkdir(parents=True)
    CASES[case](root)


def replace_devices(root: Path, folder: Path) -> None:
    """Replace kfd and dri in *folder* by null devices, with the names and links of ROOT/dev; others in it stay."""
    with contextlib.suppress(FileNotFoundError):
        (folder / "kfd").unlink()
    shutil.rmtree(folder / "dri", ignore_errors=True)
    for path in sorted((root / "dev").rglob("*")):
        target = folder / path.relative_to(root / "dev")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            target.symlink_to(os.readlink(path))
        elif path.is_file():
            os.mknod(target, stat.S_IFCHR | 0o666, _NULL)


def main(arguments: t.Sequence[str] | None = None) -> int:
    """Run the program; returns an exit status."""
    parser = argparse.ArgumentParser(description="Write a fake sysfs tree of AMD and Intel GPUs.")
    parser.add_argument("root", type=Path)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--devices", type=Path, metavar="DEV", help="create null devices in this folder, such as /dev")
    chosen = parser.parse_args(arguments)
    if chosen.root.resolve() == Path("/"):
        parser.error("ROOT is the root of this machine; give a folder of its own")
    replace_tree(chosen.root, chosen.case)
    if chosen.devices:
        replace_devices(chosen.root, chosen.devices)
    print(f"{chosen.root}: {chosen.case} (fake)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
