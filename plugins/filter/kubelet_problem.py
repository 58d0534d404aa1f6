# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter kubelet_problem."""

from __future__ import annotations

DOCUMENTATION = r"""
name: kubelet_problem
short_description: Return why a node is not as expected after a restart of its kubelet
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Only a report of the restarted kubelet counts.
positional: _input, name, former_report, planned
options:
  _input:
    description: The result of M(gpu.kubernetes.objects_info) for the node.
    type: dict
    required: true
  name:
    description: The name of the node.
    type: str
    required: true
  former_report:
    description: The time of the kubelet's last report before the restart; empty if it is unknown.
    type: str
    required: true
  planned:
    description: C(reserved) and C(resources) of M(gpu.kubernetes.kubelet_config), which the node has to report. Empty for a former configuration.
    type: dict
    default: {}
"""

RETURN = r"""
_value:
  description: A clause with the cause; empty if the node is Ready and as expected.
  type: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def kubelet_problem(
    result: Mapping[str, Any], name: str, former_report: str, planned: Mapping[str, Any] | None = None
) -> str:
    """Return the clause; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import shorten
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import allocatable
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import get_condition

    try:
        if result.get("found") is None:
            return f"the API server cannot be queried ({result.get('msg', 'no answer')})"
        node = next(iter(result["found"][0]), None)
        if not node:
            return f"the cluster has no node {name}"
        ready = get_condition(node, "Ready")
        if ready.get("lastHeartbeatTime", "") == former_report:
            return "the kubelet has not reported"
        if ready.get("status") != "True":
            return f"the node is not Ready ({shorten(ready.get('message') or 'no reason given')})"
        parts = allocatable.parts(node, planned["reserved"], planned["resources"]) if planned else []
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"kubelet_problem cannot read its input ({error!r}); see its documentation."
        ) from error
    differences = allocatable.find_differences(parts)
    return f"the node reports {' and '.join(differences)}" if differences else ""


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"kubelet_problem": kubelet_problem}
