# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the profiles of the simulated NVML library (README.md beside this file has the format)."""

from __future__ import annotations

import dataclasses
import pathlib

MARKER = b"\n#--nvml-profile--\n"


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One simulated GPU: its ``/dev/nvidia<minor>``, PCI address and the 32-bit PCI ids (device << 16 | vendor)."""

    index: int
    minor: int
    address: str
    name: str
    pci_device_id: int
    pci_subsystem_id: int
    numa_node: int
    memory_mib: int
    mig_devices: tuple[str, ...]


def sections(text: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """The node's keys (of repeated ones the last) and one mapping for each ``[gpu]`` section."""
    node: dict[str, str] = {}
    gpus: list[dict[str, str]] = []
    for line in map(str.strip, text.splitlines()):
        if line == "[gpu]":
            gpus.append({})
        elif line and not line.startswith("#"):
            key, _equals, value = line.partition("=")
            (gpus[-1] if gpus else node)[key.strip()] = value.strip()
    return node, gpus


def items(value: str) -> tuple[str, ...]:
    """The items of a comma-separated list."""
    return tuple(item.strip() for item in value.split(",") if item.strip())


def read(path: pathlib.Path) -> list[Gpu]:
    """The GPUs of the profile, in the order of their index, as the C library numbers them."""
    found: list[Gpu] = []
    for section in sections(path.read_text(encoding="utf-8"))[1]:
        minor = int(section.get("minor", len(found)))
        numa = int(section.get("numa_node", 0))
        for address in items(section.get("pci_addresses", "")):
            found.append(
                Gpu(
                    index=len(found),
                    minor=minor,
                    address=address.lower(),
                    name=section.get("name", ""),
                    pci_device_id=int(section.get("pci_device_id", "0"), 0),
                    pci_subsystem_id=int(section.get("pci_subsystem_id", "0"), 0),
                    numa_node=numa,
                    memory_mib=int(section.get("memory_mib", "0")),
                    mig_devices=items(section.get("mig_devices", "")) if section.get("mig") == "enabled" else (),
                )
            )
            minor += 1
            numa += len(found) % 4 == 0
    return found


def with_settings(text: str, settings: dict[str, str]) -> str:
    """The profile's text with node-wide ``settings`` before its first section, where they override others."""
    lines = text.splitlines(keepends=True)
    at = next((number for number, line in enumerate(lines) if line.strip() == "[gpu]"), len(lines))
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += "\n"
    return "".join([*lines[:at], *(f"{key} = {value}\n" for key, value in settings.items()), *lines[at:]])


def profile_path(name: str) -> pathlib.Path:
    """The path of a profile given by name (``t4``) or by path."""
    own = pathlib.Path(__file__).resolve().parent / "profiles" / f"{name}.profile"
    return own if own.is_file() else pathlib.Path(name)
