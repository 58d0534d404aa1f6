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
  - Reads the nodes, pods and ResourceSlices of the cluster once, and the workloads if a node leaves a strategy.
  - Plans for all hosts which sharing strategy each leaves and enters, what blocks that, and what is first and last in the cluster. The role
    P(gpu.kubernetes.gpu_sharing#role) passes the hosts' parameters, and the playbooks execute the plan.
options:
  hosts:
    description: One entry for each host.
    type: list
    elements: dict
    required: true
    suboptions:
      host:
        description: Its name in the inventory.
        type: str
        required: true
      node:
        description: Its name in Kubernetes.
        type: str
        required: true
      strategy:
        description: The declared strategy; empty where the host keeps the one that it has.
        type: str
        default: ""
      migrate:
        description: Whether GPU pods may be evicted.
        type: bool
        default: false
      may_reboot:
        description: Whether the host may be rebooted. All its pods are then evicted for a change that may need a reboot, if O(hosts[].migrate).
        type: bool
        default: false
      config:
        description: The configuration of NVIDIA's device plugin on all nodes.
        type: raw
        default: {}
      replicas:
        description: How many pods share a GPU or MIG device on this node, under a strategy that needs a number; V(0) for as in O(hosts[].config).
        type: int
        default: 0
      rename:
        description: Whether the resource of shared GPUs gets the suffix C(.shared).
        type: bool
        default: false
      mig_strategy:
        description: How the resources of MIG devices are named; empty for as in O(hosts[].config), else V(single).
        type: str
        choices: ["", single, mixed]
        default: ""
      has_layout:
        description: Whether the host declares MIG devices. Without, those that users have made stay as they are.
        type: bool
        default: false
      has_whole:
        description: Whether these leave GPUs of the host without MIG.
        type: bool
        default: true
      differs:
        description: Whether its GPUs differ from these MIG devices.
        type: bool
        default: false
      mig_config:
        description: The configuration of the MIG manager of NVIDIA's GPU Operator, where the operator deploys the device plugin.
        type: str
        default: ""
      resource_name:
        description: The resource that this plugin registers.
        type: str
        default: nvidia.com/gpu
      gpus:
        description: The number of working GPUs; V(-1) if it is unknown.
        type: int
        default: -1
      kept:
        description: The strategies that keep files of the host.
        type: list
        elements: str
        default: []
      remove_used:
        description: By strategy, whether it may be removed while pods hold its resources.
        type: dict
        default: {}
      vendors:
        description: The vendors of the host's GPUs; of an empty list, NVIDIA. Without NVIDIA, the host gets no other strategy than whole GPUs.
        type: list
        elements: str
        default: [nvidia]
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
  - gpu.kubernetes.k8s_auth
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
        replicas: 4
  register: planned
"""

RETURN = r"""
plan:
  description: The plan.
  returned: success
  type: dict
  contains:
    schema:
      description: The name and version of the format, which C(docs/schemas/gpu-plan-v1.json) describes.
      type: str
    nodes:
      description:
        - One entry for each host, in their order, with C(host) and C(node). C(from) are the strategies that leave the node, C(to) is the one that it has
          afterwards, and C(role) the role that deploys its device plugin. C(config) is the node's own configuration of NVIDIA's device plugin and
          C(config_name) the key by which the plugin finds it, and C(resource) the one by which pods get GPUs; all are empty where the node has the
          configuration of all nodes.
        - C(blockers) are sentences with host, cause and remedy.
        - C(cordon) is whether the node is cordoned for the change and uncordoned after it, with C(reason) noted on the node, and C(drain) which pods are
          evicted between.
        - C(preflight), C(node_absent) and C(node_present) are the roles whose entry points of these names run for the node, in order, C(cluster_present)
          is one such role or empty, C(pause) is whether NVIDIA's device plugin is off the node during the change, and C(steps) are all steps in words.
        - C(operated) are the parts that NVIDIA's GPU Operator runs on the node, of C(driver), C(toolkit), C(device_plugin), C(feature_discovery),
          C(mig_manager) and C(dra_driver), and C(labels) are the labels by which it shares the GPUs. C(mig_config) is the configuration of its MIG
          manager that the run waits for, or empty, and C(mig_changes) is whether that is another one than before.
        - C(vendors) are the vendors of the host's GPUs. Only GPUs of NVIDIA are shared.
      type: list
      elements: dict
    cluster:
      description:
        - C(present) are the strategies with objects in the cluster that nodes of this run have afterwards, C(enters) those of them that are new there,
          C(leaves) those that leave it, and C(kept) the nodes that keep a strategy, by its name.
        - C(extenders) are the strategies whose extenders kube-scheduler has afterwards, and C(scheduler_changes) is whether this run sets them.
        - C(plugin_configs) are the configurations of NVIDIA's device plugin that nodes have of their own afterwards, also nodes of other hosts, by name.
        - C(nvidia_resources) are resources of NVIDIA's device plugin on nodes that leave it. C(blockers) are sentences as for nodes.
        - C(operator) is empty unless NVIDIA's GPU Operator deploys device plugins. It has its C(namespace), the C(config_map) with the plugin's
          configurations, the C(plugin_labels) of the plugin's pods, in C(configured) the label C(app) of all pods that read the ConfigMap, and in C(unused)
          keys of this collection that no node names afterwards.
      type: dict
  sample:
    schema: gpu.kubernetes/plan/v1
    nodes:
      - host: gpu1
        node: gpu1
        from: []
        to: time_slicing
        role: k8s_device_plugin
        config_name: time_slicing-4-16b73af3
        config: {version: v1, sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}}
        resource: nvidia.com/gpu
        offered: [nvidia.com/gpu]
        most: 1
        pause: false
        blockers: []
        cordon: false
        reason: ""
        drain: none
        preflight: []
        node_absent: []
        node_present: []
        cluster_present: ""
        operated: []
        labels: {}
        mig_config: ""
        mig_changes: false
        vendors: [nvidia]
        steps: []
    cluster:
      present: []
      enters: []
      leaves: []
      kept: {}
      extenders: []
      scheduler_changes: false
      plugin_configs:
        time_slicing-4-16b73af3: {version: v1, sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}}
      nvidia_resources: []
      operator: {}
      blockers: []
