#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_smoke_test
short_description: Prove the GPUs of nodes with a pod on each
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Creates one pod on each node through the scheduler, asking for a GPU in its limits as users' pods do, waits for all
    of them together, judges them by their output, and deletes them whatever happens.
  - The GPU comes from the device plugin alone; the pod sets no variables of the NVIDIA runtime and has no rights that
    it does not need.
  - A node whose GPUs are all in use is reported as skipped with the reason, never as passed, and so is one that is cordoned
    unless O(cordoned=test).
  - Where the kubelet turns a pod away because the device plugin has just left or come, another pod follows it until O(timeout).
  - The module itself succeeds when pods fail, so that the results of all nodes can be used; check RV(ok).
options:
  resource_name:
    description: The resource to ask for.
    type: str
    default: nvidia.com/gpu
  resource_count:
    description: How many units of it each pod asks for, 1 or more.
    type: int
    default: 1
  cordoned:
    description: Whether nodes that are cordoned are skipped, or tested with pods that pass the cordon, as before maintenance ends.
    type: str
    choices: [skip, test]
    default: skip
  timeout:
    description: Seconds to wait for all pods together, image pulls included.
    type: int
    default: 300
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
  - gpu.kubernetes.smoke_test
seealso:
  - module: gpu.kubernetes.gpu_nodes_info
"""

EXAMPLES = r"""
- name: Prove a GPU on each of two nodes
  gpu.kubernetes.gpu_smoke_test:
    nodes: [worker-1, worker-2]
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    runtime_class: nvidia
  register: smoke
  failed_when: not smoke.ok

- name: Remove what interrupted tests left, and end those that run
  gpu.kubernetes.gpu_smoke_test:
    state: absent
"""

RETURN = r"""
ok:
  description: Whether no node failed. Skipped nodes do not fail, but see RV(skipped_nodes).
  returned: success
  type: bool
failed_nodes:
  description: Nodes that were tested in vain, or could not be tested for a fault of theirs.
  returned: success
  type: list
  elements: str
skipped_nodes:
  description: Nodes on which nothing was proved.
  returned: success
  type: list
  elements: str
removed_leftovers:
  description: Pods of earlier runs that were deleted.
  returned: success
  type: list
  elements: str
results:
  description: One entry for each node, in the order given.
  returned: success
  type: list
  elements: dict
  contains:
    node:
      description: The node.
      type: str
    pod:
      description: The pod's name, or empty if none was created.
      type: str
    phase:
      description: The pod's last phase, C(NotCreated) or C(Deleted).
      type: str
    passed:
      description: Whether the GPU is proved.
      type: bool
    skipped:
      description: Whether it was not tried, or no GPU became free in time.
      type: bool
    reason:
      description: Why it was not passed; else empty.
      type: str
    log_tail:
      description: The pod's last lines.
      type: list
      elements: str
    image:
      description: The image that ran, or empty if none was tried.
      type: str
    visible_devices:
      description: The UUIDs of GPUs or MIG devices that the pod printed, if it did.
      type: list
      elements: str
  sample:
    - node: worker-1
      pod: gpu-smoke-test-8x2lq
      phase: Succeeded
      passed: true
      skipped: false
      reason: ""
      log_tail: [Test PASSED, Done]
      image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
      visible_devices: []
"""

from typing import Any, Mapping

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, Cluster, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import LABELS, Result
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_face import (
    ARGUMENTS,
    REQUIRED_IF,
    run,
    smoke_of,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import (
    Outcome,
    remove_pods,
    run_smoke_test,
)

ARGUMENT_SPEC: dict[str, Any] = {
    **ARGUMENTS,
    "resource_name": {"type": "str", "default": "nvidia.com/gpu"},
    "resource_count": {"type": "int", "default": 1},
    "cordoned": {"type": "str", "choices": ["skip", "test"], "default": "skip"},
    "timeout": {"type": "int", "default": 300},
}


def _act(cluster: Cluster, params: Mapping[str, Any], check_mode: bool) -> Outcome[Result]:
    if params["state"] == "absent":
        return remove_pods(cluster, params["namespace"], LABELS, check_mode=check_mode)
    smoke = smoke_of(
        params,
        resource=params["resource_name"],
        count=params["resource_count"],
        cordoned=params["cordoned"] == "test",
    )
    return run_smoke_test(cluster, smoke, list(dict.fromkeys(params["nodes"])), check_mode=check_mode)


def main() -> None:
    module = AnsibleModule(
        argument_spec={**AUTH_ARG_SPEC, **ARGUMENT_SPEC}, required_if=REQUIRED_IF, supports_check_mode=True
    )
    params = module.params
    if params["resource_count"] < 1:
        module.fail_json(msg="A pod that asks for no GPU proves none; set resource_count to 1 or more.")
    cluster = connect(module)
    run(module, lambda: _act(cluster, params, module.check_mode))


if __name__ == "__main__":
    main()
