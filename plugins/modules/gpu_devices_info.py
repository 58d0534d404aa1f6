#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_devices_info
short_description: Read the GPUs of AMD and Intel on a node, and what their device plugins offer
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Reads sysfs as the device plugins of AMD and Intel read it. No tool of their vendors is needed.
  - A missing GPU or driver is a fact and not a failure. RV(problems) has the reasons.
  - GPUs of NVIDIA are the facts of M(gpu.kubernetes.nvml_facts).
options:
  root:
    description: The folder below which C(sys), C(dev) and C(etc) are read, such as V(/host) in a container.
    type: path
    default: /
  naming:
    description:
      - How AMD's device plugin names partitions in RV(expected).
      - With V(single), all are C(amd.com/gpu). With V(mixed), they have the name of their style, such as C(amd.com/cpx_nps4).
    type: str
    choices: [single, mixed]
    default: single
  shared_dev_num:
    description: How many pods share a GPU of Intel, in RV(expected).
    type: int
    default: 1
  vendors:
    description:
      - The value of RV(vendors), for hosts where the GPUs that it would find are not those to offer.
      - Left out, it follows from the GPUs.
    type: list
    elements: str
    choices: [amd, intel, nvidia]
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.node
seealso:
  - module: gpu.kubernetes.nvml_facts
"""

EXAMPLES = r"""
- name: Read the GPUs of AMD and Intel
  gpu.kubernetes.gpu_devices_info:
  register: gpu_devices

- name: Require that all of AMD's can be offered
  ansible.builtin.assert:
    that: gpu_devices.problems.amd | length == 0
    fail_msg: "{{ inventory_hostname }}: {{ gpu_devices.problems.amd | join('; ') }}."
"""

RETURN = r"""
devices:
  description: The GPUs, with a driver or without. Those of a vendor are in bus order.
  returned: always
  type: list
  elements: dict
  contains:
    vendor:
      description: V(amd) or V(intel).
      type: str
    pci_address:
      description: Address on the PCI bus.
      type: str
    device_id:
      description: The PCI device id, as four hexadecimal digits in lower case.
      type: str
    model:
      description: Product name, as the driver reports it or by a table of data-centre GPUs; empty if neither knows it.
      type: str
    memory_bytes:
      description: Memory of the GPU in bytes; V(0) if it is unknown.
      type: int
    numa_node:
      description: The NUMA node, V(-1) if the machine reports none. V(null) if it cannot be read, and AMD's plugin then leaves the GPU out.
      type: int
    driver:
      description: Its kernel driver; empty without one.
      type: str
    card:
      description: Name of the card in C(/dev/dri); empty without one.
      type: str
    render:
      description: Name of the render node in C(/dev/dri); empty without one.
      type: str
    resource:
      description: The extended resource as which the device plugin offers it; empty without a driver of Intel.
      type: str
    partitions:
      description: How many units the device plugin offers of it. V(1) is the whole GPU, V(0) a GPU of Intel whose virtual functions are offered.
      type: int
    partition_style:
      description: How a GPU of AMD is partitioned; empty for one that cannot be.
      type: str
    integrated:
      description: Whether it is in the processor. At C(0000:00:02.0), or of AMD with less than 4 GiB of memory.
      type: bool
    gfx:
      description: The instruction set.
      returned: for AMD
      type: str
    compute_units:
      description: Number of compute units of all its partitions.
      returned: for AMD
      type: int
    simd_count:
      description: Number of SIMD units of all its partitions.
      returned: for AMD
      type: int
    family:
      description: The family, as AMD's node labeller names it; empty if it is unknown.
      returned: for AMD
      type: str
    sriov_vfs:
      description: Number of its virtual functions.
      returned: for Intel
      type: int
  sample:
    - vendor: amd
      pci_address: "0000:63:00.0"
      device_id: 74a1
      model: AMD Instinct MI300X OAM
      memory_bytes: 206158430208
      numa_node: 0
      driver: amdgpu
      card: card0
      render: renderD128
      resource: amd.com/gpu
      partitions: 1
      partition_style: spx_nps1
      integrated: false
      gfx: gfx942
      compute_units: 304
      simd_count: 1216
      family: AI
drivers:
  description:
    - By kernel driver, whether it is loaded and its version, which is empty for the driver of the kernel.
    - C(amdgpu) also has C(kfd), whether it offers the interface for computing.
  returned: always
  type: dict
  sample:
    amdgpu: {loaded: true, version: "", kfd: true}
    i915: {loaded: false, version: ""}
    xe: {loaded: false, version: ""}
render_gid:
  description: Number of the group that may open render nodes, for pods that do not run as root. V(null) if the host has none.
  returned: always
  type: int
  sample: 992
expected:
  description: The units of each extended resource that the device plugins will offer.
  returned: always
  type: dict
  sample: {amd.com/gpu: 8}
error:
  description: Why RV(expected) is unknown; else empty. With O(naming=single), AMD's plugin ends if GPUs are partitioned in different ways.
  returned: always
  type: str
  sample: ""
vendors:
  description:
    - The vendors whose device plugin the playbooks deploy for this host. V(nvidia) is last, and the only one if no GPU was found.
    - A GPU in the processor, and one with a driver for virtual machines, do not count. Beside GPUs of NVIDIA, one without a driver does not count.
  returned: always
  type: list
  elements: str
  sample: [amd]
served:
  description: Whether the host is prepared for GPUs of NVIDIA, which this collection shares.
  returned: always
  type: bool
  sample: false
plugins:
  description: What the roles of this collection need of the device plugins and drivers of RV(vendors) except NVIDIA.
  returned: always
  type: list
  elements: dict
  contains:
    vendor:
      description: The vendor.
      type: str
    resource:
      description: The first of the expected resources.
      type: str
    pod_labels:
      description: The labels of the plugin's pods.
      type: dict
    expected:
      description: The part of RV(expected), with 0 if there is none.
      type: dict
    test:
      description: The image, the command and the expected output of the smoke test.
      type: dict
    driver_role:
      description: The role that verifies or installs the driver.
      type: str
  sample: []
problems:
  description: By vendor, what keeps its device plugin from offering all GPUs, as clauses with cause and remedy.
  returned: always
  type: dict
  sample: {amd: [], intel: []}
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus.devices import read
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ARGUMENTS: dict[str, dict[str, t.Any]] = {
    "root": {"type": "path", "default": "/"},
    "naming": {"type": "str", "choices": ["single", "mixed"], "default": "single"},
    "shared_dev_num": {"type": "int", "default": 1},
    "vendors": {"type": "list", "elements": "str", "choices": ["amd", "intel", "nvidia"]},
}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    module.exit_json(changed=False, **read(**module.params))


if __name__ == "__main__":
    main()
