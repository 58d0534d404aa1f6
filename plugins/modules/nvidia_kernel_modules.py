#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module nvidia_kernel_modules."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nvidia_kernel_modules
short_description: Load NVIDIA's installed kernel modules, without a reboot if possible
version_added: 0.1.0
description:
  - Loads NVIDIA's kernel modules, and after an update of the driver, a change of its flavor or of its parameters, unloads and loads them again.
  - All modules that use the module C(nvidia), such as C(nvidia_drm) and C(gdrdrv), are unloaded with it and loaded again.
  - No process is ended and no service is stopped. If GPUs are in use, nothing is changed, the module does not fail, and RV(reboot_required)
    and RV(users) report the blockers.
  - A module that could not be loaded again is not unloaded.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.full
options:
  state:
    description:
      - V(current) loads O(modules) with the version, the build and the O(parameters) of the next boot.
      - V(loaded) loads O(modules) in any version. They are loaded again only if one is missing that does not fit the others.
      - V(absent) unloads C(nvidia) and all modules that use it; O(modules) and O(parameters) are ignored.
    type: str
    choices: [current, loaded, absent]
    default: current
  modules:
    description: Names of the kernel modules to load, in this order.
    type: list
    elements: str
    default: [nvidia, nvidia_uvm]
  parameters:
    description:
      - Required parameters of the module C(nvidia), such as C(NVreg_EnableStreamMemOPs), with their values.
      - They are compared with those of the loaded module. Files in C(/etc/modprobe.d) set them, which this module does not write. They are
        ignored without O(state=current).
    type: dict
    default: {}
  former_parameters:
    description:
      - Parameters of the module C(nvidia) that were removed from all files, with their former values.
      - If the loaded module still has one of these values, it is loaded again. Because its defaults are unknown, leave these parameters out
        after a successful run; RV(gpu.kubernetes.modprobe_config#module:dropped) has them until then.
    type: dict
    default: {}
notes:
  - Services such as nvidia-persistenced, nvidia-fabricmanager and DCGM use the GPUs too. Stop them first, and start them afterwards.
  - Needs C(modprobe), C(rmmod) and C(modinfo), which the package kmod brings.
seealso:
  - module: gpu.kubernetes.nvml_facts
  - module: gpu.kubernetes.kernel_settings
"""

EXAMPLES = r"""
- name: Bring the installed driver into force
  gpu.kubernetes.nvidia_kernel_modules:
  register: modules

- name: Reboot where GPUs are in use
  ansible.builtin.reboot:
    msg: "{{ modules.reboot_reasons | join('; ') }}"
  when: modules.reboot_required

- name: Let all users profile, as a file in /etc/modprobe.d already says
  gpu.kubernetes.nvidia_kernel_modules:
    modules:
      - nvidia
      - nvidia_uvm
      - nvidia_peermem
    parameters:
      NVreg_RestrictProfilingToAdminUsers: 0

- name: Unload the driver before it is removed
  gpu.kubernetes.nvidia_kernel_modules:
    state: absent
"""

RETURN = r"""
version:
  description: Version of the module C(nvidia) that is loaded at the end, or would be in check mode; V(none) if it is not loaded.
  returned: success
  type: str
  sample: 570.133.20
loaded:
  description: The modules that were loaded, or would be in check mode, in that order, without those that modprobe loads implicitly.
  returned: success
  type: list
  elements: str
  sample: [nvidia, nvidia_uvm]
unloaded:
  description: The modules that were unloaded, or would be in check mode, in that order.
  returned: success
  type: list
  elements: str
  sample: [nvidia_uvm, nvidia]
users:
  description: The processes that have a device of the driver open. Those of other users are visible to root only.
  returned: success
  type: list
  elements: dict
  contains:
    pid:
      description: Number of the process.
      type: int
      returned: always
      sample: 4711
    command:
      description: Name of the process, of at most 15 characters; V(none) if it is not known.
      type: str
      returned: always
      sample: python3
    container_id:
      description: Identifier of its container; V(none) if it is in none.
      type: str
      returned: always
      sample: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    pod_uid:
      description: UID of its pod; V(none) if it is in none.
      type: str
      returned: always
      sample: 0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9
reboot_required:
  description: Whether a reboot, or the end of the blockers, is required. Nothing was changed then.
  returned: success
  type: bool
  sample: false
reboot_reasons:
  description: Why, one sentence each.
  returned: success
  type: list
  elements: str
  sample:
    - the loaded kernel module is 550.163.01 and the installed one is 570.133.20
    - python3 (pid 4711) uses the GPUs
"""

import dataclasses
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._driver import modules, reload, users
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module

ARGUMENTS = {
    "state": {"type": "str", "choices": ["current", "loaded", "absent"], "default": "current"},
    "modules": {"type": "list", "elements": "str", "default": ["nvidia", "nvidia_uvm"]},
    "parameters": {"type": "dict", "default": {}},
    "former_parameters": {"type": "dict", "default": {}},
}
ROOT = "/"


def runner(module: AnsibleModule) -> t.Callable[[t.Sequence[str]], tuple[int, str, str]]:
    """Return what runs a command; it ends the run with one sentence if there is no such program."""

    def run(command: t.Sequence[str]) -> tuple[int, str, str]:
        program = module.get_bin_path(command[0])
        if not program:
            module.fail_json(msg=f"There is no {command[0]} for kernel modules: install kmod.")
        return _commands.run([program, *command[1:]], {"LC_ALL": "C", "LANGUAGE": "C"})

    return run


def act(module: AnsibleModule, desired: modules.Desired) -> dict[str, t.Any]:
    """Read, decide and apply; return the result. Raises ModulesError."""
    run, release = runner(module), os.uname().release
    state = modules.read_state(ROOT, release, desired, run)
    plan = modules.plan_reload(state, desired)
    if not module.check_mode and (plan.unload or plan.load):
        refusal = reload.apply_plan(plan, ROOT, run)
        now = modules.read_state(ROOT, release, desired, run)
        if refusal:
            # A process has opened a device since; it may still be visible.
            plan = modules.Plan(reasons=[*modules.explain_stale(now, desired), refusal, *users.format_users(now.users)])
            state = now
        elif plan.load:
            # A default may be the former value.
            reload.verify_loaded(now, dataclasses.replace(desired, former_parameters={}))
    return result(state, desired, plan)


def result(state: modules.State, desired: modules.Desired, plan: modules.Plan) -> dict[str, t.Any]:
    """Return the module's result for a plan that was applied, or would be."""
    version = state.version
    if modules.NVIDIA in plan.load:
        version = state.installed_version
    elif modules.NVIDIA in plan.unload:
        version = None
    return {
        "changed": bool(plan.unload or plan.load),
        "version": version,
        "loaded": list(plan.load),
        "unloaded": list(plan.unload),
        "users": list(state.users),
        "reboot_required": bool(plan.reasons),
        "reboot_reasons": list(plan.reasons),
        "diff": difference(state, desired, plan),
    }


def difference(state: modules.State, desired: modules.Desired, plan: modules.Plan) -> dict[str, str]:
    """Return the lines before and after, of the modules that the plan is about."""
    before, after = [], []
    for name in [*plan.load, *(name for name in reversed(plan.unload) if name not in plan.load)]:
        own = name == modules.NVIDIA
        before.append(_line(name, name in state.loaded, state.version if own else None))
        after.append(_line(name, name in plan.load, state.installed_version if own else None))
    if modules.NVIDIA in plan.unload and modules.NVIDIA in plan.load:
        if state.version == state.installed_version and modules.explain_other_build(state):
            before.append(f"its srcversion is {state.srcversion}\n")
            after.append(f"its srcversion is {state.installed_srcversion}\n")
        if desired.state == "current":
            differing = modules.find_differing_parameters(state, desired)
            before += [f"{name} = {value}\n" for name, value in differing.items()]
            after += [f"{name} = {desired.parameters[name]}\n" for name in differing]
            before += [
                f"{name} = {value}\n" for name, value in modules.find_leftover_parameters(state, desired).items()
            ]
    return {"before": "".join(before), "after": "".join(after)}


def _line(name: str, loaded: bool, version: str | None) -> str:
    if not loaded:
        return f"{name} is not loaded\n"
    return f"{name} {version} is loaded\n" if version else f"{name} is loaded\n"


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    names = [name.replace("-", "_") for name in params["modules"]]
    desired = modules.Desired(
        params["state"], list(dict.fromkeys(names)), params["parameters"], params["former_parameters"]
    )
    try:
        answer = act(module, desired)
    except modules.ModulesError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
