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
    #: The domain of its extended resources, and those of its GPUs: whole GPUs, and shell patterns of partitions. NVIDIA's depend on the sharing strategy.
    domain: str = ""
    resources: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    #: The labels of nodes that have one of its GPUs, and with their number.
    present_label: str = ""
    count_label: str = ""
    #: The labels of its device plugin's pods, as in the vendor's own manifest.
    plugin_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: How its GPUs are tested; NVIDIA's by the role gpu_smoke_test.
    test: VendorTest | None = None
    #: The operator that deploys its device plugin by custom resources: its name, and their API version and kind.
    operator: str = ""
    operator_resource: tuple[str, str] = ("", "")
    #: The name of the driver for dynamic resource allocation, with which the names of its device classes begin.
    dra_driver: str = ""
    #: The label of nodes with the name of their GPUs.
    product_label: str = ""
    #: The role that verifies or installs the driver of its GPUs.
    driver_role: str = ""

    @property
    def resource(self) -> str:
        """Return the extended resource of whole GPUs, the first of several."""
        return self.resources[0]


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
    resources=("nvidia.com/gpu",),
    present_label="nvidia.com/gpu.present",
    count_label="nvidia.com/gpu.count",
    dra_driver="gpu.nvidia.com",
    product_label="nvidia.com/gpu.product",
    driver_role="nvidia_driver",
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
    resources=("amd.com/gpu",),
    # By compute and memory mode, such as cpx_nps4.
    partitions=("amd.com/?px_nps?",),
    present_label="gpu-kubernetes/amd.present",
    count_label="gpu-kubernetes/amd.count",
    plugin_labels={"name": "amdgpu-dp-ds"},
    product_label="amd.com/gpu.product-name",
    test=VendorTest("rocm/dev-ubuntu-24.04:6.4", ("rocminfo",), "gfx"),
    operator="AMD's GPU operator",
    operator_resource=("amd.com/v1alpha1", "DeviceConfig"),
    dra_driver="gpu.amd.com",
    driver_role="amdgpu_driver",
)
INTEL = Vendor(
    "intel",
    "Intel",
    "0x8086",
    (DISPLAY_CLASS,),
    "intel",
    gpu_plugin_images="intel-gpu",
    domain="gpu.intel.com",
    # By the driver of the node.
    resources=("gpu.intel.com/i915", "gpu.intel.com/xe"),
    present_label="gpu-kubernetes/intel.present",
    count_label="gpu-kubernetes/intel.count",
    plugin_labels={"app": "intel-gpu-plugin"},
    product_label="gpu.intel.com/product",
    test=VendorTest("intel/intel-opencl-icd:0.36.0", ("clinfo",), "Device Name"),
    operator="Intel's device plugins operator",
    operator_resource=("deviceplugin.intel.com/v1", "GpuDevicePlugin"),
    dra_driver="gpu.intel.com",
    driver_role="intel_gpu_driver",
)
OTHERS: tuple[Vendor, ...] = (AMD, INTEL)
BY_NAME: dict[str, Vendor] = {vendor.name: vendor for vendor in (SERVED, *OTHERS)}
#: The resources of whole GPUs.
WHOLE_RESOURCES = frozenset(name for vendor in BY_NAME.values() for name in vendor.resources)
#: Shell patterns of the resources of the GPUs of OTHERS.
OTHER_RESOURCES: tuple[str, ...] = tuple(name for vendor in OTHERS for name in (*vendor.resources, *vendor.partitions))


def vendor_of(resource: str) -> Vendor:
    """Return the vendor whose device plugin offers the extended resource; NVIDIA for one of no vendor, such as aliyun.com/gpu-mem."""
    domain = resource.partition("/")[0]
    return next((vendor for vendor in OTHERS if domain == vendor.domain), SERVED)
