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
  - Reads the GPUs of a node from NVML, the library of C(nvidia-smi). Nothing has to be installed for that.
  - If the library cannot be loaded, C(nvidia-smi) is queried; if that does not answer either, the GPUs are those of the PCI bus.
  - The driver is queried in a process of its own, so that a driver that hangs or crashes does not fail the module. That takes at most
    O(timeout), half a second for the files of the driver, and two seconds more for a process that cannot be killed.
  - GPUs of AMD and Intel are read from the PCI bus in the same way, within the same time limit.
  - A missing GPU or driver is a fact and not a failure. RV(ansible_facts.nvml.error) has the reason.
options:
  gather_subset:
    description:
      - The facts to gather beside V(min), which is always gathered. V(all) is all of the others except V(processes), which concerns people,
        and V(xid), which reads the kernel log (as root); both must be named.
      - A name after V(!) is left out. With only such names, all others are gathered.
      - A requested value that is unknown is V(none). A value that was not requested is missing.
    type: list
    elements: str
    default: [all]
    choices:
      - all
      - min
      - hardware
      - health
      - power
      - clocks
      - pcie
      - topology
      - processes
      - driver
      - xid
      - "!all"
      - "!hardware"
      - "!health"
      - "!power"
      - "!clocks"
      - "!pcie"
      - "!topology"
      - "!processes"
      - "!driver"
      - "!xid"
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
    description: Seconds to wait for the driver, more than 0 and at most 3600. A driver without C(nvidia-persistenced) initializes all GPUs
      first, which takes half a minute on machines with eight of them.
    type: float
    default: 60.0
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

- name: Require working GPUs
  ansible.builtin.assert:
    that: ansible_facts['nvml']['error'] is none
    fail_msg: "{{ inventory_hostname }}: {{ ansible_facts['nvml']['error'] }}"

- name: Show how much memory is free on each GPU
  ansible.builtin.debug:
    msg: "{{ item['name'] }} at {{ item['pci_address'] }}: {{ item['memory_free_bytes'] | human_readable }}"
  loop: "{{ ansible_facts['nvml']['gpus'] }}"
  loop_control:
    label: "{{ item['uuid'] }}"

- name: Gather no more than what the GPUs are
  gpu.kubernetes.nvml_facts:
    gather_subset: [min]

