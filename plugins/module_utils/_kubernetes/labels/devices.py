# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels of AMD's and Intel's GPUs, from the devices of a host (fact ``gpu_devices``), below the prefix of this collection.

AMD's labeller overwrites and deletes labels below ``amd.com/`` (ROCm/gpu-operator#151), so these are built only on request, in the labeller's form.
Its form ``beta.amd.com/`` is not built. Of Intel's labels, only the number of devices is built: the others are tables of Intel's NodeFeatureRules.

Source: cmd/k8s-node-labeller of ROCm/k8s-device-plugin v1.31.0.10.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

from ..._gpus.devices import is_usable
from ..._vendors import OTHERS
from .gfd import MIB, format_product
from .record import Labels

PREFIX = "gpu-kubernetes/"
LONGEST_NAME = 63
GIB = 1024 * MIB

Device = Mapping[str, Any]

# By the name of the label, the value of one device; "" leaves the label out.
FACTS: Mapping[str, Callable[[Device], str]] = {
    "product": lambda device: format_product(name_device(device)),
    "memory": lambda device: _show(int(device.get("memory_bytes") or 0) // MIB),
    "device-id": lambda device: format_product(str(device.get("device_id") or "")),
    "driver": lambda device: format_product(str(device.get("driver") or "")),
    "family": lambda device: format_product(str(device.get("family") or "")),
    "gfx": lambda device: format_product(str(device.get("gfx") or "")),
    "compute-units": lambda device: _show(device.get("compute_units")),
    "partition-style": lambda device: format_product(str(device.get("partition_style") or "")),
}
AMD_FACTS: Mapping[str, Callable[[Device], str]] = {
    "cu-count": lambda device: _show(device.get("compute_units")),
    "device-id": lambda device: format_product(str(device.get("device_id") or "")),
    "family": lambda device: format_product(str(device.get("family") or "")),
    "product-name": lambda device: format_product(str(device.get("model") or "")).replace("-", "_"),
    "simd-count": lambda device: _show(device.get("simd_count")),
    "vram": lambda device: _show(round(int(device.get("memory_bytes") or 0) / GIB), "G"),
}


def name_device(device: Device) -> str:
    """Return the model of a device; its vendor and PCI id if the model is not known."""
    return str(device.get("model") or "") or f"{device.get('vendor')} {device.get('device_id')}"


def select_devices(facts: Mapping[str, Any]) -> dict[str, list[Device]]:
    """Return the devices of the fact ``gpu_devices`` by vendor, of the vendors whose device plugins serve the host.

    A GPU in the processor counts only without another GPU of its vendor. One that is offered by its virtual functions does not count, nor one
    with the driver of virtual machines.
    """
    found: dict[str, list[Device]] = {}
    for vendor in facts.get("vendors") or []:
        own = [
            device
            for device in facts.get("devices") or []
            if device.get("vendor") == vendor and device.get("partitions", 1) and is_usable(device)
        ]
        found[vendor] = [device for device in own if not device.get("integrated")] or own
    return {vendor: own for vendor, own in found.items() if own}


def build_device_labels(facts: Mapping[str, Any], vendor_prefix: bool = False) -> Labels:
    """Return the labels of the GPUs in the fact ``gpu_devices``, which are those of all vendors but NVIDIA.

    ``gpu-kubernetes/VENDOR.memory`` is MiB of one GPU. A fact in which the GPUs of a vendor differ is that of the one with the least memory, and the
    number of GPUs of each product is then a label ``gpu-kubernetes/VENDOR.product.PRODUCT``.
    """
    vendors = [vendor for vendor in OTHERS if vendor.name in (facts.get("vendors") or [])]
    labels: Labels = {vendor.present_label: "true" for vendor in vendors}
    for vendor, own in select_devices(facts).items():
        smallest = min(own, key=lambda device: int(device.get("memory_bytes") or 0))
        values = {name: read(smallest) for name, read in FACTS.items()}
        version = ((facts.get("drivers") or {}).get(str(smallest.get("driver"))) or {}).get("version")
        values.update({"count": str(len(own)), "driver-version": format_product(str(version or ""))})
        labels.update({f"{PREFIX}{vendor}.{name}": value for name, value in values.items() if value})
        labels.update(build_product_counts(vendor, [name_device(device) for device in own]))
        if vendor_prefix:
            labels.update(_build_vendor_labels(vendor, own))
    return labels


def build_product_counts(vendor: str, names: Sequence[str]) -> Labels:
    """Return the number of GPUs of each product of a vendor, as labels; none if all are of one product. A long product is cut."""
    products = [product for product in map(format_product, names) if product]
    if len(set(products)) < 2:
        return {}
    labels: Labels = {}
    for product in set(products):
        name = f"{vendor}.product.{product}"[:LONGEST_NAME].rstrip("-_.")
        labels[PREFIX + name] = str(products.count(product))
    return labels


def _build_vendor_labels(vendor: str, devices: Sequence[Device]) -> Labels:
    """Return the labels below the vendor's own prefix: of AMD, one value as ``KIND=VALUE``, several as ``KIND.VALUE=NUMBER``."""
    if vendor == "intel":
        return {"gpu.intel.com/device.count": str(len(devices))}
    labels: Labels = {}
    for kind, read in AMD_FACTS.items() if vendor == "amd" else ():
        values = [value for value in map(read, devices) if value]
        several = len(set(values)) > 1
        for value in set(values):
            labels[f"amd.com/gpu.{kind}" + (f".{value}" if several else "")] = (
                str(values.count(value)) if several else value
            )
    return labels


def _show(number: Any, unit: str = "") -> str:
    return f"{number}{unit}" if number else ""
