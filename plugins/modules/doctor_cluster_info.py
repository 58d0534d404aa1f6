#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: doctor_cluster_info
short_description: Observe a cluster for the checks of the GPU doctor
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - Reads nodes, pods, Leases, warning events, DaemonSets and RuntimeClasses with one list each, whatever the number of nodes is, and at
    most five logs of device plugins. It reads neither Secrets nor ConfigMaps.
  - A list that this account may not read is named in C(errors), and its checks are unknown.
options:
  nodes:
    description: Nodes to report even if they have no GPUs.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
  - gpu.kubernetes.attributes.api
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Observe the cluster
  gpu.kubernetes.doctor_cluster_info:
    nodes: [worker-1]
  register: observed
"""

RETURN = r"""
observation:
  description:
    - C(nodes) by name, C(runtime_classes), C(class_users), C(pending) pods, C(events) and C(bypassing) pods.
    - C(errors) has the reason for each list that could not be read.
  returned: success
  type: dict
  sample: {nodes: {}, runtime_classes: {nvidia: nvidia}, errors: {}}
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.cluster import read_cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module


def main() -> None:
    """Run the module."""
    module = build_module(AnsibleModule, {**AUTH_ARG_SPEC, "nodes": {"type": "list", "elements": "str", "default": []}})
    try:
        observed = read_cluster(connect(module), frozenset(module.params["nodes"]))
    except ApiError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, observation=observed)


if __name__ == "__main__":
    main()