- name: Show the hosts that require a reboot because of the driver
  ansible.builtin.debug:
    msg: "{{ inventory_hostname }}: {{ ansible_facts['nvml']['driver']['reboot_reasons'] | join('; ') }}"
  when: ansible_facts['nvml']['driver']['reboot_required']

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
    other_gpus:
      description: GPUs of AMD and Intel on the PCI bus, also those on the board or in the processor.
      returned: always
      type: list
      elements: dict
      contains:
        vendor:
          description: V(amd) or V(intel).
          type: str
          returned: always
          sample: amd
        name:
          description:
            - Product name, by the GPU's own driver or the list of PCI devices of the system. V(none) if neither knows it.
          type: str
          returned: always
          sample: AMD Instinct MI210
        pci_address:
          description: Address on the PCI bus as Linux writes it.
          type: str
          returned: always
          sample: "0000:c1:00.0"
        memory_total_bytes:
          description:
            - Memory of the GPU in bytes, as AMD's driver or Intel's drivers xe and, from Intel itself, i915 report it. V(none) if none does.
          type: int
          returned: always
          sample: 68702699520
    nvml:
      description: The NVIDIA GPUs of the node. A value that the source does not report is V(none).
      returned: always
      type: dict
      contains:
        source:
          description:
            - The source. V(pci) has only addresses and, for common models, names.
            - With V(none), there is neither a GPU on the bus nor a driver.
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
        nvswitches:
          description: Number of NVSwitches on the PCI bus. Those of HGX B200 and later boards are not on it.
          type: int
          returned: always
          sample: 6
        machine:
          description: Product name of the machine, as its firmware reports it. V(none) without one, as on many machines with Arm processors.
          type: str
          returned: always
          sample: PowerEdge R7525
        driver:
          description:
            - The driver as the system shows it. V(none) if it was not requested, or did not answer in time.
          type: dict
          returned: always
          contains:
            module_version:
              description: Version of the loaded kernel module.
              type: str
              returned: always
              sample: 570.124.06
            module_flavor:
              description: V(open) or V(proprietary).
              type: str
              returned: always
              sample: open
            installed_module_version:
              description: Version of the kernel module that the next start would load.
              type: str
              returned: always
              sample: 570.124.06
            library_version:
              description: Version of the driver that the NVML library belongs to.
              type: str
              returned: always
              sample: 570.124.06
            nouveau_loaded:
              description: Whether nouveau is loaded, beside which NVIDIA's module cannot be.
              type: bool
              returned: always
              sample: false
            secure_boot:
              description: Whether the firmware checks the signatures of what it starts, so that the kernel may refuse unsigned modules.
              type: bool
              returned: always
              sample: false
            reboot_required:
              description:
                - Whether a reboot is required because of the driver. If no process uses the GPUs,
                  M(gpu.kubernetes.nvidia_kernel_modules) loads the installed modules instead.
                - A new kernel does not count.
              type: bool
              returned: always
              sample: false
            reboot_reasons:
              description:
                - The reasons. The loaded kernel module has another version than the library or than the installed module, it is another
                  build of the installed one (such as open instead of proprietary), or packages of the driver require a reboot.
                - Packages require it in C(/run/reboot-required.pkgs), as on Debian and Ubuntu, and do not count if the loaded module is
                  known to be the installed one.
                - C(dnf needs-restarting) and C(zypper needs-rebooting) are not queried, because they do not report the driver.
              type: list
              elements: str
              returned: always
              sample: []
            vgpu_unlock:
              description: File of the host that uses vgpu_unlock, which roles of this collection refuse. V(none) without it.
              type: str
              returned: always
              sample: null
        xid_errors:
          description:
            - The driver's error reports in the kernel log, oldest first. V(none) if they were not requested, or the log
              cannot be read.
          type: list
          elements: dict
          returned: always
          contains:
            pci_address:
              description: Address of the GPU.
              type: str
              returned: always
              sample: "0000:3b:00.0"
            xid:
              description: Number of the error in NVIDIA's catalogue.
              type: int
              returned: always
              sample: 79
            message:
              description: The driver's message.
              type: str
              returned: always
              sample: pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
            uptime_seconds:
              description: When it was, in seconds since the start of the system.
              type: float
              returned: always
              sample: 8613.475
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
            pci_device_id:
              description: The PCI device id, as four hexadecimal digits in lower case. NVIDIA publishes a list of them.
              type: str
              returned: always
              sample: 20b0
            pci_class:
              description: The class on the PCI bus, V(0x030000) with a display output and V(0x030200) without.
              type: str
              returned: always
              sample: "0x030200"
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
              description: V(enabled), V(disabled), or V(none) if the GPU cannot be partitioned.
              type: str
              returned: always
              sample: disabled
            mig_mode_pending:
              description: What RV(ansible_facts.nvml.gpus[].mig_mode) will be after a reset of the GPU. Known from NVML only.
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
            brand:
              description: Product brand.
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: tesla
            architecture:
              description: Generation of the GPU, such as V(turing), V(ampere) or V(hopper).
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: ampere
            serial:
              description: Serial number of the board.
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: "1325021025489"
            board_part_number:
              description: Part number of the board.
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: 900-21001-0000-000
            vbios_version:
              description: Version of the video BIOS.
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: 92.00.45.00.05
            persistence_mode:
              description: Whether the driver stays loaded while no process uses the GPU, V(enabled) or V(disabled).
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: enabled
            compute_mode:
              description: Who may compute, V(default), V(exclusive_process), V(exclusive_thread) or V(prohibited).
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: default
            virtualization_mode:
              description: V(none), V(passthrough), V(vgpu), V(host_vgpu) or V(host_vsga).
              type: str
              returned: O(gather_subset) has V(hardware)
              sample: none
            vgpu_license:
              description:
                - The vGPU licence, as NVIDIA's guest driver reports it. C(product) is the licensed product, C(licensed) whether the licence is
                  obtained, and C(expires) when it ends in UTC, V(none) if that is unknown or never.
                - V(none) on bare metal and elsewhere where the driver requires no licence, and with drivers before 510.
              type: dict
              returned: O(gather_subset) has V(hardware)
              sample: {product: NVIDIA RTX Virtual Workstation, licensed: true, expires: "2026-11-28T10:16:57Z"}
            bar1:
              description: Memory that is mapped on the PCI bus, C(total_bytes), C(used_bytes) and C(free_bytes).
              type: dict
              returned: O(gather_subset) has V(hardware)
              sample: {total_bytes: 68719476736, used_bytes: 1048576, free_bytes: 68718428160}
            gpu_instances:
              description:
                - GPU instances of MIG, also those without a compute instance, which RV(ansible_facts.nvml.gpus[].mig_devices) has not.
                - V(none) if it is not known; NVML reports it to root only.
              type: list
              elements: dict
              returned: O(gather_subset) has V(hardware)
              contains:
                id:
                  description: Number of the GPU instance.
                  type: int
                  returned: always
                  sample: 1
                profile_id:
                  description: Number of its profile, as C(nvidia-smi mig -lgip) shows it.
                  type: int
                  returned: always
                  sample: 9
                slices:
                  description: How many of the GPU's compute slices it has.
                  type: int
                  returned: always
                  sample: 3
                memory_total_bytes:
                  description: Memory of its profile in bytes.
                  type: int
                  returned: always
                  sample: 42412802048
                placement_start:
                  description: Its first slice of the GPU's memory.
                  type: int
                  returned: always
                  sample: 4
                placement_size:
                  description: How many of these it has.
                  type: int
                  returned: always
                  sample: 4
            ecc:
              description:
                - Error correction of the memory, C(mode) and C(mode_pending) (V(enabled) or V(disabled)), and counts of errors
                  since the driver was loaded (C(_volatile)) and ever (C(_aggregate)).
              type: dict
              returned: O(gather_subset) has V(health)
              sample:
                mode: enabled
                mode_pending: enabled
                corrected_volatile: 0
                corrected_aggregate: 3
                uncorrected_volatile: 0
                uncorrected_aggregate: 0
            retired_pages:
              description: Pages taken out of use for errors of C(single_bit) and C(double_bit), and whether more wait for a reboot (C(pending)).
              type: dict
              returned: O(gather_subset) has V(health)
              sample: {single_bit: 0, double_bit: 0, pending: false}
            row_remapping:
              description:
                - Rows replaced for C(corrected) and C(uncorrected) errors, whether more wait for a reset (C(pending)), and whether one
                  could not be replaced (C(failed)). From Ampere on, in the place of retired pages.
              type: dict
              returned: O(gather_subset) has V(health)
              sample: {corrected: 0, uncorrected: 0, pending: false, failed: false}
            recovery_action:
              description:
                - What the driver requires to recover the GPU, of V(none), V(gpu_reset), V(node_reboot), V(drain_p2p) and V(drain_and_reset), as text.
                - Null for drivers before 570.
              type: str
              returned: O(gather_subset) has V(health)
              sample: none
            power:
              description: Limits of the power in watts, as set, as enforced, by default, and between which it can be set.
              type: dict
              returned: O(gather_subset) has V(power)
              sample: {limit_watts: 400.0, limit_enforced_watts: 400.0, limit_default_watts: 400.0, limit_min_watts: 100.0, limit_max_watts: 400.0}
            clocks:
              description:
                - Clocks in MHz of C(graphics), C(sm), C(memory) and C(video), now (C(_mhz)) and at most (C(_max_mhz)).
                - C(event_reasons) has the reasons for lower clocks, of V(gpu_idle), V(applications_clocks_setting), V(sw_power_cap),
                  V(hw_slowdown), V(sync_boost), V(sw_thermal_slowdown), V(hw_thermal_slowdown), V(hw_power_brake_slowdown),
                  V(display_clock_setting), V(board_limit) and V(reliability).
              type: dict
              returned: O(gather_subset) has V(clocks)
              sample:
                graphics_mhz: 210
                graphics_max_mhz: 1410
                sm_mhz: 210
                sm_max_mhz: 1410
                memory_mhz: 1215
                memory_max_mhz: 1215
                video_mhz: 585
                video_max_mhz: 1290
                event_reasons: [gpu_idle]
            pcie:
              description: The PCI Express link, its C(generation) and C(width) now and at most, and how often something was sent again (C(replays)).
              type: dict
              returned: O(gather_subset) has V(pcie)
              sample: {generation: 4, generation_max: 4, width: 16, width_max: 16, replays: 0}
            numa_node:
              description: NUMA node of the processors near the GPU, by the PCI bus. V(none) on a machine that has only one.
              type: int
              returned: O(gather_subset) has V(topology)
              sample: 0
            memory_numa_node:
              description: NUMA node that the GPU's own memory is, as on Grace machines. V(none) elsewhere, and with drivers before 535.
              type: int
              returned: O(gather_subset) has V(topology)
              sample: 1
            cpu_affinity:
              description: The processors near the GPU, as Linux writes sets.
              type: str
              returned: O(gather_subset) has V(topology)
              sample: 0-31,64-95
            nvlinks:
              description: The NVLinks. V(none) if they are unknown; empty for a GPU without them.
              type: list
              elements: dict
              returned: O(gather_subset) has V(topology)
              contains:
                link:
                  description: Number of the link.
                  type: int
                  returned: always
                  sample: 0
                active:
                  description: Whether it works.
                  type: bool
                  returned: always
                  sample: true
                version:
                  description: Version of NVLink. V(none) if the driver reports none.
                  type: str
                  returned: always
                  sample: "3.0"
                remote:
                  description: What is at its other end, V(gpu), V(switch) or V(ibmnpu).
                  type: str
                  returned: always
                  sample: switch
                remote_pci_address:
                  description: Address of what is at its other end.
                  type: str
                  returned: always
                  sample: "0000:c4:00.0"
            fabric:
              description:
                - Registration with the NVSwitch fabric, V(none) for a GPU without one. C(state) is V(not_supported), V(not_started),
                  V(in_progress) or V(completed), C(status) NVML's code for the outcome, 0 for success.
              type: dict
              returned: O(gather_subset) has V(health) or V(topology)
              sample: {state: completed, status: 0, clique_id: 0, cluster_uuid: null}
            peers:
              description:
                - The other GPUs by C(index), with the nearest thing that both share as C(nvidia-smi topo) writes it, V(PIX), V(PXB), V(PHB),
                  V(NODE) or V(SYS), and V(internal) for two on one board.
              type: list
              elements: dict
              returned: O(gather_subset) has V(topology)
              sample: [{index: 1, level: NODE}]
            processes:
              description: The processes that use the GPU. V(none) if they are unknown.
              type: list
              elements: dict
              returned: O(gather_subset) has V(processes)
              contains:
                pid:
                  description: Number of the process on the host.
                  type: int
                  returned: always
                  sample: 4242
                name:
                  description: Name of its command, if the module sees the process.
                  type: str
                  returned: always
                  sample: python3
                type:
                  description: V(compute), V(graphics) or V(mps).
                  type: str
                  returned: always
                  sample: compute
                used_memory_bytes:
                  description: Memory of the GPU that it uses, in bytes.
                  type: int
                  returned: always
                  sample: 10737418240
                gpu_instance_id:
                  description: Number of the GPU instance that it runs in, where MIG is enabled.
                  type: int
                  returned: always
                  sample: null
                compute_instance_id:
                  description: Number of the compute instance.
                  type: int
                  returned: always
                  sample: null
            lost:
              description:
                - Whether the driver has lost the GPU, since it fell off the bus, cannot open it, or does not serve it though it is there.
                  C(error) says which, and most of its values are V(none).
              type: bool
              returned: always
              sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect

NAMES = ["all", *collect.SUBSETS]
ARGUMENTS = {
    "gather_subset": {
        "type": "list",
        "elements": "str",
        "default": ["all"],
        "choices": ["all", "min", *collect.SUBSETS, *(f"!{name}" for name in NAMES)],
    },
    "library": {"type": "path"},
    "nvidia_smi": {"type": "path"},
    "pci_path": {"type": "path", "default": collect.DEFAULT_PCI_PATH},
    "timeout": {"type": "float", "default": 60.0},
}
LONGEST_TIMEOUT = 3600


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    if not 0 < module.params["timeout"] <= LONGEST_TIMEOUT:
        module.fail_json(
            msg=f"timeout is {module.params['timeout']:g} seconds; give more than 0 and at most {LONGEST_TIMEOUT}."
        )
    subset = collect.parse_subset(module.params.pop("gather_subset"))
    facts = collect.gather_facts(collect.Options(subset=subset, **module.params))
    others, warnings = collect.gather_other_gpus(module.params["pci_path"], module.params["timeout"])
    for warning in warnings:
        module.warn(warning)
    module.exit_json(changed=False, ansible_facts={"nvml": facts.as_dict(), "other_gpus": others})


if __name__ == "__main__":
    main()
