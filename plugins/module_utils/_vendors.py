# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of GPU vendors: how their GPUs are found on a host, and what they are called in a cluster.

SERVED is the vendor whose GPUs this collection offers to pods. GPUs of OTHERS are reported, and their device plugins are left alone.
"""

from __future__ import annotations

from dataclasses import dataclass


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
    #: Whole GPUs as an extended resource of nodes, and the label of nodes that have one.
    resource: str = ""
    present_label: str = ""
    #: The label of nodes with the name of their GPUs, and the resources of device plugins that are no row of the
    #: catalogue of sharing strategies.
    product_label: str = ""
    plugin_resources: tuple[str, ...] = ()


DISPLAY_CLASS = "0x03"  # 0x0300 with display output, 0x0302 without
ACCELERATOR_CLASS = "0x1200"

SERVED = Vendor(
    "nvidia",
    "NVIDIA",
    "0x10de",
    (DISPLAY_CLASS,),
    "nvidia|k8s-device-plugin",
    resource="nvidia.com/gpu",
    present_label="nvidia.com/gpu.present",
    product_label="nvidia.com/gpu.product",
)
OTHERS: tuple[Vendor, ...] = (
    # The newer GPUs of AMD are accelerators, and so are the NPUs of Intel.
    Vendor(
        "amd",
        "AMD",
        "0x1002",
        (DISPLAY_CLASS, ACCELERATOR_CLASS),
        "rocm|amdgpu|amd-gpu|/amd/",
        product_label="amd.com/gpu.product-name",
        plugin_resources=("amd.com/gpu",),
    ),
    Vendor(
        "intel",
        "Intel",
        "0x8086",
        (DISPLAY_CLASS,),
        "intel",
        product_label="gpu.intel.com/product",
        plugin_resources=("gpu.intel.com/i915", "gpu.intel.com/xe"),
    ),
)
