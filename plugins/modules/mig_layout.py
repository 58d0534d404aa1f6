#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: mig_layout
short_description: Partition the GPUs of a host with MIG
version_added: 0.1.0
description:
  - Switches the MIG mode of NVIDIA GPUs on and off, and creates and removes their GPU instances and compute instances, through NVML.
  - GPU instances that the layout has too stay, with the programs that use them, if the others fit beside them. Otherwise all of the GPU are created again.
  - Nothing is changed if the layout is invalid or does not fit the GPUs, if processes use what would be removed, or if a permission is missing.
  - An interrupted run can be repeated; it resumes by reading the GPUs.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.full
options:
  layout:
    description:
      - What each GPU has. Later entries replace earlier ones for their GPUs. MIG mode is off on GPUs that no entry names.
      - Required with O(state=present).
    type: list
    elements: dict
    suboptions:
      gpus:
        description: V(all) GPUs that have MIG, or a list of indices as NVML and nvidia-smi number them.
        type: raw
        required: true
      profiles:
        description:
          - The number of MIG devices by profile, as C(nvidia-smi mig -lgip) shows it, such as V(1g.10gb) or V(1g.10gb+me). Empty for MIG mode off.
          - A profile with smaller compute instances, such as V(1c.3g.40gb), is also possible. Several of them share a GPU instance.
        type: dict
        required: true
  state:
    description: V(absent) restores the state of the GPUs before the first change by this module, of which it has a record in O(state_dir).
    type: str
    choices: [present, absent]
    default: present
  strategy:
    description:
      - The MIG strategy of NVIDIA's device plugin. A layout that the plugin does not serve with it is refused.
      - V(single) requires one profile on all GPUs of the host, V(mixed) profiles with whole GPU instances. Left out, all layouts are accepted.
    type: str
    choices: [single, mixed]
  allow_gpu_reset:
    description:
      - Whether GPUs that change their MIG mode may be reset by C(nvidia-smi --gpu-reset), which A100 and A30 require. Others are not reset.
      - Newer GPUs change their mode at once.
    type: bool
    default: false
  allow_reboot:
    description:
      - Whether a change of MIG mode may wait for a reboot, where a reset is not allowed or fails. This module does not reboot; see RV(reboot_required).
    type: bool
    default: false
  drain_follows:
    description: Whether the node is drained before the run without check mode, so that in check mode processes of pods are no error.
    type: bool
    default: false
  services:
    description: systemd units that hold GPUs. Active ones are stopped while GPUs change, and started again.
    type: list
    elements: str
    default: []
  cdi_specs:
    description: CDI specifications that are generated again if they exist and differ.
    type: list
    elements: path
    default: [/etc/cdi/nvidia.yaml, /var/run/cdi/nvidia.yaml]
  cdi_command:
    description: The command that prints a CDI specification. C(--format) is appended.
    type: list
    elements: str
    default: [nvidia-ctk, cdi, generate]
  boot_program:
    description:
      - Where to write a program that applies the layout at boot, without Ansible. Start it by RV(boot_command) in a unit before the kubelet.
      - It never resets a GPU. With O(state=absent) it is removed.
    type: path
  boot_config:
    description: Where to write the layout for O(boot_program), by the UUIDs of the GPUs.
    type: path
  library:
    description: Path of C(libnvidia-ml.so.1). Left out, it is searched as by M(gpu.kubernetes.nvml_facts).
    type: path
  nvidia_smi:
    description: Path of C(nvidia-smi). Left out, it is searched in C(PATH) and the folders of drivers.
    type: path
  state_dir:
    description: The folder of this collection's records.
    type: path
    default: /var/lib/gpu-kubernetes
notes:
  - Check mode does not stop O(services), so that it cannot predict whether another program prevents a reset.
  - Requires root and the driver 535 or newer.
  - Drain the node before; pods that have a removed MIG device fail.
seealso:
  - module: gpu.kubernetes.nvml_facts
"""

EXAMPLES = r"""
- name: Split all GPUs in seven, but the first in two
  gpu.kubernetes.mig_layout:
    layout:
      - gpus: all
        profiles:
          1g.10gb: 7
      - gpus: [0]
        profiles:
          3g.40gb: 2
    services:
      - nvidia-persistenced
      - nvidia-dcgm
    allow_gpu_reset: true

- name: Return to the layout before the first run
  gpu.kubernetes.mig_layout:
    state: absent
