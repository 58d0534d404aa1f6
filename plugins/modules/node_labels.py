#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_labels
short_description: Keep the labels of Kubernetes nodes, and take them back without a trace
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Makes the labels of many nodes what they shall be, with one list of nodes and one patch for each node that differs.
  - Remembers in the node's annotation C(gpu-kubernetes/managed-labels) which labels are its own and what was there
    before. A label that is no longer asked for goes away, or gets its former value back; what somebody else wrote
    since stays.
  - Nothing is changed on any node unless the labels of all nodes can be.
options:
  nodes:
    description:
      - The labels of each node, as a dictionary of node names and dictionaries of labels.
      - They are all the labels that O(owner) keeps on the node, so an empty dictionary takes all of them away.
      - A value of V(null) means that the label must not be there. Whole numbers and booleans become text.
    type: dict
    required: true
  state:
    description:
      - With V(present), the owner's labels are exactly those given.
      - With V(absent), all labels of the owner are taken from the nodes, whatever is given for them; but see O(adopt).
    type: str
    choices: [present, absent]
    default: present
  owner:
    description:
      - Who keeps these labels. Owners do not touch each other's labels; two may keep the same label at the same value.
    type: str
    default: default
  adopt:
    description:
      - Whether labels of O(nodes) that a node has with these values already, and that no owner keeps, become the owner's, so that they go with the
        others. Else what was there before stays.
      - With O(state=absent), such labels are taken from the nodes too.
    type: bool
    default: false
  yield_to:
    description:
      - Labels to leave to another tool on nodes where that tool is at work.
      - One that we had set before goes away with us as long as it has our value; with another value it is the tool's.
    type: list
    elements: dict
    default: []
    suboptions:
      when:
        description: Shell patterns of labels. A node with a matching label that is not ours belongs to the other tool.
        type: list
        elements: str
        required: true
      labels:
        description: Shell patterns of the labels that are left alone on such a node.
        type: list
        elements: str
        required: true
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - kubernetes >= 24.2.0
seealso:
  - module: kubernetes.core.k8s
"""

EXAMPLES = r"""
- name: Label two nodes, and take our labels from a third
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

- name: Leave the product to GPU feature discovery where it runs
  gpu.kubernetes.node_labels:
    nodes:
      worker-1:
        nvidia.com/gpu.product: Tesla-T4
    yield_to:
      - when: [nvidia.com/gfd.timestamp]
        labels: [nvidia.com/gpu.*]

- name: Undo
  gpu.kubernetes.node_labels:
    owner: gpu_node_labels
    state: absent
    nodes:
      worker-1: {}
      worker-2: {}
"""

RETURN = r"""
nodes:
  description: What was changed, or would be in check mode, by node name.
  returned: success
  type: dict
  contains:
    changed:
      description: Whether the node was patched.
      type: bool
    before:
      description: The labels concerned as they were; V(null) where there was none.
      type: dict
    after:
      description: The labels concerned as they are now; V(null) where there is none.
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

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labelling import diff_of, label_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels import (
    LabelError,
    YieldRule,
    read_labels,
)

YIELD_SPEC = {
    "when": {"type": "list", "elements": "str", "required": True},
    "labels": {"type": "list", "elements": "str", "required": True},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **AUTH_ARG_SPEC,
            "nodes": {"type": "dict", "required": True},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "owner": {"type": "str", "default": "default"},
            "adopt": {"type": "bool", "default": False},
            "yield_to": {"type": "list", "elements": "dict", "default": [], "options": YIELD_SPEC},
        },
        supports_check_mode=True,
    )
    present = module.params["state"] == "present"
    rules = [YieldRule(rule["when"], rule["labels"]) for rule in module.params["yield_to"]]
    try:
        given = module.params["nodes"]
        wanted = {node: read_labels(f"Node {node}", labels if present else None) for node, labels in given.items()}
        adopted = {
            node: read_labels(f"Node {node}", labels) for node, labels in given.items() if module.params["adopt"]
        }
        plans, warnings = label_nodes(
            connect(module), wanted, module.params["owner"], rules, module.check_mode, adopted
        )
    except (ApiError, LabelError) as error:
        module.fail_json(msg=str(error))
    for warning in warnings:
        module.warn(warning)
    module.exit_json(
        changed=any(item.changed for item in plans),
        diff=diff_of(plans),
        nodes={
            item.node: {"changed": item.changed, "before": item.before, "after": item.after, "yielded": item.yielded}
            for item in plans
        },
    )


if __name__ == "__main__":
    main()
