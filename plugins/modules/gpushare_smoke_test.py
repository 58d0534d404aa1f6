#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpushare_smoke_test
short_description: Prove that pods share the GPUs of nodes by memory under gpushare
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Creates pods on each node that ask for C(aliyun.com/gpu-mem), one after the other and on all nodes at once. All pods of a node have
    to come to the same GPU through gpushare's scheduler extender, to be taken up by its device plugin, and to print what they should.
    With O(too_much), a further pod has to stay Pending. All of them are deleted whatever happens.
  - The pods go through the scheduler, and set no variables of the NVIDIA runtime, by which they would pass by what is to be proved.
  - How full the GPU is comes from the nodes and pods of that moment, as with M(gpu.kubernetes.gpushare_info). A pod of the test that has
    ended well by then is counted as if it still ran; for gpushare itself it holds nothing any more.
  - gpushare's extender fills the GPU that has the least memory free that is enough. Where that is not one and the same for all pods, for
    others hold the rest, or where no GPU has enough free for all of them, the node is reported as skipped with the reason, never as
    passed, and so is one that is cordoned.
  - The module itself succeeds when pods fail, so that the results of all nodes can be used; check RV(ok).
options:
  amounts:
    description:
      - How many GiB the pods ask for, two pods or more. Together they must fit on one GPU.
      - Where gpushare counts MiB, they ask for 1024 times as many.
    type: list
    elements: int
    default: [3, 5]
  unit:
    description:
      - What one C(aliyun.com/gpu-mem) is, as gpushare's device plugin was told by its C(--memory-unit).
      - It is written nowhere in the cluster. Left out, it is guessed as C(kubectl inspect gpushare) does, by which more than 100 for one
        GPU are MiB. That is wrong for GPUs with more than 100 GiB in V(GiB).
    type: str
    choices: [GiB, MiB]
  too_much:
    description:
      - Whether to prove also that a pod stays Pending, and why, that asks for one unit more than a GPU of the node has.
      - On a node that has not that much free on all of its GPUs together, as on any with one GPU, it asks for one unit more than the
        whole node has, since kube-scheduler might evict pods of a lower priority for it in vain otherwise.
    type: bool
    default: true
  scheduler_name:
    description: The C(schedulerName) of the pods, where another scheduler than the cluster's own asks gpushare's extender.
    type: str
    default: ""
  timeout:
    description:
      - Seconds to wait in each step for the pods of all nodes together, image pulls included. There is a step for each of O(amounts), one
        for O(too_much), and one for the ends of all pods.
    type: int
    default: 300
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
  - gpu.kubernetes.smoke_test
notes:
  - The account needs the right to list nodes and the pods of all namespaces, and to create and delete pods and read their logs in
    O(namespace).
  - A pod may go on running once it has printed O(expected_output).
seealso:
  - module: gpu.kubernetes.gpushare_info
  - module: gpu.kubernetes.gpu_smoke_test
"""

EXAMPLES = r"""
- name: Prove that pods share a GPU on each of two nodes
  gpu.kubernetes.gpushare_smoke_test:
    nodes: [worker-1, worker-2]
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    runtime_class: nvidia
  register: sharing
  failed_when: not sharing.ok

- name: Prove it with four small pods
  gpu.kubernetes.gpushare_smoke_test:
    nodes: [worker-1]
    image: nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0
    amounts: [1, 1, 1, 1]
    too_much: false

- name: Remove what interrupted tests left, and end those that run
  gpu.kubernetes.gpushare_smoke_test:
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
    passed:
      description: Whether the sharing is proved.
      type: bool
    skipped:
      description: Whether it was not tried, or others took the memory meanwhile.
      type: bool
    reason:
      description: Why it was not passed; else empty.
      type: str
    unit:
      description: What the amounts are, V(GiB) or V(MiB); empty where no node of the cluster has a GPU.
      type: str
    gpu_index:
      description: The GPU that the pods share; none where there is none.
      type: int
    percent:
      description:
        - How much of that GPU was allocated before the first pod and after each, in whole percents. What others hold counts.
      type: list
      elements: int
    pods:
      description:
        - The pods, each with C(name), C(amount), C(phase) and C(gpu_index), which is none where there is none. The C(phase) is the last one
          that was seen, or C(Deleted).
      type: list
      elements: dict
    pending_reason:
      description: What the scheduler said of the pod that is too large; empty if there was none.
      type: str
    log_tail:
      description: The last lines of the last pod, or of the one that failed.
      type: list
      elements: str
  sample:
    - node: worker-1
      passed: true
      skipped: false
      reason: ""
      unit: GiB
      gpu_index: 0
      percent: [0, 18, 50]
      pods:
        - name: gpushare-smoke-test-8x2lq
          amount: 3
          phase: Succeeded
          gpu_index: 0
        - name: gpushare-smoke-test-v7kcm
          amount: 5
          phase: Succeeded
          gpu_index: 0
      pending_reason: "0/2 nodes are available: 1 Insufficient aliyun.com/gpu-mem, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]."
      log_tail: [Test PASSED, Done]
"""

from dataclasses import replace
from typing import Any, Mapping

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.allocation import UNITS
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.proving import (
    remove_sharing_pods,
    run_sharing_test,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.sharing import AMOUNTS, Sharing, SharingResult
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, Cluster, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_face import (
    ARGUMENTS,
    REQUIRED_IF,
    run,
    smoke_of,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import Outcome

ARGUMENT_SPEC: dict[str, Any] = {
    **ARGUMENTS,
    "amounts": {"type": "list", "elements": "int", "default": list(AMOUNTS)},
    "unit": {"type": "str", "choices": list(UNITS)},
    "too_much": {"type": "bool", "default": True},
    "scheduler_name": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 300},
}


def _act(cluster: Cluster, params: Mapping[str, Any], check_mode: bool) -> Outcome[SharingResult]:
    if params["state"] == "absent":
        return remove_sharing_pods(cluster, params["namespace"], check_mode=check_mode)
    smoke = replace(smoke_of(params), scheduler_name=params["scheduler_name"])
    sharing = Sharing(smoke, params["amounts"], params["unit"] or "", params["too_much"])
    return run_sharing_test(cluster, sharing, list(dict.fromkeys(params["nodes"])), check_mode=check_mode)


def main() -> None:
    module = AnsibleModule(
        argument_spec={**AUTH_ARG_SPEC, **ARGUMENT_SPEC}, required_if=REQUIRED_IF, supports_check_mode=True
    )
    params = module.params
    if len(params["amounts"]) < 2 or min(params["amounts"]) < 1:
        module.fail_json(
            msg="One pod, or one that asks for nothing, shares no GPU; give two amounts or more of 1 or more."
        )
    cluster = connect(module)
    run(module, lambda: _act(cluster, params, module.check_mode))


if __name__ == "__main__":
    main()