"""

RETURN = r"""
gpus:
  description: All NVIDIA GPUs of the host, in the order of their indices.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: Index of NVML.
      type: int
      returned: always
      sample: 0
    uuid:
      description: Identity of the GPU.
      type: str
      returned: always
      sample: GPU-8f3b1a52-6c1e-4e0c-9a53-0f6d1c2b3a49
    pci_address:
      description: Address on the PCI bus.
      type: str
      returned: always
      sample: "0000:41:00.0"
    name:
      description: Product name.
      type: str
      returned: always
      sample: NVIDIA H100 80GB HBM3
    before:
      description:
        - The state before. C(mode) is the MIG mode in force and C(mode_pending) that after a reset, V(enabled) or V(disabled), V(none) without MIG.
          C(profiles) is the number of MIG devices by profile.
      type: dict
      returned: always
      sample: {mode: disabled, mode_pending: disabled, profiles: {}}
    after:
      description: The state after, or that a run would reach in check mode.
      type: dict
      returned: always
      sample: {mode: enabled, mode_pending: enabled, profiles: {1g.10gb: 7}}
reset_required:
  description: Whether a change of MIG mode waits for a reset of GPUs, or would in check mode.
  returned: success
  type: bool
  sample: false
reboot_required:
  description: Whether a change of MIG mode waits for a reboot, or would in check mode. Run the module again after the reboot.
  returned: success
  type: bool
  sample: false
holders:
  description: The processes that have GPUs open that change, at most 32. Those of other users are visible to root only.
  returned: always, except for failures before the GPUs were read
  type: list
  elements: dict
  contains:
    pid:
      description: Number of the process.
      type: int
      returned: always
      sample: 4711
    program:
      description: Name of the program, of at most 15 printable characters; V(none) if it is not known.
      type: str
      returned: always
      sample: python3
    gpus:
      description: Indices of the GPUs.
      type: list
      elements: int
      returned: always
      sample: [0]
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
cdi_specs:
  description: The CDI specifications that were generated, or would be in check mode.
  returned: success
  type: list
  elements: path
  sample: [/etc/cdi/nvidia.yaml]
boot_command:
  description: The command that applies the layout at boot; empty without O(boot_program).
  returned: success
  type: list
  elements: str
  sample: [/usr/bin/python3, /usr/local/lib/gpu-kubernetes/mig.pyz, /etc/gpu-kubernetes/mig.json]
kubelet_units:
  description: The systemd units of which one runs the kubelet, by the Kubernetes distribution of the host. O(boot_program) has to run before them.
  returned: success
  type: list
  elements: str
  sample: [kubelet.service]
