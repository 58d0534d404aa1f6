#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module gpu_driver_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_driver_info
short_description: Read the kernel driver of AMD's or Intel's GPUs, and what keeps it from working
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Reads PCI devices, kernel modules, device nodes, the kernel's log and C(/etc/modprobe.d), and needs no program of the vendor.
  - Changes nothing.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.info
options:
  vendor:
    description: The vendor of the GPUs.
    type: str
    choices: [amd, intel]
    required: true
  root:
    description: The folder that has C(sys), C(proc), C(dev) and C(etc) of the host.
    type: path
    default: /
  kernel_log:
    description: The kernel log.
    type: path
    default: /dev/kmsg
notes:
  - The kernel log, and the programs that use the GPUs, require root.
"""

EXAMPLES = r"""
- name: Read the driver of AMD's GPUs
  gpu.kubernetes.gpu_driver_info:
    vendor: amd
  register: driver
"""

RETURN = r"""
problems:
  description: Why pods could not use the GPUs, one sentence with cause and remedy each; empty for a driver that works.
  returned: success
  type: list
  elements: str
  sample: []
reboot_required:
  description: Whether the next boot would load other modules than the loaded ones.
  returned: success
  type: bool
  sample: false
reboot_reasons:
  description: Why, one clause each.
  returned: success
  type: list
  elements: str
  sample: []
users:
  description: The processes that use the GPUs, one clause each.
  returned: success
  type: list
  elements: str
  sample: [python3 (pid 4711) uses the GPUs]
state:
  description:
    - What was read. C(gpus) by PCI address, C(modules) by name, C(kfd), C(missing_devices), C(missing_firmware), which is C(null) if the kernel's log
      cannot be read, C(blockers), C(secure_boot), C(unsupported_modules) and C(kernel).
  returned: success
  type: dict
  sample: {vendor: amd, kernel: 6.8.0-60-generic, kfd: true}
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus import drivers
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.driver import KMSG, read_kernel_log, run_program

ARGUMENTS: dict[str, dict[str, t.Any]] = {
    "vendor": {"type": "str", "choices": ["amd", "intel"], "required": True},
    "root": {"type": "path", "default": "/"},
    "kernel_log": {"type": "path", "default": KMSG},
}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    state = drivers.read_state(params["root"], params["vendor"], read_kernel_log(params["kernel_log"]), run_program)
    problems, reasons = drivers.find_problems(state), drivers.find_reboot_reasons(state)
    users = state.pop("users")
    module.exit_json(
        changed=False,
        problems=problems,
        reboot_required=bool(reasons),
        reboot_reasons=reasons,
        users=users,
        state=state,
    )


if __name__ == "__main__":
    main()
