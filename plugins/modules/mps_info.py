#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module mps_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: mps_info
short_description: Read the limits of a control daemon of MPS, and wait until they are set
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Reads the limits of each client through the daemon's pipe with C(nvidia-cuda-mps-control), the driver's program. The daemon of NVIDIA's device
    plugin answers before it has set them, and the plugin then offers GPUs without limits
    (U(https://github.com/NVIDIA/k8s-device-plugin/pull/1946)).
  - Changes nothing.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
  - gpu.kubernetes.attributes.info
options:
  path:
    description: The folder of the control daemons on the host.
    type: path
    default: /run/nvidia/mps
  resource:
    description: The resource whose daemon is queried.
    type: str
    default: nvidia.com/gpu
  replicas:
    description: Number of clients of each GPU, from which the limits follow. With V(0), only RV(program) is reported.
    type: int
    default: 0
  gpus:
    description: The GPUs as M(gpu.kubernetes.nvml_facts) reports them. Lost ones are ignored.
    type: list
    elements: dict
    default: []
  wait_timeout:
    description: Seconds to wait for the limits. The module fails afterwards, and names the first one that differs.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Wait until the limits for four clients are set
  gpu.kubernetes.mps_info:
    replicas: 4
    gpus: "{{ ansible_facts['nvml']['gpus'] }}"
    wait_timeout: 300
"""

RETURN = r"""
program:
  description: Path of C(nvidia-cuda-mps-control); V(none) if the host does not have it.
  returned: success
  type: str
  sample: /usr/bin/nvidia-cuda-mps-control
limits:
  description: The limits of a client, C(percentage) of a GPU's threads and C(memory) in MiB by the index of the GPU; empty without O(replicas).
  returned: success
  type: dict
  sample: {percentage: 25, memory: {"0": 10240}}
"""

import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._mps import control
from ansible_collections.gpu.kubernetes.plugins.module_utils._mps.limits import (
    Limits,
    compute_limits,
    find_difference,
)

ARGUMENTS: dict[str, dict[str, t.Any]] = {
    "path": {"type": "path", "default": "/run/nvidia/mps"},
    "resource": {"type": "str", "default": "nvidia.com/gpu"},
    "replicas": {"type": "int", "default": 0},
    "gpus": {"type": "list", "elements": "dict", "default": []},
    "wait_timeout": {"type": "int", "default": 0},
}


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, ARGUMENTS)
    params = module.params
    program, replicas = control.find_program(), params["replicas"]
    if replicas <= 0:
        module.exit_json(changed=False, program=program, limits={})
    if program is None:
        module.fail_json(msg=f"The host has no {control.PROGRAM}; install the driver's package that has it.")
        return
    desired = compute_limits([gpu for gpu in params["gpus"] if not gpu.get("lost")], replicas)
    pipe = control.get_pipe(params["path"], params["resource"])
    end = time.monotonic() + params["wait_timeout"]
    problem = find_problem(program, pipe, desired)
    while problem and time.monotonic() < end:
        time.sleep(1)
        problem = find_problem(program, pipe, desired)
    if problem:
        module.fail_json(
            msg=f"MPS does not limit its clients after {params['wait_timeout']} s: {problem}; read the log of the pod of its control daemon."
        )
    memory = {str(index): mebibytes for index, mebibytes in desired.memory.items()}
    module.exit_json(changed=False, program=program, limits={"percentage": desired.percentage, "memory": memory})


def find_problem(program: str, pipe: str, desired: Limits) -> str:
    """Return a clause about what the daemon lacks; empty if its limits are as desired."""
    try:
        return find_difference(desired, control.read_limits(program, pipe, desired.memory))
    except control.ControlError as error:
        return str(error)


if __name__ == "__main__":
    main()