"""

import contextlib
import os
import sys
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands, _distributions
from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig import apply, boot, cdi, layout, program, record
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.services import ServiceError, Services
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import mig
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.partitions import Gpu
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.reader import find_smi

ENTRY = {"gpus": {"type": "raw", "required": True}, "profiles": {"type": "dict", "required": True}}
ARGUMENTS = {
    "layout": {"type": "list", "elements": "dict", "options": ENTRY},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "strategy": {"type": "str", "choices": ["single", "mixed"]},
    "allow_gpu_reset": {"type": "bool", "default": False},
    "allow_reboot": {"type": "bool", "default": False},
    "drain_follows": {"type": "bool", "default": False},
    "services": {"type": "list", "elements": "str", "default": []},
    "cdi_specs": {"type": "list", "elements": "path", "default": ["/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"]},
    "cdi_command": {"type": "list", "elements": "str", "default": ["nvidia-ctk", "cdi", "generate"]},
    "boot_program": {"type": "path"},
    "boot_config": {"type": "path"},
    "library": {"type": "path"},
    "nvidia_smi": {"type": "path"},
    "state_dir": {"type": "path", "default": files.STATE_DIR},
}
ROOT = "/"
ERRORS: tuple[type[Exception], ...] = (*boot.ERRORS, ServiceError)


class Run:
    """One run of the module on its host."""

    def __init__(self, params: dict[str, t.Any], check_mode: bool, systemctl: str | None) -> None:
        """Read the GPUs and their desired states. Raises LayoutError, MigError or FilesError."""
        self.params, self.check_mode = params, check_mode
        folder = os.path.join(params["state_dir"], "state")
        self.record = os.path.join(folder, "mig.json")
        stopped = os.path.join(folder, "mig-services.json")
        self.services = Services(params["services"], stopped, systemctl, _commands.run)
        former = record.read(self.record)
        requested = layout.parse_layout(params["layout"]) if params["state"] == "present" else ()
        self.recorded = former is not None
        nvml = mig.Mig(params["library"])
        # The undo of a host without a record needs no driver.
        self.gpus: list[Gpu] = nvml.read() if params["state"] == "present" or former else []
        self.node = apply.Node(nvml, find_smi(params["nvidia_smi"]), _commands.run, ROOT, self.services.stopped)
        if params["state"] == "present":
            self.desired = layout.select(requested, self.gpus)
            layout.check_strategy(params["strategy"], self.desired, self.gpus)
        else:
            self.desired = record.select(former["states"], self.gpus) if former else {}

    def act(self) -> dict[str, t.Any]:
        """Change what differs and return the result. Raises one of boot.ERRORS, or ServiceError."""
        params = self.params
        permissions = apply.Permissions(params["allow_gpu_reset"], params["allow_reboot"], params["drain_follows"])
        outcome = apply.bring(self.node, self.gpus, self.desired, permissions, self.check_mode, self._write_record)
        changes = [outcome.changed, self._start_services(), *self._write_boot_files()]
        specs = self._refresh_specs(outcome)
        if params["state"] == "absent" and self.recorded and not outcome.reboot_required:
            changes.append(True)
            if not self.check_mode:
                files.remove_file(self.record)
        distribution = _distributions.detect(lambda path: os.path.exists(ROOT.rstrip("/") + path))
        boot_command = [sys.executable, params["boot_program"], params["boot_config"]] if params["boot_program"] else []
        return {
            "changed": any(changes) or bool(specs),
            "gpus": outcome.gpus,
            "reset_required": outcome.reset_required,
            "reboot_required": outcome.reboot_required,
            "holders": outcome.holders,
            "cdi_specs": specs,
            "boot_command": boot_command,
            "kubelet_units": _distributions.list_kubelet_units(distribution),
            "diff": {side: format_lines(outcome.gpus, side) for side in ("before", "after")},
        }

    def _write_record(self) -> None:
        """Record the GPUs as first met."""
        if self.params["state"] == "present" and not self.recorded:
            data = record.encode(self.gpus, lambda gpu: None if gpu.mode is None else layout.describe(gpu))
            files.write_atomic(self.record, data, mode=0o600, dir_mode=0o700)

    def _start_services(self) -> bool:
        """Start what an interrupted run has stopped, and return whether there was anything."""
        left = bool(self.services.read_stopped())
        if left and not self.check_mode:
            self.services.start()
        return left

    def _write_boot_files(self) -> list[bool]:
        """Write or remove the files for the boot, and return for each whether it differed."""
        params = self.params
        if not params["boot_program"]:
            return []
        more = {name: params[name] for name in ("library", "cdi_specs", "cdi_command")}
        config = record.encode(
            self.gpus, lambda gpu: self.desired.get(gpu.index), nvidia_smi=self.node.nvidia_smi, **more
        )
        contents = {params["boot_config"]: config, params["boot_program"]: program.build_program()}
        present = params["state"] == "present"
        return [self._write(path, data if present else None) for path, data in contents.items()]

    def _write(self, path: str, desired: bytes | None) -> bool:
        if files.read_bytes(path) == desired:
            return False
        if self.check_mode:
            return True
        if desired is not None:
            files.write_atomic(path, desired)
            return True
        files.remove_file(path)
        with contextlib.suppress(OSError):  # others have files there
            os.rmdir(os.path.dirname(path))
        return True

    def _refresh_specs(self, outcome: apply.Outcome) -> list[str]:
        """Generate the CDI specifications, unless the program of the boot does it after a reboot."""
        states = [gpu["after"] for gpu in outcome.gpus]
        # The command fails while a GPU has MIG mode and no MIG device.
        if outcome.reboot_required or not states or any(s["mode"] == "enabled" and not s["profiles"] for s in states):
            return []
        paths = self.params["cdi_specs"]
        if self.check_mode and outcome.changed:
            return [path for path in paths if os.path.exists(path)]
        return cdi.refresh(paths, self.params["cdi_command"], _commands.run, self.check_mode)


def format_lines(gpus: t.Sequence[t.Mapping[str, t.Any]], side: str) -> str:
    """Return one line for each GPU with its state before or after."""
    lines = []
    for gpu in gpus:
        state = gpu[side]
        devices = ", ".join(f"{count} x {name}" for name, count in state["profiles"].items())
        mode = "has no MIG" if state["mode"] is None else f"MIG {state['mode']}"
        pending = "" if state["mode_pending"] == state["mode"] else f", {state['mode_pending']} after a reset"
        lines.append(f"GPU {gpu['index']}: {mode}{pending}{': ' + devices if devices else ''}\n")
    return "".join(lines)


def main() -> None:
    """Run the module."""
    module = build_module(
        AnsibleModule,
        ARGUMENTS,
        required_if=[("state", "present", ["layout"])],
        required_together=[("boot_program", "boot_config")],
    )
    path = module.params["boot_config"] or os.path.join(module.params["state_dir"], "mig")
    systemctl = module.get_bin_path("systemctl")
    try:
        # The unit may still run after a boot.
        with contextlib.nullcontext() if module.check_mode else files.lock(path, timeout=mig.TIMEOUT):
            answer = Run(module.params, module.check_mode, systemctl).act()
    except ERRORS as error:
        module.fail_json(msg=f"{str(error).rstrip('.')}.", holders=getattr(error, "holders", []))
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
