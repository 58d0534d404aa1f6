# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading nodes and pods.

An object is the dictionary that the API server sends as JSON. Resource amounts are whole units of a device
resource (``nvidia.com/gpu``), never bytes.
"""

from __future__ import annotations

import math
from typing import Any, Dict, Iterable, Mapping

from .quantities import parse

Object = Dict[str, Any]

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})
BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def name_of(obj: Mapping[str, Any]) -> str:
    """Return ``metadata.name``, or an empty string."""
    return str((obj.get("metadata") or {}).get("name") or "")


def full_name_of(obj: Mapping[str, Any]) -> str:
    """Return ``namespace/name``."""
    return f"{(obj.get('metadata') or {}).get('namespace')}/{name_of(obj)}"


def labels_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return a copy of ``metadata.labels``."""
    return dict((obj.get("metadata") or {}).get("labels") or {})


def annotations_of(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return a copy of ``metadata.annotations``."""
    return dict((obj.get("metadata") or {}).get("annotations") or {})


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Say whether every pair of the selector is among the labels."""
    return all(labels.get(key) == value for key, value in selector.items())


def quantity(value: Any) -> int:
    """Turn a Kubernetes quantity of a device resource into whole units, rounded up; 0 where there is none."""
    text = str(value if value is not None else "").strip()
    if text.isdigit() and text.isascii() and len(text) < 20:
        return int(text)
    try:
        return max(0, math.ceil(parse(text)))
    except ValueError:
        return 0


def capacity_of(node: Mapping[str, Any], resource: str) -> int:
    """Return how many units the node has, healthy or not (``status.capacity``)."""
    return quantity(((node.get("status") or {}).get("capacity") or {}).get(resource))


def allocatable_of(node: Mapping[str, Any], resource: str) -> int:
    """Return how many units the node offers to pods (``status.allocatable``)."""
    return quantity(((node.get("status") or {}).get("allocatable") or {}).get(resource))


def condition_of(obj: Mapping[str, Any], kind: str) -> Object:
    """Return the condition of this type, or an empty dictionary."""
    for condition in (obj.get("status") or {}).get("conditions") or []:
        if condition.get("type") == kind:
            return dict(condition)
    return {}


def is_ready(node: Mapping[str, Any]) -> bool:
    """Say whether the node's Ready condition is True."""
    return condition_of(node, "Ready").get("status") == "True"


def is_schedulable(node: Mapping[str, Any]) -> bool:
    """Say whether new pods may be scheduled, which a cordon forbids."""
    return not (node.get("spec") or {}).get("unschedulable")


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Say whether one of the tolerations accepts the taint, by the scheduler's rules."""
    return any(_accepts(toleration, taint) for toleration in tolerations)


def _accepts(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint.get("key"):
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(
    node: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]], ignore: Iterable[str] = ()
) -> list[Object]:
    """Return the node's taints that keep a pod with these tolerations away; keys in ``ignore`` do not count."""
    accepted, skipped = list(tolerations), set(ignore)
    return [
        dict(taint)
        for taint in (node.get("spec") or {}).get("taints") or []
        if taint.get("effect") in BLOCKING_EFFECTS
        and taint.get("key") not in skipped
        and not tolerates(accepted, taint)
    ]


def taint_text(taint: Mapping[str, Any]) -> str:
    """Write a taint the way ``kubectl`` does: ``key=value:effect``."""
    value = "=" + str(taint["value"]) if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def node_of(pod: Mapping[str, Any]) -> str:
    """Return the node that the pod runs on, or is meant for by a ``metadata.name`` affinity; empty if open."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or []:
        for field in term.get("matchFields") or []:
            if field.get("key") == "metadata.name" and len(field.get("values") or []) == 1:
                return str(field["values"][0])
    return ""


def pods_by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    """Sort pods by the node that they are on or meant for; pods that are open do not appear."""
    sorted_pods: dict[str, list[Object]] = {}
    for pod in pods:
        name = node_of(pod)
        if name:
            sorted_pods.setdefault(name, []).append(pod)
    return sorted_pods
