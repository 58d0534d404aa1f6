#!/usr/bin/env python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what /sys/bus/pci/devices shows on a node with a profile's GPUs, and one network card beside them."""

from __future__ import annotations

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from fakes.nvml import nvml_profile

NETWORK_CARD = ("0000:02:00.0", 0x15B3, 0x101D, 0x020000, 0x15B3, 0x0016, 0)


def write_device(folder: pathlib.Path, device: tuple[str, int, int, int, int, int, int]) -> None:
    """Write the folder of a device: (address, vendor, device, class, subsystem vendor, subsystem device, NUMA node)."""
    address, vendor, model, kind, sub_vendor, sub_device, numa = device
    target = folder / address
    target.mkdir(parents=True, exist_ok=True)
    values = {
        "vendor": f"0x{vendor:04x}",
        "device": f"0x{model:04x}",
        "class": f"0x{kind:06x}",
        "subsystem_vendor": f"0x{sub_vendor:04x}",
        "subsystem_device": f"0x{sub_device:04x}",
        "numa_node": str(numa),
    }
    for name, value in values.items():
        (target / name).write_text(value + "\n", encoding="ascii")


def build(profile: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the whole tree; each GPU has the class 0x030200 of a data-centre GPU without a display."""
    folder.mkdir(parents=True, exist_ok=True)
    write_device(folder, NETWORK_CARD)
    for gpu in nvml_profile.read(profile):
        ids, sub = gpu.pci_device_id, gpu.pci_subsystem_id
        write_device(folder, (gpu.address, ids & 0xFFFF, ids >> 16, 0x030200, sub & 0xFFFF, sub >> 16, gpu.numa_node))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", help="a name in profiles/ or a path")
    parser.add_argument("folder", type=pathlib.Path, help="takes the place of /sys/bus/pci/devices")
    options = parser.parse_args(arguments)
    build(nvml_profile.profile_path(options.profile), options.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
