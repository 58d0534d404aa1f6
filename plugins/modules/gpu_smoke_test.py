#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_smoke_test
short_description: Test the GPUs of nodes with pods
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Creates a pod on each node through the scheduler, with GPUs in its limits as users' pods have them, waits for all pods together, judges
    them by their output, and deletes them whatever happens.
  - With O(shared_resources), several pods of a node request parts of one GPU instead. All of them have to get the same GPU and to print the
    expected output, and a further pod, which requests more than a GPU has, has to stay Pending.
  - The GPUs come from the device plugin alone. The pods set no variables of the NVIDIA runtime, and have no rights that they do not need.
  - A node whose GPUs are in use is reported as skipped with the reason, never as passed, and so is one that is cordoned unless
    O(cordoned=test).
  - On a node of an edge framework, a pod that has succeeded and whose log cannot be read has passed. A node that is offline there, and keeps
    its pods, is skipped.
  - If the kubelet rejects a pod that shares no GPU because the device plugin has just stopped or started, another pod follows until O(timeout).
  - The module itself succeeds if pods fail, so that the results of all nodes can be used; check RV(ok).
options:
  state:
    description:
      - V(present) tests the nodes. Pods of earlier runs that have expired are removed.
      - V(absent) tests nothing, and removes all pods of this module in O(namespace), whatever their age.
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
    description: Command to run instead of the image's entry point.
    type: list
    elements: str
    default: []
  args:
    description: Arguments instead of the image's own.
    type: list
    elements: str
    default: []
  expected_output:
    description: Text that each pod has to print. If empty, the exit code 0 is enough.
    type: str
    default: Test PASSED
  runtime_class:
    description: The RuntimeClass of the pods; empty for the nodes' default runtime.
    type: str
    default: ""
  resource_name:
    description:
      - The resource that a pod requests. Ignored with O(shared_resources).
      - With V(nvidia.com/gpu), the pod requests what NVIDIA's device plugin offers on its node. A MIG slice that the node names by its profile, such as
        C(nvidia.com/mig-1g.10gb), comes before a whole GPU, and C(nvidia.com/gpu.shared) is last.
    type: str
    default: nvidia.com/gpu
  resource_count:
    description: How many units of it the pod requests, 1 or more.
    type: int
    default: 1
  shared_resources:
    description:
      - Resources by which several pods get parts of one GPU. Of each node, the first one that it offers is tested.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The resource.
        type: str
        required: true
      units_per_gpu:
        description: How many units a GPU has. If V(0), O(shared_resources[].gpu_count_resource) is required.
        type: int
        default: 0
      gpu_count_resource:
        description: The resource with the node's number of GPUs. Each GPU has an equal part of what the node has.
        type: str
        default: ""
      spans_gpus:
        description: Whether a request for more than a GPU has gets several whole GPUs.
        type: bool
        default: false
      gpu_annotation:
        description:
          - The annotation of a pod in which the scheduler extender writes the index of its GPU. The container of the pods is C(smoke-test).
          - Left out, the GPUs are compared by what the pods print.
        type: str
        default: ""
  shares:
    description:
      - How many per cent of a GPU each of the pods requests that share it, in whole units, 1 at least. There are two or more, and 100 at most
        together.
    type: list
    elements: int
    default: [20, 30]
  scheduler_name:
    description: The C(schedulerName) of the pods; empty for the cluster's default scheduler.
    type: str
    default: ""
  cordoned:
    description: Whether nodes that are cordoned are skipped, or tested with pods that tolerate the cordon, such as at the end of a maintenance.
    type: str
    choices: [skip, test]
    default: skip
  namespace:
    description: The namespace of the pods. It has to exist.
    type: str
    default: default
  tolerations:
    description: Tolerations of the pods. The taint C(nvidia.com/gpu), or that of the resource of another vendor, is tolerated in any case.
    type: list
    elements: dict
    default: []
  run_as_user:
    description:
      - User ID of the container. V(0) is root, for hosts whose GPU device files are not accessible to all users.
    type: int
    default: 65534
  supplemental_groups:
    description: More groups of the container, such as that of the render nodes of AMD and Intel.
    type: list
    elements: int
    default: []
  memory_limit:
    description: Limit of the container's memory, as a quantity of Kubernetes. GPU memory does not count.
    type: str
    default: 2Gi
  timeout:
    description:
      - Seconds to wait for the pods of all nodes together, image pulls included.
      - Pods that share a GPU are created one after another, and this is the limit of each step.
    type: int
    default: 300
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    details:
      - No pod is created in check mode. Nodes that could be tested are reported as skipped, which is not a pass.
  diff_mode:
    support: N/A
    details: Nothing that lasts is created.
  idempotent:
    support: full
    details:
      - Nothing remains of a test, so it reports no change. Only the removal of pods that an interrupted earlier run
        left behind is reported as a change.
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
seealso:
  - module: gpu.kubernetes.gpu_nodes_info
"""

EXAMPLES = r"""
- name: Test a GPU on each of two nodes
  gpu.kubernetes.gpu_smoke_test:
    nodes: [worker-1, worker-2]
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    runtime_class: nvidia
  register: smoke
  failed_when: not smoke.ok

