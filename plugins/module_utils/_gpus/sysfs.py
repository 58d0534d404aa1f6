# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads files of sysfs below a root folder. A file that is missing or unreadable is an empty text."""

from __future__ import annotations

import os
import re
from typing import Sequence

ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
BUS = "sys/bus/pci/devices"


def read_text(*path: str) -> str:
    """Return the content of a file without white space around it."""
    try:
        with open(os.path.join(*path), encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_number(*path: str, default: int | None = None) -> int | None:
    """Return the number in a file, decimal or with 0x; *default* if there is none."""
    try:
        return int(read_text(*path), 0)
    except ValueError:
        return default


def list_names(folder: str, pattern: str) -> list[str]:
    """Return the names in a folder that match the whole pattern, by their numbers; none if the folder cannot be read."""
    try:
        found = [name for name in os.listdir(folder) if re.fullmatch(pattern, name)]
    except OSError:
        return []
    return sorted(found, key=lambda name: (int(re.sub("[^0-9]", "", name) or 0), name))


def list_addresses(folder: str) -> list[str]:
    """Return the PCI addresses among the names in a folder, in bus order."""
    return sorted(list_names(folder, ADDRESS.pattern))


def read_driver(device: str) -> str:
    """Return the name of a device's kernel driver; empty without one."""
    try:
        return os.path.basename(os.readlink(os.path.join(device, "driver")))
    except OSError:
        return ""


def list_gpus_on_bus(root: str, vendor: str, classes: Sequence[str]) -> list[str]:
    """Return the addresses of the GPUs of a PCI vendor, such as ``0x1002``, with a driver or without."""
    bus = os.path.join(root, BUS)
    return [
        address
        for address in list_addresses(bus)
        if read_text(bus, address, "vendor").lower() == vendor
        and read_text(bus, address, "class").lower().startswith(tuple(classes))
    ]


def find_nodes(device: str) -> tuple[str, str]:
    """Return the names of a device's card and render node, such as (``card0``, ``renderD128``); empty without one."""
    folder = os.path.join(device, "drm")
    return (*list_names(folder, r"card[0-9]+"), "")[0], (*list_names(folder, r"renderD[0-9]+"), "")[0]
