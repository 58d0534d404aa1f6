#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kernel_settings."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Load kernel modules and set sysctl values of the running kernel
version_added: 0.1.0
description:
  - Loads kernel modules that are neither loaded nor built in, and sets sysctl values that differ.
  - Looks first, so that nothing is touched where all is as wanted, as in containers that share their host's kernel.
  - Concerns the running kernel only. Write files to C(/etc/modules-load.d) and C(/etc/sysctl.d) to make it last.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  modules:
    description: Names of kernel modules to load.
    type: list
    elements: str
    default: []
  sysctl:
    description: Names and values of sysctl settings.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Let bridged traffic pass the packet filter
  gpu.kubernetes.kernel_settings:
    modules:
      - overlay
      - br_netfilter
    sysctl:
      net.bridge.bridge-nf-call-iptables: 1
      net.ipv4.ip_forward: 1
"""

RETURN = r"""
loaded:
  description: The modules that were loaded, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [br_netfilter]
set:
  description: The sysctl settings that were set, or would be in check mode, with their values.
  returned: success
  type: dict
  sample:
    net.ipv4.ip_forward: "1"
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import kernel

ARGUMENTS = {
    "modules": {"type": "list", "elements": "str", "default": []},
    "sysctl": {"type": "dict", "default": {}},
}


def load(module: AnsibleModule, names: list[str]) -> None:
    """Load kernel modules; ends the run with one sentence if one cannot be loaded."""
    for name in names:
        modprobe = module.get_bin_path("modprobe")
        if not modprobe:
            module.fail_json(msg=f"The kernel module {name} is not loaded and there is no modprobe: install kmod.")
        status, output, errors = module.run_command([modprobe, "--", name])
        if status:
            words = " ".join((errors or output).split())
            remedy = "install the modules of the running kernel, or load it on the host if this is a container"
            module.fail_json(msg=f"The kernel module {name} cannot be loaded ({words}): {remedy}.")


def refuse_unknown(module: AnsibleModule, names: t.Iterable[str]) -> None:
    """End the run with one sentence if the kernel has no setting of such a name."""
    unknown = [name for name in names if not os.path.exists(kernel.sysctl_path(name))]
    if unknown:
        remedy = "look for a misspelt name, or name the kernel module that brings it in modules"
        module.fail_json(msg=f"The kernel knows no sysctl {' and '.join(unknown)}: {remedy}.")


def set_values(module: AnsibleModule, values: dict[str, str]) -> None:
    """Set values; ends the run with one sentence if the kernel refuses one."""
    name = value = ""
    try:
        for name, value in values.items():
            kernel.write_sysctl(name, value)
    except OSError as error:
        remedy = "give a value that it takes, or set it on the host if this is a container"
        module.fail_json(msg=f"The kernel refuses {name} = {value} ({error.strerror}): {remedy}.")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    wanted = {name: str(value) for name, value in module.params["sysctl"].items()}
    missing = kernel.missing_modules(module.params["modules"], os.uname().release)
    if not module.check_mode:
        load(module, missing)
    differing = kernel.differing_sysctls(wanted)
    # In check mode a module that is not loaded yet may bring them.
    if not (module.check_mode and missing):
        refuse_unknown(module, differing)
    if not module.check_mode:
        set_values(module, {name: wanted[name] for name in differing})
    module.exit_json(
        changed=bool(missing or differing),
        loaded=missing,
        set={name: wanted[name] for name in differing},
        diff={
            "before": "".join(f"{name} = {value}\n" for name, value in differing.items())
            + "".join(f"{name} is not loaded\n" for name in missing),
            "after": "".join(f"{name} = {wanted[name]}\n" for name in differing)
            + "".join(f"{name} is loaded\n" for name in missing),
        },
    )


if __name__ == "__main__":
    main()