- name: Test that pods share a GPU by its memory
  gpu.kubernetes.gpu_smoke_test:
    nodes: [worker-1]
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    shared_resources:
      - name: aliyun.com/gpu-mem
        gpu_count_resource: aliyun.com/gpu-count
        gpu_annotation: ALIYUN_COM_GPU_MEM_IDX

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
  description: Nodes that did not pass, or that have a fault and could not be tested.
  returned: success
  type: list
  elements: str
skipped_nodes:
  description: Nodes whose GPUs were not verified.
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
      description: The name of the node's last pod, or empty if none was created.
      type: str
    phase:
      description: The last phase of that pod, C(NotCreated) or C(Deleted).
      type: str
    passed:
      description: Whether the GPUs are verified.
      type: bool
    skipped:
      description: Whether the node was not tested, or no GPU became free in time, or the pods got different GPUs.
      type: bool
    reason:
      description: Why the node has not passed; else empty.
      type: str
    log_tail:
      description: The last lines of that pod, or its termination message where the log is not needed and cannot be read.
      type: list
      elements: str
    resource:
      description: The resource that the pods request.
      type: str
    image:
      description: The image that ran, or empty if there was no pod.
      type: str
    visible_devices:
      description: The UUIDs of GPUs or MIG devices that the pods printed, if they did.
      type: list
      elements: str
    gpu_index:
      description: The GPU that the pods share, by their annotations; else empty.
      type: str
    pending_reason:
      description: What the scheduler reports of the pod that is larger than a GPU; empty without O(shared_resources).
      type: str
  sample:
    - node: worker-1
      pod: gpu-smoke-test-8x2lq
      phase: Succeeded
      passed: true
      skipped: false
      reason: ""
      log_tail: [Test PASSED, Done]
      resource: nvidia.com/gpu
      image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
      visible_devices: []
      gpu_index: ""
      pending_reason: ""
"""

from typing import Any, Mapping

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, Cluster, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.pod import SmokeTest
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.runner import (
    Outcome,
    end_at_signals,
    remove_pods,
    run_smoke_test,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import SharedResource

SHARED_RESOURCE: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "units_per_gpu": {"type": "int", "default": 0},
    "gpu_count_resource": {"type": "str", "default": ""},
    "spans_gpus": {"type": "bool", "default": False},
    "gpu_annotation": {"type": "str", "default": ""},
}
ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
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
    "shared_resources": {"type": "list", "elements": "dict", "default": [], "options": SHARED_RESOURCE},
    "shares": {"type": "list", "elements": "int", "default": [20, 30]},
    "scheduler_name": {"type": "str", "default": ""},
    "cordoned": {"type": "str", "choices": ["skip", "test"], "default": "skip"},
    "namespace": {"type": "str", "default": "default"},
    "tolerations": {"type": "list", "elements": "dict", "default": []},
    "run_as_user": {"type": "int", "default": 65534},
    "supplemental_groups": {"type": "list", "elements": "int", "default": []},
    "memory_limit": {"type": "str", "default": "2Gi"},
    "timeout": {"type": "int", "default": 300},
}
RULES: dict[str, Any] = {"required_if": [("state", "present", ("nodes", "image"))]}
# Parameters of the pods, which SmokeTest has under the same names.
_SAME_NAMES = (
    *("image", "image_pull_policy", "image_pull_secrets", "command", "args", "expected_output", "runtime_class"),
    *(
        "shares",
        "scheduler_name",
        "namespace",
        "tolerations",
        "run_as_user",
        "supplemental_groups",
        "memory_limit",
        "timeout",
    ),
)


def _act(cluster: Cluster, params: Mapping[str, Any], check_mode: bool) -> Outcome:
    if params["state"] == "absent":
        return remove_pods(cluster, params["namespace"], check_mode=check_mode)
    test = SmokeTest(
        **{name: params[name] for name in _SAME_NAMES},
        resource=params["resource_name"],
        count=params["resource_count"],
        cordoned=params["cordoned"] == "test",
        shared=[SharedResource(**each) for each in params["shared_resources"]],
    )
    return run_smoke_test(cluster, test, list(dict.fromkeys(params["nodes"])), check_mode=check_mode)


def _find_error(params: Mapping[str, Any]) -> str:
    shares = params["shares"]
    if params["resource_count"] < 1:
        return "A pod that requests no GPU tests none; set resource_count to 1 or more."
    if len(shares) < 2 or min(shares) < 1 or sum(shares) > 100:
        return (
            "Pods with these shares do not share a GPU; give two or more shares of 1 or more, and 100 at most together."
        )
    for each in params["shared_resources"]:
        if each["units_per_gpu"] < 1 and not each["gpu_count_resource"]:
            return f"The size of a GPU in {each['name']} is unknown; set units_per_gpu to 1 or more, or gpu_count_resource."
    return ""


def run(module: Module) -> None:
    """Run the test, or remove its pods."""
    error = _find_error(module.params)
    if error:
        module.fail_json(msg=error)
    cluster = connect(module)
    try:
        with end_at_signals():
            outcome = _act(cluster, module.params, module.check_mode)
    except ApiError as api_error:
        module.fail_json(msg=str(api_error))
    for warning in outcome.warnings:
        module.warn(warning)
    module.exit_json(**outcome.as_dict())


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS, **RULES))


if __name__ == "__main__":
    main()
