#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_extended_resources
short_description: Remove extended resources from the status of nodes
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - Programs can write resources into the status of a node, as some device plugins do with C(aliyun.com/gpu-count). The
    kubelet does not remove them, so that they stay after the program is removed.
  - Lists the nodes once and patches those that have one of the resources.
  - A resource that a device plugin still registers reappears with the next report of the kubelet.
options:
  resources:
    description: Names of the resources.
    type: list
    elements: str
    required: true
  nodes:
    description: The nodes; by default all nodes of the cluster. A node that is not in the cluster is ignored.
    type: list
    elements: str
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
  - gpu.kubernetes.attributes.full
requirements:
  - kubernetes >= 24.2.0
seealso:
  - name: Advertise Extended Resources for a Node
    description: The documentation of Kubernetes.
    link: https://kubernetes.io/docs/tasks/administer-cluster/extended-resource-node/
"""

EXAMPLES = r"""
- name: Remove the leftovers of a device plugin
  gpu.kubernetes.node_extended_resources:
    resources: [aliyun.com/gpu-count]
    nodes: [worker-1, worker-2]
"""

RETURN = r"""
nodes:
  description: What was removed, or would be in check mode, by node name, each with its former amount.
  returned: success
  type: dict
  sample:
    worker-1:
      aliyun.com/gpu-count: "2"
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.extended_resources import remove_resources
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
    "resources": {"type": "list", "elements": "str", "required": True},
    "nodes": {"type": "list", "elements": "str"},
}


def run(module: Module) -> None:
    """Remove the resources."""
    params = module.params
    try:
        removed = remove_resources(connect(module), params["resources"], params["nodes"], module.check_mode)
    except ApiError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(removed), nodes=removed, diff={"before": removed, "after": {name: {} for name in removed}}
    )


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