blockers:
  description: All blockers, those of nodes first.
  returned: success
  type: list
  elements: str
  sample: []
stranded:
  description:
    - Owners of pods, and workloads without pods, that a node can run now and that no node can run after the change, with C(kind), C(namespace),
      C(name), C(resources) and C(sentence). What nodes offer is compared, not what is free. They block nothing.
  returned: success
  type: list
  elements: dict
  sample:
    - kind: Deployment
      namespace: team
      name: train
      resources: [nvidia.com/gpu]
      sentence: Deployment team/train requests 2 of nvidia.com/gpu, of which a container gets at most one after this change.
table:
  description: The plan as the lines of a table, with RV(stranded) and RV(blockers).
  returned: success
  type: list
  elements: str
  sample:
    - HOST  NODE  FROM  TO            STEPS
    - gpu1  gpu1  -     time_slicing  none
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.parsing.convert_bool import boolean

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import read_sharing_state
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.live import read_templates
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.migration import (
    find_stranded,
    list_template_pods,
    render_stranded,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import TAGS, Cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import (
    list_blockers,
    plan_sharing,
    render_plan,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import MIG_STRATEGIES, Request

HOST: dict[str, dict[str, Any]] = {
    "host": {"type": "str", "required": True},
    "node": {"type": "str", "required": True},
    "strategy": {"type": "str", "default": ""},
    "migrate": {"type": "bool", "default": False},
    "may_reboot": {"type": "bool", "default": False},
    "config": {"type": "raw", "default": {}},
    "replicas": {"type": "int", "default": 0},
    "rename": {"type": "bool", "default": False},
    "mig_strategy": {"type": "str", "choices": ["", *MIG_STRATEGIES], "default": ""},
    "has_layout": {"type": "bool", "default": False},
    "has_whole": {"type": "bool", "default": True},
    "differs": {"type": "bool", "default": False},
    "mig_config": {"type": "str", "default": ""},
    "resource_name": {"type": "str", "default": "nvidia.com/gpu"},
    "gpus": {"type": "int", "default": -1},
    "kept": {"type": "list", "elements": "str", "default": []},
    "remove_used": {"type": "dict", "default": {}},
    "vendors": {"type": "list", "elements": "str", "default": ["nvidia"]},
}
ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
    "hosts": {"type": "list", "elements": "dict", "required": True, "options": HOST},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "run_tags": {"type": "list", "elements": "str", "choices": list(TAGS), "default": list(TAGS)},
    "second_scheduler": {"type": "str", "default": ""},
    "namespaces": {"type": "dict", "default": {}},
    "control_planes": {"type": "list", "elements": "str"},
    "left_out": {"type": "list", "elements": "str", "default": []},
    "control_plane_group": {"type": "str", "default": "kube_control_plane"},
}
# Options of a host that are fields of its request.
REQUESTED = ("replicas", "rename", "mig_strategy")
# Options of the module that are fields of the plan's input.
PASSED = ("run_tags", "second_scheduler", "namespaces", "control_planes", "left_out", "control_plane_group")


def fields_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of one host as fields of the plan's input."""
    allowed = [name for name, value in given["remove_used"].items() if boolean(value, strict=False)]
    declared = {name: given[name] for name in REQUESTED}
    others = {name: value for name, value in given.items() if name not in REQUESTED}
    gpus = None if given["gpus"] < 0 else given["gpus"]
    vendors = given["vendors"] or HOST["vendors"]["default"]
    return {**others, "request": Request(**declared), "gpus": gpus, "remove_used": allowed, "vendors": vendors}


def run(module: Module) -> None:
    """Read the cluster and report the plan of all hosts."""
    params = module.params
    try:
        api = connect(module)
        state = read_sharing_state(api, {each["node"]: each["strategy"] for each in params["hosts"]})
        cluster = Cluster(
            labelled=state.labelled,
            claimed=state.claimed,
            schedulers=state.schedulers,
            config_names=state.config_names,
            configs=state.configs,
            operator=state.operator,
            absent=params["state"] == "absent",
            **{name: params[name] for name in PASSED},
        )
        plan = plan_sharing(map(fields_of, params["hosts"]), state.nodes, cluster)
        # Read only where a node leaves a strategy: a template is then a demand, also without a pod.
        templates = read_templates(api) if any(row["from"] for row in plan["nodes"]) else []
    except ApiError as error:
        module.fail_json(msg=str(error))
    except KeyError as error:
        module.fail_json(
            msg=f"hosts names the unknown sharing strategy {error}; choose one of {', '.join(STRATEGIES)}."
        )
    pods = [*state.pods, *list_template_pods(templates)]
    stranded = find_stranded(state.node_objects, pods, plan["nodes"])
    table = render_plan(plan, render_stranded(stranded))
    module.exit_json(changed=False, plan=plan, blockers=list_blockers(plan), stranded=stranded, table=table)


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
