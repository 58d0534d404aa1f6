#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_labels
short_description: Manage labels of Kubernetes nodes, and restore the former labels
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Sets the labels of many nodes with one list of nodes and one patch for each node that differs.
  - Records in the node's annotation C(gpu-kubernetes/managed-labels) which labels are managed and what was there before. A label that is no
    longer requested is removed, or gets its former value; what others wrote since stays.
  - No node is changed unless the labels in O(nodes) are valid.
  - A node whose record cannot be read, or whose patch is rejected, is left out, and the other nodes are labelled. Then the module fails and names
    it in RV(failures).
  - A node's kubelet can write the annotation, so the record alone cannot set a label below C(kubernetes.io) or C(k8s.io), and a label that
    neither O(nodes), O(named) nor O(owner_labels) names does not get its former value.
options:
  nodes:
    description:
      - The labels of each node, as a dictionary of node names and dictionaries of labels.
      - They are all the labels of O(owner) on the node, so that an empty dictionary removes all of them.
      - A value of V(null) removes the label. Whole numbers and booleans become text.
    type: dict
    required: true
  state:
    description:
      - With V(present), the owner's labels are exactly those given.
      - With V(absent), all labels of the owner are removed from the nodes, and the values in O(nodes) are ignored; but see O(adopt).
    type: str
    choices: [present, absent]
    default: present
  owner:
    description:
      - Who manages these labels. Owners do not change each other's labels; two owners can set the same label to the same value.
    type: str
    default: default
  owner_labels:
    description:
      - Shell patterns of the labels that O(owner) sets, in this run or in earlier ones. A recorded label that neither matches nor has a name in
        O(nodes) or O(named) is removed without its former value.
      - A label below C(kubernetes.io) or C(k8s.io) has to be named in full, here, in O(nodes) or in O(named), or else it stays. It never gets a former value.
    type: list
    elements: str
    default: ["*"]
  named:
    description:
      - Names of more labels that O(owner) sets on a node, in this run or in earlier ones, as a dictionary of node names and lists. Where a node no
        longer has them in O(nodes), they are removed and get their former value as if they were named there.
    type: dict
    default: {}
  adopt:
    description:
      - Whether labels of O(nodes) that a node has already, with these values and without an owner, become the owner's, so that an undo
        removes them. Otherwise they stay.
      - With O(state=absent), such labels are removed too.
    type: bool
    default: false
  yield_to:
    description:
      - Labels that are left to another tool on nodes that the tool manages.
      - An undo removes a managed label that still has the managed value; with another value it belongs to the tool.
    type: list
    elements: dict
    default: []
    suboptions:
      when:
        description: Shell patterns of labels. A node with a matching unmanaged label belongs to the other tool.
        type: list
        elements: str
        default: []
      published:
        description: The same for the labels that node feature discovery has recorded on the node.
        type: list
        elements: str
        default: []
      labels:
        description: Shell patterns of the labels that are left to the tool on such a node.
        type: list
        elements: str
        required: true
      compare:
        description: Shell patterns of labels that are left to others. The module warns if one of them has another value than in O(nodes).
        type: list
        elements: str
        default: []
      tool:
        description: What the warning calls the tool.
        type: str
        default: another tool
  yield_to_nfd:
    description:
      - Whether to leave labels that node feature discovery has recorded in the node's annotation C(nfd.node.kubernetes.io/feature-labels) to it. They
        are neither set nor removed, also if they were managed before, because it overwrites them and removes them itself.
    type: bool
    default: false
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
  - gpu.kubernetes.attributes.full
requirements:
  - kubernetes >= 24.2.0
seealso:
  - module: kubernetes.core.k8s
"""

EXAMPLES = r"""
- name: Label two nodes, and remove the managed labels of a third
  gpu.kubernetes.node_labels:
    owner: gpu_node_labels
    nodes:
      worker-1:
        nvidia.com/gpu.present: "true"
        accelerator: tesla-t4
      worker-2:
        nvidia.com/gpu.present: "true"
        accelerator: nvidia-a100-pcie-40gb
      worker-3: {}

