#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module sharing_plan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sharing_plan
short_description: Plan which sharing strategies nodes leave and enter
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options and results may change in any release.
  - Reads the nodes, pods and ResourceSlices of the cluster once, and plans for all hosts which sharing strategy each leaves and enters, what blocks
    that, and what is first and last in the cluster. The role P(gpu.kubernetes.gpu_sharing#role) passes the hosts' parameters, and the playbooks
    execute the plan.
options:
  hosts:
    description:
      - One entry for each host. C(host) is its name in the inventory and C(node) its name in Kubernetes.
      - C(strategy) is the declared strategy, empty where the host keeps the one that it has; C(migrate) is whether GPU pods may be evicted.
      - C(config) is the configuration of NVIDIA's device plugin, and C(resource_name) the resource that it registers.
      - C(gpus) is the number of working GPUs, if it is known; C(kept) are the strategies that keep files of the host, and C(remove_used) those that may
        be removed while pods hold their resources.
    type: list
    elements: dict
    required: true
  state:
    description: Whether hosts enter the declared strategies, or leave what they have.
    type: str
    choices: [present, absent]
    default: present
  run_tags:
    description: Tags of this run. Without any of these, the run changes no strategy.
    type: list
    elements: str
    choices: [preflight, device_plugin, sharing, scheduler]
    default: [preflight, device_plugin, sharing, scheduler]
  second_scheduler:
    description: The strategy that has a kube-scheduler of its own; empty if none has.
    type: str
    default: ""
  namespaces:
    description: Namespaces of the device plugins, by strategy; V(kube-system) for others.
    type: dict
    default: {}
  control_planes:
    description: The control planes of the inventory. Left out, they are not checked.
    type: list
    elements: str
  left_out:
    description: Those of O(control_planes) that this run leaves out.
    type: list
    elements: str
    default: []
  control_plane_group:
    description: Name of their group in the inventory.
    type: str
    default: kube_control_plane
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
  - gpu.kubernetes.attributes.info
requirements:
  - kubernetes >= 24.2.0
seealso:
  - module: gpu.kubernetes.gpu_nodes_info
"""

EXAMPLES = r"""
- name: Plan the change of a node
  gpu.kubernetes.sharing_plan:
    hosts:
      - host: gpu1
        node: gpu1
        strategy: time_slicing
  register: planned
"""

RETURN = r"""
plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    nodes:
      description:
        - One entry for each host, in their order, with C(host) and C(node). C(from) are the strategies that leave the node, and C(to) is the one that it
          has afterwards.
        - C(blockers) are sentences with host, cause and remedy.
        - C(cordon) is whether the node is cordoned for the change and uncordoned after it, with C(reason) noted on the node, and C(drain) which pods are
          evicted between.
        - C(node_absent) and C(node_present) are the roles whose entry points of these names run for the node, and C(steps) all steps in words.
      type: list
      elements: dict
    cluster:
      description:
        - C(present) are the strategies with a device plugin of their own that nodes of this run have afterwards, C(enters) those of them that are new in
          the cluster, C(leaves) those that leave it, and C(kept) the nodes that keep a strategy, by its name.
        - C(extenders) are the strategies whose extenders kube-scheduler has afterwards, and C(scheduler_changes) is whether this run sets them.
        - C(nvidia_resources) are resources of NVIDIA's device plugin on nodes that leave it. C(blockers) are sentences as for nodes.
      type: dict
  sample:
    nodes:
      - host: gpu1
        node: gpu1
        from: []
        to: time_slicing
        blockers: []
        cordon: false
        reason: ""
        drain: none
        node_absent: []
        node_present: ""
        steps: []
    cluster:
      present: []
      enters: []
      leaves: []
      kept: {}
      extenders: []
      scheduler_changes: false
      nvidia_resources: []
      blockers: []
blockers:
  description: All blockers, those of nodes first.
  returned: success
  type: list
  elements: str
  sample: []
table:
  description: The plan as the lines of a table.
  returned: success
  type: list
  elements: str
  sample:
    - HOST  NODE  FROM  TO            STEPS
    - gpu1  gpu1  -     time_slicing  none
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.sharing_state import read_sharing_state
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import TAGS, Cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import (
    list_blockers,
    plan_sharing,
    render_plan,
)

ARGUMENTS: dict[str, dict[str, Any]] = {
    "hosts": {"type": "list", "elements": "dict", "required": True},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "run_tags": {"type": "list", "elements": "str", "choices": list(TAGS), "default": list(TAGS)},
    "second_scheduler": {"type": "str", "default": ""},
    "namespaces": {"type": "dict", "default": {}},
    "control_planes": {"type": "list", "elements": "str"},
    "left_out": {"type": "list", "elements": "str", "default": []},
    "control_plane_group": {"type": "str", "default": "kube_control_plane"},
}
# Options of the module that are fields of the plan's input.
PASSED = ("run_tags", "second_scheduler", "namespaces", "control_planes", "left_out", "control_plane_group")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(argument_spec={**AUTH_ARG_SPEC, **ARGUMENTS}, supports_check_mode=True)
    params = module.params
    try:
        hosts = {each["node"]: each.get("strategy") or "" for each in params["hosts"]}
        state = read_sharing_state(connect(module), hosts)
        cluster = Cluster(
            labelled=state.labelled,
            claimed=state.claimed,
            schedulers=state.schedulers,
            absent=params["state"] == "absent",
            **{name: params[name] for name in PASSED},
        )
        plan = plan_sharing(params["hosts"], state.nodes, cluster)
    except ApiError as error:
        module.fail_json(msg=str(error))
    except (AttributeError, KeyError, TypeError) as error:
        module.fail_json(msg=f"hosts cannot be read ({error!r}); see the documentation of this module.")
    module.exit_json(changed=False, plan=plan, blockers=list_blockers(plan), table=render_plan(plan))


if __name__ == "__main__":
    main()
