# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of GPUs of AMD and Intel: what their device plugins read in sysfs. They pass on hosts without such GPUs."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .._gpus.devices import DRIVERS, INOTIFY_INSTANCES
from .._vendors import AMD, OTHERS, SERVED, vendor_of
from .model import FAIL, WARN, Check, Finding, Observation, read_part


def serves_nvidia(observation: Observation) -> bool:
    """Return whether the host is to have GPUs of NVIDIA: false if only GPUs of others were found there."""
    part = observation.get("others")
    vendors = part.get("vendors") if isinstance(part, Mapping) else None
    return not isinstance(vendors, list) or not vendors or SERVED.name in vendors


def offers_nvidia(node: Mapping[str, Any]) -> bool:
    """Return whether a node reports GPUs of NVIDIA, whole ones or shares of them."""
    return any(units for name, units in node["capacity"].items() if vendor_of(name) is SERVED)


def _read_devices(observation: Observation) -> list[Mapping[str, Any]]:
    """Return the GPUs whose device plugin is to offer them, without those of virtual machines. Raises UnobservedError."""
    part = read_part(observation, "others")
    names = [vendor.name for vendor in OTHERS if vendor.name in part["vendors"]]
    return [
        each for each in part["devices"] if each["vendor"] in names and each["driver"] in ("", *DRIVERS[each["vendor"]])
    ]


def _find_unbound(observation: Observation) -> Iterator[Finding]:
    drivers = read_part(observation, "others")["drivers"]
    for device in _read_devices(observation):
        if not device["driver"]:
            names = DRIVERS[device["vendor"]]
            loaded = " or ".join(name for name in names if drivers[name]["loaded"])
            state = f"although {loaded} is loaded" if loaded else f"and {' or '.join(names)} is not loaded"
            yield FAIL, f"the GPU at {device['pci_address']} has no driver, {state}"


def _find_missing_files(observation: Observation) -> Iterator[Finding]:
    bound = [device for device in _read_devices(observation) if device["driver"]]
    kfd = read_part(observation, "others")["drivers"][DRIVERS[AMD.name][0]]["kfd"]
    if not kfd and any(device["vendor"] == AMD.name for device in bound):
        yield FAIL, "/sys/class/kfd is missing, for which AMD's device plugin waits"
    for device in bound:
        if device["vendor"] == AMD.name and device["numa_node"] is None:
            yield (
                FAIL,
                f"numa_node of the GPU at {device['pci_address']} cannot be read, so AMD's device plugin leaves it out",
            )
        if not device["render"] and device["partitions"]:
            yield FAIL, f"the GPU at {device['pci_address']} has no render node"


def _find_styles(observation: Observation) -> Iterator[Finding]:
    styles = sorted({device["partition_style"] for device in _read_devices(observation)} - {""})
    if len(styles) > 1 and read_part(observation, "others")["error"]:
        yield FAIL, f"the GPUs are partitioned as {' and '.join(styles)}"


def _find_inotify(observation: Observation) -> Iterator[Finding]:
    limit = read_part(observation, "others").get("inotify_instances")
    if _read_devices(observation) and limit is not None and limit < INOTIFY_INSTANCES:
        yield WARN, f"fs.inotify.max_user_instances is {limit}, and {INOTIFY_INSTANCES} is recommended"


VENDOR_CHECKS: tuple[Check, ...] = (
    Check(
        "kernel.other_driver",
        "kernel",
        "Drivers of GPUs of AMD and Intel",
        _find_unbound,
        ("ROCk module is NOT loaded", "Driver not initialized (amdgpu not found in modules)"),
        "the kernel has no driver for the GPU, the driver was not loaded, or it failed for this GPU",
        "load amdgpu, i915 or xe (modprobe), search the kernel log for the GPU's address, or install a newer kernel or the vendor's driver",
    ),
    Check(
        "kernel.other_files",
        "kernel",
        "Files of GPUs of AMD and Intel",
        _find_missing_files,
        ("Unable to open /dev/kfd read-write",),
        "the kernel or its parameters leave out KFD or render nodes, without which the device plugin runs and offers nothing",
        "use a kernel with CONFIG_HSA_AMD, and boot without nomodeset",
        ("kernel.other_driver",),
    ),
    Check(
        "kernel.partitions",
        "kernel",
        "Partitions of AMD's GPUs",
        _find_styles,
        ("Partitions of different styles",),
        "AMD's device plugin ends if GPUs of a node are partitioned in different ways",
        "partition all GPUs of the node alike, or set k8s_device_plugin_amd_naming to mixed",
        ("kernel.other_driver",),
    ),
    Check(
        "kernel.inotify",
        "kernel",
        "Inotify instances for device plugins of AMD and Intel",
        _find_inotify,
        ("inotify … too many open files", "fsnotify watcher: too many open files"),
        "the device plugin watches the kubelet's folder, and ends where no inotify instance is left",
        f"set fs.inotify.max_user_instances to {INOTIFY_INSTANCES} (sysctl)",
    ),
)
