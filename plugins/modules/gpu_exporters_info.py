#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module gpu_exporters_info."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_exporters_info
short_description: Find the exporters of GPU metrics that run as DaemonSets
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Finds DaemonSets by the names of their images, such as those of NVIDIA's GPU Operator and of NVSentinel, and their pods. Lists nodes and DaemonSets once.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.api
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Find the exporters of the cluster
  gpu.kubernetes.gpu_exporters_info:
  register: cluster

- name: Show those of a node
  ansible.builtin.debug:
    var: cluster.nodes['worker-1'].exporters
"""

RETURN = r"""
nodes:
  description:
    - For each node its internal C(address), and its C(exporters). Each has the C(namespace) and C(name) of its DaemonSet, the name of the C(exporter), its
      C(owner) (a title, or empty), whether this collection has deployed it (C(managed)), and its C(address) with the port, which is empty while its
      pod has none.
  returned: success
  type: dict
  sample:
    worker-1:
      address: 10.0.0.11
      exporters:
        - namespace: gpu-operator
          name: nvidia-dcgm-exporter
          exporter: dcgm_exporter
          owner: NVIDIA's GPU Operator
          managed: false
          address: 10.244.1.7:9400
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.cluster import (
    describe_nodes,
    find_daemon_sets,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

ARGUMENTS: dict[str, Any] = dict(AUTH_ARG_SPEC)


def run(module: Module) -> None:
    """Report the exporters of all nodes."""
    cluster = connect(module)
    try:
        found = find_daemon_sets(cluster.daemon_sets())
        pods = [(each, cluster.pods(each.namespace, each.selector)) for each in found]
        module.exit_json(changed=False, nodes=describe_nodes(cluster.nodes(), pods))
    except ApiError as error:
        module.fail_json(msg=str(error))


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
