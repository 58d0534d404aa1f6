# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of GPU vendors: how their GPUs are found on a host, and what they are called in a cluster.

SERVED is the vendor whose GPUs this collection prepares and shares. GPUs of OTHERS are offered whole, by the device plugins of their vendors.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping


@dataclass(frozen=True)
class VendorTest:
    """The smoke test of a vendor's GPUs: an image on docker.io, what runs in it, and a word that it prints only if it sees a GPU."""

    image: str
    command: tuple[str, ...]
    expected_output: str


@dataclass(frozen=True)
class Vendor:
    """One vendor of GPUs. An empty field is not known to this collection."""

    name: str
    title: str
    #: Its number on the PCI bus, and how the classes of its GPUs begin there.
    pci_vendor: str
    pci_classes: tuple[str, ...]
    #: Regular expression of the images of its device plugins, in any case.
    plugin_images: str
    #: The same for the device plugins that offer its GPUs, without those of its other devices.
    gpu_plugin_images: str = ""
    #: The domain of its extended resources, whole GPUs as one of them, and the label of nodes that have one.
    domain: str = ""
    resource: str = ""
    present_label: str = ""
    #: The labels of its device plugin's pods, as in the vendor's own manifest.
    plugin_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: How its GPUs are tested; NVIDIA's by the role gpu_smoke_test.
    test: VendorTest | None = None
    #: The operator that deploys its device plugin by custom resources: its name, their definition, and their API version and kind.
    operator: str = ""
    operator_crd: str = ""
    operator_resource: tuple[str, str] = ("", "")
    #: The name of the driver for dynamic resource allocation, with which the names of its device classes begin.
    dra_driver: str = ""
    #: The label of nodes with the name of their GPUs.
    product_label: str = ""


DISPLAY_CLASS = "0x03"  # 0x0300 with display output, 0x0302 without
ACCELERATOR_CLASS = "0x1200"

SERVED = Vendor(
    "nvidia",
    "NVIDIA",
    "0x10de",
    (DISPLAY_CLASS,),
    "nvidia|k8s-device-plugin",
    gpu_plugin_images="nvidia|k8s-device-plugin|gpu-?share|nano-?gpu|elastic-?gpu|hami|vgpu",
    domain="nvidia.com",
    resource="nvidia.com/gpu",
    present_label="nvidia.com/gpu.present",
    product_label="nvidia.com/gpu.product",
)
# The newer GPUs of AMD are accelerators, and so are the NPUs of Intel.
AMD = Vendor(
    "amd",
    "AMD",
    "0x1002",
    (DISPLAY_CLASS, ACCELERATOR_CLASS),
    "rocm|amdgpu|amd-gpu|/amd/",
    gpu_plugin_images="rocm|amdgpu|amd-gpu|/amd/",
    domain="amd.com",
    resource="amd.com/gpu",
    present_label="gpu-kubernetes/amd.present",
    plugin_labels={"name": "amdgpu-dp-ds"},
    product_label="amd.com/gpu.product-name",
    test=VendorTest("rocm/dev-ubuntu-24.04:6.4", ("rocminfo",), "gfx"),
    operator="AMD's GPU operator",
    operator_crd="deviceconfigs.amd.com",
    operator_resource=("amd.com/v1alpha1", "DeviceConfig"),
    dra_driver="gpu.amd.com",
)
INTEL = Vendor(
    "intel",
    "Intel",
    "0x8086",
    (DISPLAY_CLASS,),
    "intel",
    gpu_plugin_images="intel-gpu",
    domain="gpu.intel.com",
    resource="gpu.intel.com/i915",
    present_label="gpu-kubernetes/intel.present",
    plugin_labels={"app": "intel-gpu-plugin"},
    product_label="gpu.intel.com/product",
    test=VendorTest("intel/intel-opencl-icd:0.36.0", ("clinfo",), "Device Name"),
    operator="Intel's device plugins operator",
    operator_crd="gpudeviceplugins.deviceplugin.intel.com",
    operator_resource=("deviceplugin.intel.com/v1", "GpuDevicePlugin"),
    dra_driver="gpu.intel.com",
)
OTHERS: tuple[Vendor, ...] = (AMD, INTEL)
BY_NAME: dict[str, Vendor] = {vendor.name: vendor for vendor in (SERVED, *OTHERS)}


def vendor_of(resource: str) -> Vendor:
    """Return the vendor whose device plugin offers the extended resource; NVIDIA for one of no vendor, such as aliyun.com/gpu-mem."""
    domain = resource.partition("/")[0]
    return next((vendor for vendor in OTHERS if domain == vendor.domain), SERVED)
