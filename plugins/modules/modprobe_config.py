#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: modprobe_config
short_description: Block kernel modules and set parameters of others, at each boot
version_added: 0.1.0
description:
  - Writes a file in C(/etc/modprobe.d) as a whole, and rebuilds the initial RAM disks, which have a copy of it.
  - An interrupted run can be repeated; it resumes where it stopped.
  - Loaded modules stay loaded. M(gpu.kubernetes.nvidia_kernel_modules) loads them again if that is required.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.full
options:
  path:
    description: The file, whose name ends in C(.conf).
    type: path
    required: true
  state:
    description: Whether the file exists. An empty file is removed.
    type: str
    choices: [present, absent]
    default: present
  blacklist:
    description: Modules that must not be loaded, neither by the kernel nor by name.
    type: list
    elements: str
    default: []
  options:
    description: For each module, its parameters with their values.
    type: dict
    default: {}
  initramfs:
    description:
      - Whether to rebuild the initial RAM disks of all kernels after a change, with C(update-initramfs), C(dracut) or C(mkinitcpio).
        A host without RAM disks, such as a container, needs none of these programs.
    type: bool
    default: true
  boot_path:
    description: Where the initial RAM disks are.
    type: path
    default: /boot
  state_dir:
    description: The folder of this collection's records, with marks of RAM disks that are due and with RV(dropped).
    type: path
    default: /var/lib/gpu-kubernetes
seealso:
  - module: gpu.kubernetes.nvidia_kernel_modules
  - module: gpu.kubernetes.kernel_settings
"""

EXAMPLES = r"""
- name: Block nouveau, and allow profiling in containers
  gpu.kubernetes.modprobe_config:
    path: /etc/modprobe.d/gpu-kubernetes.conf
    blacklist: [nouveau]
    options:
      nvidia:
        NVreg_RestrictProfilingToAdminUsers: 0
"""

RETURN = r"""
initramfs_command:
  description: The command that rebuilt the initial RAM disks, or would in check mode; empty if that is not required.
  returned: success
  type: list
  elements: str
  sample: [update-initramfs, -u, -k, all]
dropped:
  description:
    - For each module, the parameters that were removed from the file since the last boot, with their values. A loaded module may still have
      them.
    - They are recorded in C(state/parameters-due.json) below O(state_dir). Remove that file once the modules were loaded again.
  returned: success
  type: dict
  sample: {nvidia: {NVreg_EnableStreamMemOPs: "1"}}
"""

import json
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
from ansible_collections.gpu.kubernetes.plugins.module_utils._driver import modprobe
from ansible_collections.gpu.kubernetes.plugins.module_utils._driver.modprobe import (
    ModprobeError,
    find_dropped,
    render_file,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ARGUMENTS = {
    "path": {"type": "path", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "blacklist": {"type": "list", "elements": "str", "default": []},
    "options": {"type": "dict", "default": {}},
    "initramfs": {"type": "bool", "default": True},
    "boot_path": {"type": "path", "default": "/boot"},
    "state_dir": {"type": "path", "default": "/var/lib/gpu-kubernetes"},
}
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    due = os.path.join(params["state_dir"], "state", "initramfs-due")
    try:
        desired = render_file(params["blacklist"], params["options"]) if params["state"] == "present" else None
        before = read_bytes(params["path"])
        differs = before != desired
        note = os.path.join(params["state_dir"], "state", "parameters-due.json")
        left = find_dropped(before, desired, remembered(note)) if params["state"] == "present" else {}
        noted = params["initramfs"] and os.path.exists(due)
        command = rebuilding(module) if params["initramfs"] and (differs or noted) else []
        # A host without RAM disks never rebuilds them.
        forgotten = noted and not command and params["state"] == "absent"
        if not module.check_mode:
            if command:
                # Written first: a run that is killed on the way must not leave RAM disks with the former file.
                write_atomic(due, b"", mode=0o600, dir_mode=0o700)
            if differs or not left:
                # Before the file, which has the former parameters.
                remember(note, left)
            if differs:
                write(params["path"], desired, before)
            if command:
                rebuild(module, command)
            if command or forgotten:
                # A run that rebuilds none leaves them due.
                remove_file(due)
    except ModprobeError as error:
        module.fail_json(msg=f"{error}.")
    except FilesError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=differs or forgotten or bool(command),
        initramfs_command=command,
        dropped=left,
        diff={
            "before_header": params["path"],
            "after_header": params["path"],
            "before": (before or b"").decode("utf-8", "replace"),
            "after": (desired or b"").decode("utf-8", "replace"),
        },
    )


def boot_id() -> str:
    """Return the host's boot ID."""
    return (read_bytes(BOOT_ID) or b"").decode("ascii", "replace").strip()


def remembered(note: str) -> dict[str, dict[str, str]]:
    """Return the recorded parameters of this boot; empty without a record."""
    try:
        known = json.loads(read_bytes(note) or b"{}")
    except ValueError:
        return {}
    return t.cast("dict[str, dict[str, str]]", known["parameters"]) if known.get("boot_id") == boot_id() else {}


def remember(note: str, parameters: dict[str, dict[str, str]]) -> None:
    """Record removed parameters for the next run, if there are any."""
    if parameters:
        text = json.dumps({"boot_id": boot_id(), "parameters": parameters}, sort_keys=True)
        write_atomic(note, text.encode("utf-8"), mode=0o600, dir_mode=0o700)
    else:
        remove_file(note)


def write(path: str, data: bytes | None, before: bytes | None) -> None:
    """Write the file, or remove it, if it still is as *before*."""
    expected = (sha256(before),)
    if data is None:
        remove_file(path, expected)
    else:
        write_atomic(path, data, mode=0o644, expected=expected)


def rebuilding(module: AnsibleModule) -> list[str]:
    """Return the command that rebuilds the RAM disks, empty without RAM disks; ends the run if there is no such command."""
    images = modprobe.list_initramfs_images(module.params["boot_path"])
    if not images:
        return []
    command = modprobe.find_initramfs_command(module.get_bin_path)
    if command is None:
        tools = ", ".join(tool[0] for tool in modprobe.INITRAMFS_TOOLS)
        module.fail_json(
            msg=f"There are initial RAM disks ({images[0]}) and no program that rebuilds them ({tools}): install the one of this "
            "distribution, or set initramfs to false and rebuild them yourself."
        )
    return t.cast("list[str]", command)


REBUILD_SECONDS = 1800


def rebuild(module: AnsibleModule, command: list[str]) -> None:
    """Rebuild the RAM disks; ends the run with one sentence if that fails."""
    # For each kernel, with all its modules.
    status, output, errors = _commands.run(command, limit=REBUILD_SECONDS)
    if status:
        words = " ".join((errors or output).split()[-40:])
        remedy = "put that right and run again; until then the next boot may find the former modprobe configuration"
        module.fail_json(msg=f"{command[0]} failed ({words}): {remedy}.", stdout=output, stderr=errors)


if __name__ == "__main__":
    main()
