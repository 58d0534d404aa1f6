#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_extended_resources
short_description: Take extended resources out of the status of nodes
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Programs may write resources of their own into the status of a node, as some device plugins do with C(aliyun.com/gpu-count). The
    kubelet does not know of them, so that they stay when the program is gone.
  - Lists the nodes once and patches those that have one of the resources.
  - A resource that a device plugin still offers comes back with the next report of its kubelet.
options:
  resources:
    description: Names of the resources.
    type: list
    elements: str
    required: true
  nodes:
    description: The nodes. Left out, all nodes of the cluster. One that is not in the cluster has nothing to take out.
    type: list
    elements: str
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
  - name: Advertise Extended Resources for a Node
    description: What Kubernetes says of them.
    link: https://kubernetes.io/docs/tasks/administer-cluster/extended-resource-node/
"""

EXAMPLES = r"""
- name: Remove what a device plugin has left
  gpu.kubernetes.node_extended_resources:
    resources: [aliyun.com/gpu-count]
    nodes: [worker-1, worker-2]
"""

RETURN = r"""
nodes:
  description: What was taken out, or would be in check mode, by node name, each with the amount that was there.
  returned: success
  type: dict
  sample:
    worker-1:
      aliyun.com/gpu-count: "2"
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.extended_resources import remove


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **AUTH_ARG_SPEC,
            "resources": {"type": "list", "elements": "str", "required": True},
            "nodes": {"type": "list", "elements": "str"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        removed = remove(connect(module), params["resources"], params["nodes"], module.check_mode)
    except ApiError as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=bool(removed), nodes=removed, diff={"before": removed, "after": {name: {} for name in removed}}
    )


if __name__ == "__main__":
    main()
