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
  - The module itself succeeds when pods fail, so that the results of all nodes can be used; check RV(ok).
options:
  state:
    description:
      - With V(present), the nodes are tested. Pods of earlier runs that cannot be alive any more are removed on the way.
      - With V(absent), nothing is tested, and all pods of this module in O(namespace) are removed, whatever their age.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description: The nodes to test. Required with O(state=present).
    type: list
    elements: str
  image:
    description: The image to run. Required with O(state=present).
    type: str
  image_pull_policy:
    description: When the kubelet pulls the image.
    type: str
    choices: [Always, IfNotPresent, Never]
    default: IfNotPresent
  image_pull_secrets:
    description: Names of secrets in O(namespace) for a private registry.
    type: list
    elements: str
    default: []
  command:
    description: What to run instead of the image's entry point.
    type: list
    elements: str
    default: []
  args:
    description: Arguments instead of the image's own.
    type: list
    elements: str
    default: []
  expected_output:
    description: Text that the pod has to print. Empty means that a good exit code is enough.
    type: str
    default: Test PASSED
  runtime_class:
    description: The RuntimeClass for the pod; empty for the nodes' default runtime.
    type: str
    default: ""
  resource_name:
    description: The resource to ask for.
    type: str
    default: nvidia.com/gpu
  resource_count:
    description: How many units of it each pod asks for, 1 or more.
    type: int
    default: 1
  namespace:
    description: Where the pods are created. It has to exist.
    type: str
    default: default
  cordoned:
    description: Whether nodes that are cordoned are skipped, or tested with pods that pass the cordon, as before maintenance ends.
    type: str
    choices: [skip, test]
    default: skip
  tolerations:
    description: Tolerations of the pods. The taint C(nvidia.com/gpu) is tolerated in any case.
    type: list
    elements: dict
    default: []
  run_as_user:
    description:
      - User ID of the container. V(0) is root, for hosts whose GPU device files are not open to everybody.
    type: int
    default: 65534
  timeout:
    description: Seconds to wait for all pods together, image pulls included.
    type: int
    default: 300
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
attributes:
  check_mode:
    support: full
    details:
      - Nothing is created in check mode; nodes that could be tested are reported as skipped, which is not a pass.
  diff_mode:
    support: N/A
    details: Nothing that lasts is created.
  idempotent:
    support: full
    details:
      - Nothing remains of a test, so it reports no change. Only the removal of pods that an interrupted earlier run
        left behind is reported as a change.
requirements:
  - kubernetes >= 24.2.0
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

import signal
from typing import Any, NoReturn

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import Smoke
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import remove_pods, run_smoke_test

ARGUMENT_SPEC: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "nodes": {"type": "list", "elements": "str"},
    "image": {"type": "str"},
    "image_pull_policy": {"type": "str", "choices": ["Always", "IfNotPresent", "Never"], "default": "IfNotPresent"},
    "image_pull_secrets": {"type": "list", "elements": "str", "default": [], "no_log": False},
    "command": {"type": "list", "elements": "str", "default": []},
    "args": {"type": "list", "elements": "str", "default": []},
    "expected_output": {"type": "str", "default": "Test PASSED"},
    "runtime_class": {"type": "str", "default": ""},
    "resource_name": {"type": "str", "default": "nvidia.com/gpu"},
    "resource_count": {"type": "int", "default": 1},
    "namespace": {"type": "str", "default": "default"},
    "cordoned": {"type": "str", "choices": ["skip", "test"], "default": "skip"},
    "tolerations": {"type": "list", "elements": "dict", "default": []},
    "run_as_user": {"type": "int", "default": 65534},
    "timeout": {"type": "int", "default": 300},
}


def _stop(*_details: object) -> NoReturn:
    """Let a terminated run pass through its cleaning up."""
    raise SystemExit("terminated")


def _smoke(params: dict[str, Any]) -> Smoke:
    same = ("image", "namespace", "command", "args", "expected_output", "runtime_class", "timeout", "run_as_user")
    return Smoke(
        resource=params["resource_name"],
        count=params["resource_count"],
        image_pull_policy=params["image_pull_policy"],
        image_pull_secrets=params["image_pull_secrets"],
        tolerations=params["tolerations"],
        cordoned=params["cordoned"] == "test",
        **{name: params[name] for name in same},
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec={**AUTH_ARG_SPEC, **ARGUMENT_SPEC},
        required_if=[("state", "present", ("nodes", "image"))],
        supports_check_mode=True,
    )
    params = module.params
    if params["resource_count"] < 1:
        module.fail_json(msg="A pod that asks for no GPU proves none; set resource_count to 1 or more.")
    signal.signal(signal.SIGTERM, _stop)
    cluster = connect(module)
    try:
        if params["state"] == "absent":
            outcome = remove_pods(cluster, params["namespace"], check_mode=module.check_mode)
        else:
            nodes = list(dict.fromkeys(params["nodes"]))
            outcome = run_smoke_test(cluster, _smoke(params), nodes, check_mode=module.check_mode)
    except ApiError as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(
        changed=bool(outcome.removed_leftovers),
        ok=not any(result.failed for result in outcome.results),
        failed_nodes=[result.node for result in outcome.results if result.failed],
        skipped_nodes=[result.node for result in outcome.results if result.skipped],
        removed_leftovers=outcome.removed_leftovers,
        results=[result.as_dict() for result in outcome.results],
    )


if __name__ == "__main__":
    main()
