#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: doctor_host_info
short_description: Observe a host for the checks of the GPU doctor
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - Reads GPUs, kernel log, device files, libraries, toolkit, container runtime and kubelet of a host, and decides nothing. The role
    P(gpu.kubernetes.gpu_doctor#role) judges the result.
  - Each part is read in a process of its own with a time limit. A part that hangs costs the limit and no more, and is named in C(errors).
options:
  timeout:
    description: Seconds for each part, more than 0 and at most 3600.
    type: float
    default: 30.0
  library:
    description: Path of C(libnvidia-ml.so.1). When left out, it is searched as M(gpu.kubernetes.nvml_facts) does.
    type: path
  pci_path:
    description: Folder that has one sub-folder for each PCI device.
    type: path
    default: /sys/bus/pci/devices
  kernel_log:
    description: The kernel log.
    type: path
    default: /dev/kmsg
  vendors:
    description: The vendors of the GPUs that the host offers. When left out, those that are found.
    type: list
    elements: str
    choices: [amd, intel, nvidia]
  naming:
    description: How AMD's device plugin names partitions.
    type: str
    choices: [single, mixed]
    default: single
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.node
notes:
  - Kernel log, stacks of processes and the kubelet's checkpoint require root. Without it, their checks are unknown.
seealso:
  - module: gpu.kubernetes.nvml_facts
"""

EXAMPLES = r"""
- name: Observe the host
  gpu.kubernetes.doctor_host_info:
    timeout: 10
  register: observed
"""

RETURN = r"""
observation:
  description:
    - The parts by name, such as C(nvml), C(pci), C(log), C(toolkit), C(runtime) and C(kubelet).
    - C(errors) has the reason for each part that could not be read.
  returned: success
  type: dict
  sample: {kernel: {release: 6.1.0-56-amd64}, errors: {}}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.gather import gather
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.sources import Options
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect, driver
from ansible_collections.gpu.kubernetes.plugins.module_utils._vendors import BY_NAME

MAX_SECONDS = 3600
ARGUMENTS = {
    "timeout": {"type": "float", "default": 30.0},
    "library": {"type": "path"},
    "pci_path": {"type": "path", "default": collect.DEFAULT_PCI_PATH},
    "kernel_log": {"type": "path", "default": driver.KMSG},
    "vendors": {"type": "list", "elements": "str", "choices": sorted(BY_NAME)},
    "naming": {"type": "str", "choices": ["single", "mixed"], "default": "single"},
}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    if not 0 < params["timeout"] <= MAX_SECONDS:
        module.fail_json(
            msg=f"timeout is {params['timeout']:g} seconds; give gpu_doctor_timeout more than 0 and at most {MAX_SECONDS}."
        )
    sources = collect.Options(library=params["library"], pci_path=params["pci_path"], kernel_log=params["kernel_log"])
    options = Options(timeout=params["timeout"], nvml=sources, vendors=params["vendors"], naming=params["naming"])
    module.exit_json(changed=False, observation=gather(options))


if __name__ == "__main__":
    main()
