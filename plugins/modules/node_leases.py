#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_leases
short_description: Hold or release the Leases of nodes that a run changes
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - A Lease in C(kube-system) names the run that changes a node, so that a second run is refused. A run that holds a Lease renews it.
  - A Lease that has expired is taken over. So is one of a run of the same user on the same controller whose process has ended; the
    action plugin of the same name finds that, and names this run.
  - Times are by the clock of the API server, as its answers report it.
  - Leases belong to a run and are not a change of the nodes, so the module never reports a change.
options:
  names:
    description: Names of the Leases, and what each is for in messages.
    type: dict
    required: true
  state:
    description: Whether the Leases are held or released. A Lease of another run is not released.
    type: str
    choices: [present, absent]
    default: present
  seconds:
    description: How long a Lease lasts from now on.
    type: int
    default: 7200
  take_over:
    description: Whether Leases of other runs are taken over.
    type: bool
    default: false
  holder:
    description: Name of this run. The action plugin sets it.
    type: str
    default: ""
  ended:
    description: Runs that have ended without a release. The action plugin sets it.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - gpu.kubernetes.k8s_auth
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.api
attributes:
  check_mode:
    support: full
    details: The Leases are only read. RV(refused) has those of other runs.
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - kubernetes >= 24.2.0
seealso:
  - module: gpu.kubernetes.node_lock
"""

EXAMPLES = r"""
- name: Hold the Lease of a node
  gpu.kubernetes.node_leases:
    names:
      gpu-kubernetes-worker-1: node worker-1

- name: Release it
  gpu.kubernetes.node_leases:
    names:
      gpu-kubernetes-worker-1: node worker-1
    state: absent
"""

RETURN = r"""
refused:
  description: The Leases of other runs.
  returned: O(state=present)
  type: list
  elements: dict
  contains:
    name:
      description: Name of the Lease.
      type: str
    holder:
      description: Its holder.
      type: str
    reason:
      description: Who holds it since when, and what to do, as a clause.
      type: str
unanswered:
  description: Whether the API server did not answer, or could not answer now. Otherwise it rejected the request.
  returned: failure of a request
  type: bool
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_api import AUTH_ARG_SPEC, connect
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.decide import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.leases import hold_leases, release_leases
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.report import (
    REQUEST_ARGUMENTS,
    describe_take_overs,
    list_refused,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import Module, build_module

ARGUMENTS: dict[str, Any] = {**AUTH_ARG_SPEC, "names": {"type": "dict", "required": True}, **REQUEST_ARGUMENTS}


def run(module: Module) -> None:
    """Hold or release the Leases."""
    params, names = module.params, list(module.params["names"])
    cluster = connect(module)
    try:
        if params["state"] == "absent":
            if not module.check_mode:
                release_leases(cluster, names, params["holder"])
            module.exit_json(changed=False)
        request = Request(params["holder"], params["seconds"], params["take_over"], params["ended"])
        verdicts = hold_leases(cluster, names, request, module.check_mode)
    except ApiError as error:
        module.fail_json(msg=str(error), unanswered=error.is_transient)
    for warning in describe_take_overs(verdicts, params["names"]):
        module.warn(warning)
    module.exit_json(changed=False, refused=list_refused(verdicts, params["names"]))


def main() -> None:
    """Run the module."""
    run(build_module(AnsibleModule, ARGUMENTS))


if __name__ == "__main__":
    main()
