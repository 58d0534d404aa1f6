#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_nodes_info
short_description: Report whether every GPU of every node is allocatable, and why not
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Compares the expected GPUs of each node with those that its kubelet reports as allocatable.
  - Explains a difference in one clause with a remedy. The node is unknown or not Ready, the plugin's pod is missing (label, taint),
    pending, has no image, crashes or finds no driver, or some GPUs are unhealthy.
  - Lists nodes once and pods once; if O(expected) has a single node, only this node and its pods. Logs, events and DaemonSets are only read
    if a node is not as expected.
options:
  expected:
    description:
      - The expected units of O(resource_name), by node name, or a dictionary of units by resource. Only these nodes are reported.
      - By default, all nodes that have the resource, the plugin or the label of the vendor (C(nvidia.com/gpu.present=true)) are reported, and the expected
        units are their capacity.
    type: dict
  exact:
    description: Whether more units than O(expected) are an error too.
    type: bool
    default: true
  resource_name:
    description: The resource that the device plugin registers.
    type: str
    default: nvidia.com/gpu
  namespace:
    description: The namespace of the device plugin's pods.
    type: str
    default: kube-system
  plugin_labels:
    description: The labels of the device plugin's pods. With V({}), these pods are not searched.
    type: dict
    default:
      name: nvidia-device-plugin-ds
  pod_annotations:
    description:
      - Annotations that the plugin's pod on a node must have, such as the checksum of its configuration.
      - A node whose pod is older, or does not run yet, is not as expected, so that O(wait) covers a rolling update.
    type: dict
    default: {}
  boot_ids:
    description:
      - The content of C(/proc/sys/kernel/random/boot_id) of rebooted hosts, by the names of their nodes.
      - Reports of a kubelet from before that boot do not count.
    type: dict
    default: {}
  explain:
    description:
      - Whether to read logs, events and DaemonSets if a node is not as expected, so that RV(nodes[].reason) can name the cause.
      - It takes a request for each such node; set it to V(false) if only amounts matter.
    type: bool
    default: true
  wait:
    description:
      - Whether to wait until all nodes are as expected.
      - After O(wait_timeout), the module fails and names each node with its reason.
    type: bool
    default: false
  wait_sleep:
    description: Seconds between two reads.
    type: int
    default: 5
  wait_timeout:
    description: Seconds to wait at most.
    type: int
    default: 300
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
  - gpu.kubernetes.attributes.info
requirements:
  - kubernetes >= 24.2.0
seealso:
  - module: gpu.kubernetes.gpu_smoke_test
  - module: gpu.kubernetes.nvml_facts
"""

EXAMPLES = r"""
- name: Read the state of all GPU nodes
  gpu.kubernetes.gpu_nodes_info:
  register: gpus

- name: Wait until the GPUs of two nodes are allocatable
  gpu.kubernetes.gpu_nodes_info:
    expected:
      worker-1: 1
      worker-2: 8
    wait: true
    wait_timeout: 180
"""

RETURN = r"""
others_in_maintenance:
  description:
    - Other nodes of the cluster that are in maintenance of this collection. Empty if O(expected) has a single node, since others are not read.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: The node.
      type: str
    schedulable:
      description: The same as RV(nodes[].schedulable).
      type: bool
    maintenance:
      description: The same as RV(nodes[].maintenance).
      type: dict
  sample: []
operator_plugins:
  description:
    - Whether NVIDIA's GPU Operator deploys device plugins in the cluster, on the reported nodes or on others.
    - V(false) unless a reported node has a label C(nvidia.com/gpu.deploy.*), and with O(wait).
  returned: always
  type: bool
owners:
  description:
    - What else offers the GPUs of AMD or Intel that O(resource_name) stands for, as clauses. The vendor's operator, or a device class of
      dynamic resource allocation with such an extended resource.
    - Empty for NVIDIA, and with O(wait).
  returned: always
  type: list
  elements: str
  sample: []
ok:
  description: Whether all reported nodes are as expected.
  returned: always
  type: bool
