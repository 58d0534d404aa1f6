#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_ready_info
short_description: Wait until the kubelets of nodes report and the nodes are Ready
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - Waits until each kubelet has renewed the Lease of its node since the module started, and the node is Ready.
  - Each round lists Leases and nodes page by page, and keeps the awaited ones.
options:
  nodes:
    description: The names of the nodes. A node without a Lease has not joined the cluster, and is not waited for.
    type: list
    elements: str
    required: true
  wait_timeout:
    description: Seconds to wait at most. Nodes that are not Ready then are not an error.
    type: int
    default: 60
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.api
seealso:
  - module: gpu.kubernetes.gpu_nodes_info
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Wait until two nodes are Ready again
  gpu.kubernetes.node_ready_info:
    nodes: [worker-1, worker-2]
    wait_timeout: 120
  register: nodes
"""

RETURN = r"""
nodes:
  description: The nodes by name.
  returned: success
  type: dict
  contains:
    known:
      description: Whether the node has a Lease.
      type: bool
    renewed:
      description: Whether its kubelet has renewed the Lease since the module started.
      type: bool
    ready:
      description: Whether the node is Ready, after the renewal.
      type: bool
    reason:
      description: Why it is not, as a clause.
      type: str
  sample:
    worker-1: {name: worker-1, known: true, renewed: true, ready: true, reason: ""}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.heartbeats import wait_for_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

ARGUMENTS: dict[str, Any] = {
    **AUTH_ARG_SPEC,
    "nodes": {"type": "list", "elements": "str", "required": True},
    "wait_timeout": {"type": "int", "default": 60},
}


def run(module: Module) -> None:
    """Wait, and report the nodes."""
    try:
        found = wait_for_nodes(connect(module), frozenset(module.params["nodes"]), module.params["wait_timeout"])
    except ApiError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, nodes={each.name: each.as_dict() for each in found})


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
