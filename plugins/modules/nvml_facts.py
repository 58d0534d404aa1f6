#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nvml_facts
short_description: Gather facts about the NVIDIA GPUs of a node
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Reads the GPUs of a node from NVML, the library that C(nvidia-smi) itself is built on, and nothing has to be installed for that.
  - Where the library cannot be loaded, C(nvidia-smi) is asked; where neither answers, the PCI bus still tells which GPUs there are.
  - The driver is asked in a process of its own, so a driver that hangs or crashes costs at most O(timeout) and fails nothing.
  - Having no GPU, or no driver, is a fact and no failure. What is wrong is told in RV(ansible_facts.nvml.error).
options:
  library:
    description:
      - Path of C(libnvidia-ml.so.1).
      - When left out, the dynamic loader's own is used, else one in the usual folders of drivers in containers.
    type: path
  nvidia_smi:
    description:
      - Path of C(nvidia-smi), which is only run when the library cannot be loaded.
      - When left out, the one on E(PATH) is used, else one in the usual folders of drivers in containers.
    type: path
  pci_path:
    description: Folder that has one sub-folder for each PCI device.
    type: path
    default: /sys/bus/pci/devices
  timeout:
    description: Seconds after which the driver is given up, more than 0 and at most 3600.
    type: float
    default: 10.0
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.facts
  - gpu.kubernetes.attributes.node
notes:
  - Needs no privileges beyond those of a user who may run C(nvidia-smi).
"""

EXAMPLES = r"""
- name: Gather facts about GPUs
  gpu.kubernetes.nvml_facts:

- name: Tell what is wrong with the GPUs
  ansible.builtin.assert:
    that: ansible_facts['nvml']['error'] is none
    fail_msg: "{{ inventory_hostname }}: {{ ansible_facts['nvml']['error'] }}"

- name: Show how much memory is free on each GPU
  ansible.builtin.debug:
    msg: "{{ item['name'] }} at {{ item['pci_address'] }}: {{ item['memory_free_bytes'] | human_readable }}"
  loop: "{{ ansible_facts['nvml']['gpus'] }}"
  loop_control:
    label: "{{ item['uuid'] }}"

- name: Use the library of a driver that runs in a container, and do not wait for it
  gpu.kubernetes.nvml_facts:
    library: /run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
    timeout: 3
"""

RETURN = r"""
ansible_facts:
  description: Facts to add to the host.
  returned: always
  type: dict
  contains:
    nvml:
      description: The NVIDIA GPUs of the node. A value that the source does not know is V(none).
      returned: always
      type: dict
      contains:
        source:
          description:
            - Who answered. With V(pci) only addresses and, for common models, names are known.
            - With V(none) there is no GPU on the bus and no driver that would know one.
          type: str
          returned: always
          sample: nvml
        driver_version:
          description: Version of the driver.
          type: str
          returned: always
          sample: 570.124.06
        cuda_driver_version:
          description: Newest CUDA version that the driver serves. Known from NVML only.
          type: str
          returned: always
          sample: "12.8"
        nvml_version:
          description: Version of the NVML library; the driver version that it belongs to, after CUDA's major version.
          type: str
          returned: always
          sample: 12.570.124.06
        error:
          description: One sentence with cause and remedy when the driver or a GPU does not work, else V(none).
          type: str
          returned: always
          sample: "The NVIDIA kernel module is not loaded; load it (modprobe nvidia) or repair its installation."
        gpus:
          description: The GPUs, in the order of their index or, from the PCI bus, of their address.
          type: list
          elements: dict
          returned: always
          contains:
            index:
              description: Number of the GPU as NVML and C(nvidia-smi) count.
              type: int
              returned: always
              sample: 0
            uuid:
              description: Identity of the GPU, the same after a reboot and in another slot.
              type: str
              returned: always
              sample: GPU-075aac7c-424f-5756-bf06-a7545bc0e065
            name:
              description: Product name.
              type: str
              returned: always
              sample: NVIDIA A100-SXM4-40GB
            pci_address:
              description: Address on the PCI bus as Linux writes it.
              type: str
              returned: always
              sample: "0000:41:00.0"
            minor_number:
              description: Number of the device file, C(/dev/nvidiaN). It may differ from the index. Known from NVML only.
              type: int
              returned: always
              sample: 0
            memory_total_bytes:
              description: Memory of the GPU in bytes.
              type: int
              returned: always
              sample: 42949672960
            memory_used_bytes:
              description: Memory in use in bytes. Drivers before 510 count what they reserve for themselves, too.
              type: int
              returned: always
              sample: 0
            memory_free_bytes:
              description: Free memory in bytes.
              type: int
              returned: always
              sample: 42343596032
            mig_mode:
              description: V(enabled), V(disabled), or V(none) where the GPU cannot be partitioned.
              type: str
              returned: always
              sample: disabled
            mig_devices:
              description: Partitions of the GPU. Known from NVML only.
              type: list
              elements: dict
              returned: always
              contains:
                index:
                  description: Number of the partition on its GPU.
                  type: int
                  returned: always
                  sample: 0
                uuid:
                  description: Identity of the partition.
                  type: str
                  returned: always
                  sample: MIG-0ac294b2-96b5-5605-9a93-ec160fa022c7
                name:
                  description: Product name and profile.
                  type: str
                  returned: always
                  sample: NVIDIA H100 80GB HBM3 MIG 3g.40gb
                gpu_instance_id:
                  description: Number of the GPU instance.
                  type: int
                  returned: always
                  sample: 1
                compute_instance_id:
                  description: Number of the compute instance in the GPU instance.
                  type: int
                  returned: always
                  sample: 0
                memory_total_bytes:
                  description: Memory of the partition in bytes.
                  type: int
                  returned: always
                  sample: 42412802048
            compute_capability:
              description: CUDA compute capability.
              type: str
              returned: always
              sample: "8.0"
            temperature_celsius:
              description: Temperature of the GPU in degrees Celsius.
              type: int
              returned: always
              sample: 31
            power_draw_watts:
              description: Power drawn in watts.
              type: float
              returned: always
              sample: 54.21
            utilization_gpu_percent:
              description: Share of the last sample period in which the GPU computed. Unknown while MIG is enabled.
              type: int
              returned: always
              sample: 0
            utilization_memory_percent:
              description: Share of the last sample period in which memory was read or written.
              type: int
              returned: always
              sample: 0
            lost:
              description: Whether the GPU fell off the bus. It needs a reboot, and most of its values are V(none).
              type: bool
              returned: always
              sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect

ARGUMENTS = {
    "library": {"type": "path"},
    "nvidia_smi": {"type": "path"},
    "pci_path": {"type": "path", "default": collect.DEFAULT_PCI_PATH},
    "timeout": {"type": "float", "default": 10.0},
}
LONGEST_TIMEOUT = 3600


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    if not 0 < module.params["timeout"] <= LONGEST_TIMEOUT:
        module.fail_json(
            msg=f"timeout is {module.params['timeout']:g} seconds; give more than 0 and at most {LONGEST_TIMEOUT}."
        )
    facts = collect.gather(collect.Options(**module.params))
    module.exit_json(changed=False, ansible_facts={"nvml": facts.as_dict()})


if __name__ == "__main__":
    main()