nodes:
  description: One entry for each node, sorted by name. Amounts are units of the resource.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: The node.
      type: str
    known:
      description: Whether the node is in the cluster.
      type: bool
    expected:
      description: The expected units; V(null) without O(expected).
      type: int
    capacity:
      description: The units that the node has, healthy or not.
      type: int
    allocatable:
      description: The units that pods can allocate.
      type: int
    allocated:
      description: The units that its pods request.
      type: int
    ready:
      description: Whether the node is Ready.
      type: bool
    schedulable:
      description: Whether new pods can be scheduled on it; V(false) if it is cordoned.
      type: bool
    ok:
      description: Whether the node is Ready and the expected units are allocatable, with a plugin of the current configuration.
      type: bool
    reason:
      description: Why it is not, or a remark although it is (a cordon); else empty.
      type: str
    maintenance:
      description: The maintenance of this collection that the node is in, also if an earlier run has left it; V(null) for none.
      type: dict
      contains:
        since:
          description: When it began, by the clock of the controller that began it; empty if the node has not recorded it.
          type: str
        reason:
          description: What it is for; empty if the node has not recorded it.
          type: str
        was_schedulable:
          description: Whether the node was schedulable before; V(null) if the annotation cannot be read.
          type: bool
        message:
          description: All of this and the remedy, as a clause.
          type: str
    gpu_resources:
      description: Allocatable units of all GPU resources, of any device plugin.
      type: dict
    gpu_capacity:
      description: Units of them that the node has, healthy or not.
      type: dict
    gpu_allocated:
      description: Units of them that its pods request.
      type: dict
    plugin_pod:
      description: The device plugin's pod on the node, or empty.
      type: str
    plugin_stale:
      description:
        - Whether that pod runs on the Ready node with the current configuration, and has registered other units than expected, healthy or not.
        - A plugin that reads the GPUs only when it starts then has to be restarted.
      type: bool
    unmanaged_plugins:
      description: Other device plugins on the node that register the same GPUs, as C(namespace/owner).
      type: list
      elements: str
    gpu_operator:
      description:
        - The parts that NVIDIA's GPU Operator runs on the node by its ClusterPolicy, of V(driver), V(toolkit), V(device_plugin),
          V(feature_discovery) and V(mig_manager); or V(dra_driver) by its GPUCluster.
        - Read if a reported node has a label C(nvidia.com/gpu.deploy.*). Empty with O(wait).
      type: list
      elements: str
    container_runtime_version:
      description: The container runtime of the kubelet with its version; empty if the node has not reported it.
      type: str
    labels:
      description: The node's labels.
      type: dict
    annotations:
      description: Those of the node's annotations that this collection writes.
      type: dict
    edge:
      description: The edge framework that manages the node, V(superedge), V(openyurt) or V(kubeedge); empty for none.
      type: str
    judged:
      description:
        - Whether the API server can judge the node. V(false) if its Ready condition is Unknown and its edge framework keeps its pods while it is offline.
        - Such a node is not RV(nodes[].ok), and not at fault either.
      type: bool
  sample:
    - name: worker-1
      known: true
      expected: 8
      capacity: 8
      allocatable: 7
      allocated: 2
      ready: true
      schedulable: true
      ok: false
      reason: "7 of 8 nvidia.com/gpu allocatable: 1 of 8 unhealthy as plugin pod
        kube-system/nvidia-device-plugin-daemonset-x7k2p reports; search the node's kernel log for Xid errors"
      gpu_resources:
        nvidia.com/gpu: 7
      gpu_capacity:
        nvidia.com/gpu: 8
      gpu_allocated:
        nvidia.com/gpu: 2
      plugin_pod: nvidia-device-plugin-daemonset-x7k2p
      plugin_stale: false
      unmanaged_plugins: []
      gpu_operator: []
      container_runtime_version: containerd://2.1.4
      labels:
        nvidia.com/gpu.present: "true"
      annotations: {}
      maintenance: null
      edge: ""
      judged: true
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Query, Units
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing, Wait
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import survey_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
    "expected": {"type": "dict"},
    "exact": {"type": "bool", "default": True},
    "resource_name": {"type": "str", "default": "nvidia.com/gpu"},
    "namespace": {"type": "str", "default": "kube-system"},
    "plugin_labels": {"type": "dict", "default": {"name": "nvidia-device-plugin-ds"}},
    "pod_annotations": {"type": "dict", "default": {}},
    "boot_ids": {"type": "dict", "default": {}},
    "explain": {"type": "bool", "default": True},
    "wait": {"type": "bool", "default": False},
    "wait_sleep": {"type": "int", "default": 5},
    "wait_timeout": {"type": "int", "default": 300},
}


def _read_expected(module: Module) -> dict[str, Units] | None:
    expected: dict[str, Any] | None = module.params["expected"]
    if expected is None:
        return None
    try:
        return {str(node): _read_units(units) for node, units in expected.items()}
    except (TypeError, ValueError):
        module.fail_json(
            msg=f"expected must hold a whole number for each node or resource, not {expected!r}; correct it."
        )
        raise


def _read_units(given: Any) -> Units:
    if isinstance(given, dict):
        return {str(name): int(units) for name, units in given.items()}
    return int(given)


def run(module: Module) -> None:
    """Report the nodes, after the wait that the parameters request."""
    params = module.params
    query = Query(
        params["resource_name"],
        params["namespace"],
        params["plugin_labels"],
        params["pod_annotations"],
        params["exact"],
        params["boot_ids"],
    )
    expected = _read_expected(module)
    cluster = connect(module)
    pause = max(1, params["wait_sleep"])
    wait = Wait(Timing(), params["wait_timeout"], pause, pause) if params["wait"] else None
    try:
        survey = survey_nodes(cluster, query, expected, wait, params["explain"])
    except ApiError as error:
        module.fail_json(msg=str(error))
    result = {
        "ok": all(report.ok for report in survey.reports),
        "nodes": [report.as_dict() for report in survey.reports],
        "others_in_maintenance": survey.others_in_maintenance,
        "operator_plugins": survey.operator_plugins,
        "owners": list(survey.owners),
    }
    if params["wait"] and not result["ok"]:
        wrong = "; ".join(f"node {report.name}: {report.reason}" for report in survey.reports if not report.ok)
        module.fail_json(
            msg=f"After {params['wait_timeout']} s, the nodes lack allocatable {params['resource_name']}: {wrong}.",
            **result,
        )
    module.exit_json(changed=False, **result)


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
