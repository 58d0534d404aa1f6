#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpushare_info
short_description: Read which pods hold which GPUs, or how much of them
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - For gpushare, computes from nodes and pods alone what C(kubectl inspect gpushare) shows, and lists what is wrong with a remedy. Amounts are units of
    C(aliyun.com/gpu-mem), booked by the limits of pods. gpushare does not isolate memory, so that a pod may use more than it has booked.
  - For all other sharing strategies, returns RV(resources) by node, such as C(nvidia.com/gpu), C(nvidia.com/mig-1g.10gb) and C(nano-gpu/gpu-percent), and the
    pods that hold them. The API does not report on which GPU a unit of NVIDIA's device plugin is.
  - Lists nodes once and pods once, by pages, so that a large cluster takes seconds and little memory.
options:
  node:
    description: The node; by default all nodes with GPUs.
    type: str
  pods:
    description: Whether to list the pods of each node. Without them, the result for a large cluster is much smaller.
    type: bool
    default: true
  unit:
    description:
      - The unit of C(aliyun.com/gpu-mem), as in C(--memory-unit) of gpushare's device plugin.
      - Nodes do not report it. By default, it is guessed as C(kubectl inspect gpushare) does, by which more than 100 for one
        GPU are MiB. That is wrong for GPUs with more than 100 GiB in V(GiB).
      - It only names what is reported, and changes no amount.
    type: str
    choices: [GiB, MiB]
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
  - gpu.kubernetes.attributes.info
requirements:
  - kubernetes >= 24.2.0
notes:
  - The account needs the right to list nodes and the pods of all namespaces, and no other.
seealso:
  - plugin: gpu.kubernetes.gpushare_allocation
    plugin_type: filter
  - plugin: gpu.kubernetes.gpushare_render
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Look at all nodes
  gpu.kubernetes.gpushare_info:
  register: gpushare

- name: Look at one node, without its pods
  gpu.kubernetes.gpushare_info:
    node: worker-1
    pods: false
  register: worker

- name: Refuse a node that gives more away than it has
  ansible.builtin.assert:
    that: worker.findings | selectattr('code', 'equalto', 'gpu_overcommitted') | length == 0
    fail_msg: "{{ worker.findings | map(attribute='message') | join(' ') }}"
"""

RETURN = r"""
nodes:
  description: The nodes with allocatable C(aliyun.com/gpu-mem), sorted by name. Amounts are units of that.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The node.
      type: str
    address:
      description: Its internal address; empty if it has none.
      type: str
    gpu_count:
      description: The number of its GPUs.
      type: int
    gpus:
      description:
        - Its GPUs by index, each with C(index), C(total) and C(allocated). gpushare treats all GPUs of a node as equal.
        - A GPU that the node does not have, but that a pod's annotation names, is listed too, and is a finding.
      type: list
      elements: dict
    pending:
      description: The amount of pods without a known GPU.
      type: int
    allocated:
      description: The amount of all pods.
      type: int
    total:
      description: The allocatable amount.
      type: int
    percent:
      description: How much of it is allocated, in whole percents.
      type: int
    pods:
      description:
        - The unfinished pods on the node that request C(aliyun.com/gpu-mem), by namespace and name. Only with O(pods).
        - Each has C(namespace), C(name), C(phase), C(terminating), C(gpus) with C(index) and C(allocated), C(pending) and
          C(allocated).
      type: list
      elements: dict
  sample:
    - name: worker-1
      address: 10.0.0.11
      gpu_count: 1
      gpus: [{index: 0, total: 16, allocated: 8}]
      pending: 0
      allocated: 8
      total: 16
      percent: 50
      pods:
        - namespace: default
          name: binpack-0
          phase: Running
          terminating: false
          gpus: [{index: 0, allocated: 3}]
          pending: 0
          allocated: 3
        - namespace: default
          name: binpack-1
          phase: Running
          terminating: false
          gpus: [{index: 0, allocated: 5}]
          pending: 0
          allocated: 5
