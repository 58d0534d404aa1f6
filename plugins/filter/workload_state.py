# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter workload_state."""

from __future__ import annotations

DOCUMENTATION = r"""
name: workload_state
short_description: Judge whether a DaemonSet or Deployment is ready
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The role P(gpu.kubernetes.kube_objects#role) waits with it.
positional: _input, found
options:
  _input:
    description: The desired DaemonSet or Deployment.
    type: dict
    required: true
  found:
    description: The value C(found) of M(gpu.kubernetes.objects_info) for the workload and its pods.
    type: list
    elements: list
    required: true
"""

RETURN = r"""
_value:
  description:
    - C(ready) is true if all pods are from the latest template and are ready; C(nowhere) is true if a DaemonSet matches no node.
    - C(reason) is a clause with the reason why the pods are not ready.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import Object


#: Fields of the status that have to be equal and above 0.
COUNTS = {
    "DaemonSet": ("desiredNumberScheduled", "updatedNumberScheduled", "numberReady"),
    "Deployment": ("replicas", "updatedReplicas", "readyReplicas"),
}
NO_SCHEDULER = (
    "no scheduler has processed its pods; check that kube-scheduler runs, and repair its configuration, that of GPU sharing with the"
    " playbook share_gpus"
)
NO_POD = "it has no pod; Pod Security of its namespace, a quota or an admission webhook may refuse it, which kubectl describe shows"


def workload_state(desired: Mapping[str, Any], found: Sequence[Sequence[Object]]) -> dict[str, Any]:
    """Return the state; input of another form raises AnsibleFilterError."""
    try:
        workloads, pods = found
        return {**_count(desired, next(iter(workloads), {})), "reason": _explain(pods)}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"workload_state cannot read its input ({error!r}); see its documentation.") from error


def _count(desired: Mapping[str, Any], workload: Mapping[str, Any]) -> dict[str, bool]:
    """Return ready and nowhere. The status may be of an earlier generation of the workload."""
    status = workload.get("status") or {}
    current = status.get("observedGeneration", 0) == (workload.get("metadata") or {}).get("generation", -1)
    counts = {status.get(field, 0) for field in COUNTS[desired["kind"]]}
    if desired["kind"] == "Deployment":
        counts.add(int(desired["spec"].get("replicas", 1)))
    nowhere = desired["kind"] == "DaemonSet" and status.get("desiredNumberScheduled", 0) == 0
    return {"ready": current and min(counts) > 0 and len(counts) == 1, "nowhere": current and nowhere}


def _explain(pods: Sequence[Object]) -> str:
    """Return why containers wait, else why a pod has no node. A pod without conditions has not been processed by a scheduler."""
    statuses = [pod.get("status") or {} for pod in pods]
    # While an init container waits, the others wait for it.
    groups = (
        [each for status in statuses for each in status.get(kind) or []]
        for kind in ("initContainerStatuses", "containerStatuses")
    )
    found = ([waiting for each in group if (waiting := (each.get("state") or {}).get("waiting"))] for group in groups)
    waiting = next(filter(None, found), [])
    conditions = [each for status in statuses for each in status.get("conditions") or []]
    reasons = [str(text) for each in waiting for text in each.values()] or [
        str(each["message"]) for each in conditions if each.get("message")
    ]
    if reasons:
        return ", ".join(reasons)
    new = [pod for pod in pods if "nodeName" not in pod["spec"] and "conditions" not in (pod.get("status") or {})]
    return NO_SCHEDULER if new else NO_POD


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"workload_state": workload_state}
