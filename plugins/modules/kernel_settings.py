#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module kernel_settings."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Load kernel modules and set sysctl values, now and at each boot
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Loads kernel modules that are neither loaded nor built in, and sets sysctl values that differ.
  - Changes nothing if all is as desired, as in containers that share their host's kernel.
  - O(modules_file) and O(sysctl_file) are written for the next boot, after the running kernel has accepted the values. A file that an
    administrator masked with a link to C(/dev/null) stays masked.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.full
options:
  state:
    description:
      - V(present) sets the values, now and for each boot.
      - V(absent) removes O(modules_file) and O(sysctl_file). Modules stay loaded and values stay set until the next boot, since
        the pod network of a running node may depend on them.
    type: str
    choices: [present, absent]
    default: present
  modules:
    description: Names of kernel modules to load.
    type: list
    elements: str
    default: []
  sysctl:
    description: Names and values of sysctl settings.
    type: dict
    default: {}
  modules_file:
    description: The file with O(modules) for systemd-modules-load.service, as a whole. By default, none is written.
    type: path
  sysctl_file:
    description: The file with O(sysctl) for systemd-sysctl.service, as a whole. By default, none is written.
    type: path
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
    modules_file: /etc/modules-load.d/gpu-nodes.conf
    sysctl_file: /etc/sysctl.d/99-gpu-nodes.conf
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
files:
  description: The files that were written or removed, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [/etc/modules-load.d/gpu-nodes.conf]
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import (
    FilesError,
    read_bytes,
    remove_file,
    sha256,
    write_atomic,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import host

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "modules": {"type": "list", "elements": "str", "default": []},
    "sysctl": {"type": "dict", "default": {}},
    "modules_file": {"type": "path"},
    "sysctl_file": {"type": "path"},
}
HEADER = "# Written by Ansible (gpu.kubernetes.kernel_settings); a change by hand is lost with its next run.\n"


def load(module: AnsibleModule, names: list[str]) -> None:
    """Load kernel modules; ends the run with one sentence if one cannot be loaded."""
    for name in names:
        modprobe = module.get_bin_path("modprobe")
        if not modprobe:
            module.fail_json(msg=f"The kernel module {name} is not loaded and there is no modprobe: install kmod.")
        status, output, errors = _commands.run([modprobe, "--", name])
        if status:
            words = " ".join((errors or output).split())
            remedy = "install the modules of the running kernel, or load it on the host if this is a container"
            module.fail_json(msg=f"The kernel module {name} cannot be loaded ({words}): {remedy}.")


def refuse_unknown(module: AnsibleModule, names: t.Iterable[str]) -> None:
    """End the run with one sentence if the kernel has no setting of such a name."""
    unknown = [name for name in names if not os.path.exists(host.get_sysctl_path(name))]
    if unknown:
        remedy = "look for a misspelt name, or name the kernel module that brings it in modules"
        module.fail_json(msg=f"The kernel knows no sysctl {' and '.join(unknown)}: {remedy}.")


def set_values(module: AnsibleModule, values: dict[str, str]) -> None:
    """Set values; ends the run with one sentence if the kernel refuses one."""
    name = value = ""
    try:
        for name, value in values.items():
            host.write_sysctl(name, value)
    except OSError as error:
        remedy = "give a value that it takes, or set it on the host if this is a container"
        module.fail_json(msg=f"The kernel refuses {name} = {value} ({error.strerror}): {remedy}.")


def set_now(module: AnsibleModule, desired: dict[str, str]) -> tuple[list[str], dict[str, str | None]]:
    """Set the desired state of the running kernel; return the modules that were missing and the values that differed."""
    missing = host.find_missing_modules(module.params["modules"], os.uname().release)
    if not module.check_mode:
        load(module, missing)
    differing = host.find_differing_sysctls(desired)
    # In check mode, a module that is not loaded yet may have them.
    if not (module.check_mode and missing):
        refuse_unknown(module, differing)
    if not module.check_mode:
        set_values(module, {name: desired[name] for name in differing})
    return missing, differing


def contents(params: t.Mapping[str, t.Any], desired: dict[str, str]) -> dict[str, bytes | None]:
    """Return what each file for the next boot has to hold, None for no file."""
    lines = {
        "modules_file": [f"{name}\n" for name in params["modules"]],
        "sysctl_file": [f"{name} = {value}\n" for name, value in desired.items()],
    }
    present = params["state"] == "present"
    return {
        params[option]: "".join([HEADER, *text]).encode() if present else None
        for option, text in lines.items()
        if params[option]
    }


def set_files(files: dict[str, bytes | None], check_mode: bool) -> dict[str, bytes | None]:
    """Write or remove the files that differ; return them with what they held.  Raises FilesError."""
    before = {path: read_bytes(path) for path in files if os.path.realpath(path) != os.devnull}
    differing = [path for path in before if before[path] != files[path]]
    for path in [] if check_mode else differing:
        data = files[path]
        expected = (sha256(before[path]),)
        if data is None:
            remove_file(path, expected)
        else:
            write_atomic(path, data, mode=0o644, expected=expected)
    return {path: before[path] for path in differing}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    desired = {name: str(value) for name, value in params["sysctl"].items()}
    missing, differing = set_now(module, desired) if params["state"] == "present" else ([], {})
    files = contents(params, desired)
    try:
        changed_files = set_files(files, module.check_mode)
    except FilesError as error:
        module.fail_json(msg=str(error))
    now = {
        "before": "".join(f"{name} = {value}\n" for name, value in differing.items())
        + "".join(f"{name} is not loaded\n" for name in missing),
        "after": "".join(f"{name} = {desired[name]}\n" for name in differing)
        + "".join(f"{name} is loaded\n" for name in missing),
    }
    module.exit_json(
        changed=bool(missing or differing or changed_files),
        loaded=missing,
        set={name: desired[name] for name in differing},
        files=list(changed_files),
        diff=[now, *(_difference(path, before, files[path]) for path, before in changed_files.items())],
    )


def _difference(path: str, before: bytes | None, after: bytes | None) -> dict[str, str]:
    sides = {"before": before, "after": after}
    texts = {side: (data or b"").decode("utf-8", "replace") for side, data in sides.items()}
    return {**texts, "before_header": path, "after_header": path}


if __name__ == "__main__":
    main()
