# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the GPUs of AMD and Intel on a host, and decides what their device plugins offer and what keeps them from it."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any, Iterable, Iterator, Mapping, Sequence

from .._vendors import AMD, INTEL, OTHERS, SERVED, Vendor, vendor_of
from . import amd, intel
from .sysfs import list_gpus_on_bus, list_names, read_text

#: The kernel drivers with which the device plugin of a vendor offers a GPU.
DRIVERS: dict[str, tuple[str, ...]] = {AMD.name: (amd.DRIVER,), INTEL.name: intel.DRIVERS}
INOTIFY_INSTANCES = 8192  # as AMD's documentation requires for its device plugin

Device = Mapping[str, Any]


class PartitionError(ValueError):
    """The GPUs of a host are partitioned in several ways; the text is a clause with cause and remedy."""


def read(
    root: str = "/", naming: str = "single", shared_dev_num: int = 1, vendors: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return what the module gpu_devices_info reports of the host below *root*. A missing GPU or driver is a fact, not an error."""
    devices = [*amd.read_devices(root), *intel.read_devices(root)]
    drivers = {**amd.read_drivers(root), **intel.read_drivers(root)}
    try:
        expected, error = expected_resources(devices, naming, shared_dev_num), ""
    except PartitionError as reason:
        expected, error = {}, str(reason)
    chosen = list_vendors(devices, _has_nvidia(root)) if vendors is None else sorted(vendors) or [SERVED.name]
    return {
        "devices": devices,
        "drivers": drivers,
        "render_gid": _read_render_group(root),
        "expected": expected,
        "error": error,
        "vendors": chosen,
        "served": SERVED.name in chosen,
        "plugins": [_describe_plugin(vendor, expected) for vendor in OTHERS if vendor.name in chosen],
        "problems": {vendor.name: list(find_problems(devices, drivers, vendor.name, error)) for vendor in OTHERS},
    }


def expected_resources(devices: Iterable[Device], naming: str = "single", shared_dev_num: int = 1) -> dict[str, int]:
    """Return the units of each resource that the device plugins will offer, those of processors last; without GPUs that have their driver, none.

    With the *naming* ``single``, all partitions of AMD are amd.com/gpu, and with ``mixed`` the partitioned ones have names such as
    amd.com/cpx_nps4. Each GPU of Intel counts *shared_dev_num* times. Raises PartitionError for what makes AMD's plugin exit.
    """
    offered = [device for device in devices if device["driver"] in DRIVERS[device["vendor"]]]
    styles = {each["partition_style"]: None for each in offered if each["partition_style"]}
    if naming == "single" and len(styles) > 1:
        raise PartitionError(
            f"its AMD GPUs are partitioned in different ways ({' and '.join(sorted(styles))}), with which the device plugin ends; partition them "
            "alike, or set k8s_device_plugin_amd_naming to mixed"
        )
    counted: dict[str, int] = {}
    # The first resource of a vendor is the one that is tested.
    for device in sorted(offered, key=lambda each: bool(each.get("integrated"))):
        resource = device["resource"]
        if device["vendor"] == AMD.name and naming == "mixed" and device["partition_style"]:
            resource = f"{AMD.domain}/{device['partition_style']}"
        units = device["partitions"] * (shared_dev_num if device["vendor"] == INTEL.name else 1)
        counted[resource] = counted.get(resource, 0) + units
    return {resource: units for resource, units in counted.items() if units}


def is_usable(device: Device) -> bool:
    """Return whether a device plugin can offer the GPU: it has its vendor's driver, or none yet. Virtual machines have another one."""
    return device.get("driver") in (None, "", *DRIVERS[device["vendor"]])


def list_vendors(devices: Iterable[Device], beside_nvidia: bool) -> list[str]:
    """Return the vendors of the GPUs for which the host gets a device plugin, NVIDIA last, and if there is no other one.

    A GPU in the processor does not count, nor one with the driver of virtual machines. Beside GPUs of NVIDIA, one without a driver is the display of
    the board as a rule, and does not count either.
    """
    usable = [device for device in devices if is_usable(device)]
    boards = [device for device in usable if not device["integrated"] and (device["driver"] or not beside_nvidia)]
    found = [vendor.name for vendor in OTHERS if any(device["vendor"] == vendor.name for device in boards)]
    return [*found, SERVED.name] if beside_nvidia or not found else found


def find_problems(
    devices: Iterable[Device], drivers: Mapping[str, Mapping[str, Any]], vendor: str, error: str = ""
) -> Iterator[str]:
    """Yield what keeps the device plugin of a vendor from offering all GPUs of the host: clauses with cause and remedy."""
    own = [device for device in devices if device["vendor"] == vendor and is_usable(device)]
    unbound = _name([device for device in own if not device["driver"]])
    bound = [device for device in own if device["driver"]]
    modules = " or ".join(DRIVERS[vendor])
    if unbound and not any(drivers[name]["loaded"] for name in DRIVERS[vendor]):
        yield f"{unbound} has no driver, because {modules} is not loaded; load it (modprobe), or install a kernel that has it"
    elif unbound:
        yield f"{unbound} has no driver although {modules} is loaded; search the kernel log for its address"
    if vendor == AMD.name:
        if bound and not drivers[amd.DRIVER]["kfd"]:
            yield "/sys/class/kfd is missing, for which AMD's device plugin waits; use a kernel or a driver with KFD (CONFIG_HSA_AMD)"
        blind = _name([device for device in bound if device["numa_node"] is None])
        if blind:
            yield f"numa_node of {blind} cannot be read, so that AMD's device plugin leaves it out; check /sys on the host"
        if error:
            yield error
    hidden = _name([device for device in bound if not device["render"] and device["partitions"]])
    if hidden:
        yield f"{hidden} has no render node; search the kernel log for its address, and boot without nomodeset"


def _describe_plugin(vendor: Vendor, expected: Mapping[str, int]) -> dict[str, Any]:
    """Return what roles need of a vendor: the pods of its device plugin, what that is expected to offer, the test of a GPU, and the driver's role."""
    own = {name: units for name, units in expected.items() if vendor_of(name) is vendor}
    return {
        "vendor": vendor.name,
        "resource": next(iter(own), vendor.resource),
        "pod_labels": dict(vendor.plugin_labels),
        "expected": own or {vendor.resource: 0},
        "test": {**asdict(vendor.test), "command": list(vendor.test.command)} if vendor.test else {},
        "driver_role": vendor.driver_role,
    }


def build_tests(facts: Mapping[str, Any], images: Mapping[str, str], registry: str) -> list[dict[str, Any]]:
    """Return the smoke tests of a host's GPUs of other vendors, as the role gpu_smoke_test groups them.

    *images* are by vendor; others come from *registry*, or docker.io. Pods that are not root need the group of the render nodes.
    """
    group = facts.get("render_gid")
    return [
        {
            "image": images.get(plugin["vendor"]) or f"{registry or 'docker.io'}/{plugin['test']['image']}",
            "command": plugin["test"]["command"],
            "args": [],
            "expected_output": plugin["test"]["expected_output"],
            "groups": [] if group is None else [group],
            "resource_name": plugin["resource"],
            "shared_resources": [],
            "runtime_class": "",
            "scheduler_name": "",
        }
        for plugin in facts.get("plugins") or []
    ]


def build_queries(facts: Mapping[str, Any], namespace: str) -> list[dict[str, Any]]:
    """Return the device plugins of other vendors that a host's node is to have: resource, pods, and the expected units by resource."""
    pods = {"apiVersion": "v1", "kind": "Pod"}
    return [
        {
            "plugin": {
                "resource_name": plugin["resource"],
                "pods": {**pods, "metadata": {"namespace": namespace, "labels": plugin["pod_labels"]}},
            },
            "expected": plugin["expected"],
        }
        for plugin in facts.get("plugins") or []
    ]


def _has_nvidia(root: str) -> bool:
    """Return whether the host has GPUs of NVIDIA, or its driver for GPUs that are not on the PCI bus."""
    on_bus = list_gpus_on_bus(root, SERVED.pci_vendor, SERVED.pci_classes)
    return bool(on_bus) or os.path.exists(os.path.join(root, "dev/nvidiactl"))


def _name(devices: list[Device]) -> str:
    """Return the addresses of GPUs as the subject of a clause; empty without one."""
    return "GPU " + " and GPU ".join(device["pci_address"] for device in devices) if devices else ""


def _read_render_group(root: str) -> int | None:
    """Return the number of the group that may use render nodes: of the first one, else of the group render; None without both."""
    folder = os.path.join(root, "dev/dri")
    for name in list_names(folder, r"renderD[0-9]+"):
        try:
            return os.stat(os.path.join(folder, name)).st_gid
        except OSError:
            continue
    groups = [line.split(":") for line in read_text(root, "etc/group").splitlines()]
    return next((int(row[2]) for row in groups if len(row) > 2 and row[0] == "render" and row[2].isdigit()), None)