resources:
  description:
    - What other device plugins than gpushare's offer, one entry for each node and resource, sorted by both. Amounts are whole units, counted as kube-scheduler
      does.
    - A resource that pods hold is listed even if the node has it no more.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: The node.
      type: str
    address:
      description: Its internal address; empty if it has none.
      type: str
    resource:
      description: The resource.
      type: str
    unit:
      description:
        - What its units are, by the node's own configuration of NVIDIA's device plugin and the number of its GPUs. V(GPUs), V(replicas) of time slicing or MPS,
          V(slices) of MIG or V(percent).
        - V(devices) where the node has more units than GPUs without a configuration of its own, or the number of its GPUs is not known. V(units) of other
          resources.
      type: str
    gpu_count:
      description:
        - Of how many GPUs they are, by the label C(nvidia.com/gpu.count). V(0) if that is not known, as of MIG slices with the names of their profiles.
      type: int
    gpus:
      description: These GPUs, each with C(index), C(total) and C(allocated), where annotations of pods name them, as by nano-gpu. Else empty.
      type: list
      elements: dict
    pending:
      description: The amount of pods without a known GPU, where the others have one.
      type: int
    allocated:
      description: The amount of all pods.
      type: int
    total:
      description: The allocatable amount.
      type: int
    percent:
      description: How much of it is allocated, in whole percents.
      type: int
    pods:
      description: The unfinished pods that hold it, as in RV(nodes[].pods). Only with O(pods).
      type: list
      elements: dict
  sample:
    - name: worker-2
      address: 10.0.0.12
      resource: nvidia.com/gpu
      unit: replicas
      gpu_count: 2
      gpus: []
      pending: 0
      allocated: 1
      total: 8
      percent: 12
      pods:
        - namespace: default
          name: notebook
          phase: Running
          terminating: false
          gpus: []
          pending: 0
          allocated: 1
totals:
  description: The sum of RV(resources) by C(resource), with C(allocated), C(total) and C(percent).
  returned: success
  type: list
  elements: dict
  sample: [{resource: nvidia.com/gpu, allocated: 1, total: 8, percent: 12}]
cluster:
  description: The sum of RV(nodes), with C(allocated), C(total) and C(percent).
  returned: success
  type: dict
  sample: {allocated: 8, total: 16, percent: 50}
unit:
  description: V(GiB) or V(MiB); empty where no node has a GPU and O(unit) was left out.
  returned: success
  type: str
  sample: GiB
findings:
  description:
    - What is wrong, node by node, also on nodes that are not listed for they offer nothing.
    - The C(code) is V(pending_running), V(unassigned_running), V(index_out_of_range), V(pod_mem_mismatch), V(visible_devices_env),
      V(gpu_overcommitted), V(gpu_mem_without_count), V(leftover_gpu_count), V(both_plugins) or
      V(gpu_count_implausible).
    - The C(object) is the name of a node, or namespace and name of a pod. The C(message) is one sentence with cause and remedy.
  returned: success
  type: list
  elements: dict
  sample:
    - code: both_plugins
      object: worker-1
      message: Node worker-1 offers the same GPUs as aliyun.com/gpu-mem and as nvidia.com/gpu, so that they are given away twice; take one
        of both device plugins off the node.
"""

import gc
from contextlib import contextmanager
from typing import Iterator

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import (
    UNITS,
    Allocation,
    UnknownNode,
    allocate,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import extract_node, extract_pod
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, Cluster, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import UNFINISHED
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module


def main() -> None:
    module = build_module(
        AnsibleModule,
        {
            **AUTH_ARG_SPEC,
            "node": {"type": "str"},
            "pods": {"type": "bool", "default": True},
            "unit": {"type": "str", "choices": list(UNITS)},
        },
    )
    params = module.params
    cluster = connect(module)
    with _uncollected():
        try:
            allocation = query_allocation(cluster, params["node"] or "", params["unit"] or "", params["pods"])
        except (ApiError, UnknownNode) as error:
            module.fail_json(msg=str(error))
        module.exit_json(changed=False, **allocation)


def query_allocation(cluster: Cluster, node: str, unit: str, list_pods: bool) -> Allocation:
    """Return the allocation of the cluster, or of the named node. Raises ApiError and UnknownNode."""
    nodes = cluster.gather("nodes", extract_node, f"metadata.name={node}" if node else "")
    pods = cluster.gather("pods", extract_pod, f"{UNFINISHED},spec.nodeName={node}" if node else UNFINISHED)
    return allocate(nodes, pods, node, unit, list_pods)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the garbage collector, which takes half of the time for millions of objects without a cycle."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


if __name__ == "__main__":
    main()