- name: Leave the product to GPU feature discovery on nodes where it runs
  gpu.kubernetes.node_labels:
    nodes:
      worker-1:
        nvidia.com/gpu.product: Tesla-T4
    yield_to:
      - when: [nvidia.com/gfd.timestamp]
        labels: [nvidia.com/gpu.*]

- name: Remove the managed labels
  gpu.kubernetes.node_labels:
    owner: gpu_node_labels
    state: absent
    nodes:
      worker-1: {}
      worker-2: {}
"""

RETURN = r"""
failures:
  description: Why nodes could not be labelled, by node name. The other nodes are labelled.
  returned: unless the module failed before it labelled nodes
  type: dict
  sample:
    worker-2: "Node worker-2: annotation gpu-kubernetes/managed-labels cannot be read, so the managed labels are unknown; correct it or remove it."
nodes:
  description: What was changed, or would be in check mode, by node name.
  returned: unless the module failed before it labelled nodes
  type: dict
  contains:
    changed:
      description: Whether the node was patched.
      type: bool
    before:
      description: The changed labels before; V(null) for a label that did not exist.
      type: dict
    after:
      description: The changed labels after; V(null) for a label that does not exist.
      type: dict
    yielded:
      description: Labels that were left to another tool.
      type: list
      elements: str
  sample:
    worker-1:
      changed: true
      before:
        accelerator: null
      after:
        accelerator: tesla-t4
      yielded: []
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.apply import (
    LabelRun,
    build_diff,
    explain_failures,
    label_nodes,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.ladder import YieldRule
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.plan import read_labels
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import LabelError
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

YIELD_SPEC = {
    "when": {"type": "list", "elements": "str", "default": []},
    "published": {"type": "list", "elements": "str", "default": []},
    "labels": {"type": "list", "elements": "str", "required": True},
    "compare": {"type": "list", "elements": "str", "default": []},
    "tool": {"type": "str", "default": "another tool"},
}
ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
    "nodes": {"type": "dict", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "owner": {"type": "str", "default": "default"},
    "owner_labels": {"type": "list", "elements": "str", "default": ["*"]},
    "named": {"type": "dict", "default": {}},
    "adopt": {"type": "bool", "default": False},
    "yield_to": {"type": "list", "elements": "dict", "default": [], "options": YIELD_SPEC},
    "yield_to_nfd": {"type": "bool", "default": False},
}


def run(module: Module) -> None:
    """Set or remove the labels of the nodes."""
    try:
        outcome = label_nodes(connect(module), _read_params(module.params), module.check_mode)
    except (ApiError, LabelError) as error:
        module.fail_json(msg=str(error))
    for warning in outcome.warnings:
        module.warn(warning)
    result = {
        "changed": any(item.changed for item in outcome.plans),
        "diff": build_diff(outcome.plans),
        "failures": outcome.failures,
        "nodes": {
            item.node: {"changed": item.changed, "before": item.before, "after": item.after, "yielded": item.yielded}
            for item in outcome.plans
        },
    }
    if outcome.failures:
        module.fail_json(msg=explain_failures(outcome.failures), **result)
    module.exit_json(**result)


def _read_params(params: dict[str, Any]) -> LabelRun:
    """Return the parameters of the run. Raises LabelError for labels that are not text."""
    given, present = params["nodes"], params["state"] == "present"
    return LabelRun(
        desired={node: read_labels(f"Node {node}", labels if present else None) for node, labels in given.items()},
        owner=params["owner"],
        yield_to=[YieldRule(**rule) for rule in params["yield_to"]],
        yield_to_nfd=params["yield_to_nfd"],
        adopted={node: read_labels(f"Node {node}", labels) for node, labels in given.items() if params["adopt"]},
        owner_labels=params["owner_labels"],
        named={node: [*_list_names(labels), *_list_names(params["named"].get(node))] for node, labels in given.items()},
    )


def _list_names(labels: Any) -> list[str]:
    return list(map(str, labels)) if isinstance(labels, (dict, list)) else []


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
