# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields of nodes and pods, and whether a pod can run on a node, as kube-scheduler decides it.

An object is the dictionary that the API server sends as JSON. Amounts are whole units of a device resource (``nvidia.com/gpu``).
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Iterable, Mapping

from .._edge import find_framework, keeps_pods
from .quantities import parse_quantity

Object = Dict[str, Any]

FINISHED_PHASES = frozenset({"Succeeded", "Failed"})
#: Selects the other pods: finished ones hold nothing, so that the server need not send them.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
#: Names what manages an object.
MANAGER_LABEL = "app.kubernetes.io/managed-by"
#: The object that kubectl and kubernetes.core applied last, as JSON.
APPLIED_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
#: Fields of pods and Services whose items kubernetes.core merges by name, port or path.
MERGED = frozenset({"containers", "initContainers", "env", "ports", "volumes", "volumeMounts"})
BLOCKING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def get_name(obj: Mapping[str, Any]) -> str:
    """Return ``metadata.name``, or an empty string."""
    return str((obj.get("metadata") or {}).get("name") or "")


def get_full_name(obj: Mapping[str, Any]) -> str:
    """Return ``namespace/name``."""
    return f"{(obj.get('metadata') or {}).get('namespace')}/{get_name(obj)}"


def get_labels(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return a copy of ``metadata.labels``."""
    return dict((obj.get("metadata") or {}).get("labels") or {})


def get_annotations(obj: Mapping[str, Any]) -> dict[str, str]:
    """Return a copy of ``metadata.annotations``."""
    return dict((obj.get("metadata") or {}).get("annotations") or {})


def is_applied(desired: Object, existing: Object) -> bool:
    """Return whether to apply *desired* would change nothing: it was applied last, and the object still has all of it.

    The API server adds fields of its own, also to items of MERGED lists, and leaves out what is empty. Other lists have to be equal: to apply replaces them.
    """
    try:
        applied = json.loads(get_annotations(existing).get(APPLIED_ANNOTATION, ""))
    except ValueError:
        return False
    return bool(applied == desired) and _has(existing, desired, "")


def _has(existing: Any, desired: Any, key: str) -> bool:
    if desired == [] or (desired == {} and key == "nodeSelector"):
        return not existing
    if isinstance(desired, Mapping) and isinstance(existing, Mapping):
        return all(_has(existing.get(name), value, name) for name, value in desired.items())
    if key in MERGED and isinstance(existing, list):
        return len(existing) == len(desired) and all(
            _has(there, wanted, "") for there, wanted in zip(existing, desired)
        )
    return bool(existing == desired)


def matches_selector(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Return whether the labels contain every pair of the selector."""
    return all(labels.get(key) == value for key, value in selector.items())


def parse_units(value: Any) -> int:
    """Return a quantity of a device resource as whole units, rounded up; 0 for anything else."""
    text = str(value if value is not None else "").strip()
    if text.isdigit() and text.isascii() and len(text) < 20:
        return int(text)
    try:
        return max(0, math.ceil(parse_quantity(text)))
    except ValueError:
        return 0


def get_capacity(node: Mapping[str, Any], resource: str) -> int:
    """Return how many units the node has, healthy or not (``status.capacity``)."""
    return parse_units(((node.get("status") or {}).get("capacity") or {}).get(resource))


def get_allocatable(node: Mapping[str, Any], resource: str) -> int:
    """Return how many units pods can allocate (``status.allocatable``)."""
    return parse_units(((node.get("status") or {}).get("allocatable") or {}).get(resource))


def get_condition(obj: Mapping[str, Any], kind: str) -> Object:
    """Return the condition of this type, or an empty dictionary."""
    for condition in (obj.get("status") or {}).get("conditions") or []:
        if condition.get("type") == kind:
            return dict(condition)
    return {}


def find_edge_framework(node: Mapping[str, Any]) -> str:
    """Return the name of the edge framework that manages the node; empty for none."""
    information = (node.get("status") or {}).get("nodeInfo") or {}
    return find_framework(get_labels(node), str(information.get("kubeletVersion") or ""))


def is_judged(node: Mapping[str, Any]) -> bool:
    """Return whether the API server can judge the node: pods of some edge frameworks keep running while it does not hear from the node."""
    if get_condition(node, "Ready").get("status") != "Unknown":
        return True
    return not keeps_pods(find_edge_framework(node), get_annotations(node))


def is_ready(node: Mapping[str, Any]) -> bool:
    """Return whether the node's Ready condition is True."""
    return get_condition(node, "Ready").get("status") == "True"


def is_schedulable(node: Mapping[str, Any]) -> bool:
    """Return whether the node is not cordoned."""
    return not (node.get("spec") or {}).get("unschedulable")


def is_tolerated(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Return whether one of the tolerations matches the taint, by the scheduler's rules."""
    return any(_is_accepted(toleration, taint) for toleration in tolerations)


def _is_accepted(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    exists = toleration.get("operator") == "Exists"
    if not toleration.get("key"):
        return exists
    if toleration["key"] != taint.get("key"):
        return False
    return exists or (toleration.get("value") or "") == (taint.get("value") or "")


def find_untolerated_taints(
    node: Mapping[str, Any], tolerations: Iterable[Mapping[str, Any]], ignore: Iterable[str] = ()
) -> list[Object]:
    """Return the node's taints that a pod with these tolerations does not tolerate; keys in ``ignore`` do not count."""
    accepted, skipped = list(tolerations), set(ignore)
    return [
        dict(taint)
        for taint in (node.get("spec") or {}).get("taints") or []
        if taint.get("effect") in BLOCKING_EFFECTS
        and taint.get("key") not in skipped
        and not is_tolerated(accepted, taint)
    ]


def format_taint(taint: Mapping[str, Any]) -> str:
    """Write a taint the way ``kubectl`` does: ``key=value:effect``."""
    value = "=" + str(taint["value"]) if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def get_node_name(pod: Mapping[str, Any]) -> str:
    """Return the node that the pod runs on, or the one of its ``metadata.name`` affinity; empty if there is neither."""
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


def group_by_node(pods: Iterable[Object]) -> dict[str, list[Object]]:
    """Return pods by ``get_node_name``; pods without a node are left out."""
    groups: dict[str, list[Object]] = {}
    for pod in pods:
        name = get_node_name(pod)
        if name:
            groups.setdefault(name, []).append(pod)
    return groups


# -- node affinity


def can_run_on(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a pod with this ``spec`` can run on a node with these labels, by ``nodeSelector`` and required node affinity.

    It is for templates of pods: the controller of a DaemonSet replaces the affinity of its pods by the name of the node.
    ``matchFields`` count as a match.
    """
    if not matches_selector(spec.get("nodeSelector") or {}, labels):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(term, labels) for term in required.get("nodeSelectorTerms") or [])


def find_leaving(daemon_sets: Iterable[Object], labels: Mapping[str, str]) -> set[str]:
    """Return ``namespace/name`` of the DaemonSets that run no pod on a node with these labels."""
    found = set()
    for each in daemon_sets:
        template = (each.get("spec") or {}).get("template") or {}
        if not can_run_on(template.get("spec") or {}, labels):
            found.add(f"{each['metadata'].get('namespace')}/{get_name(each)}")
    return found


def _term_matches(term: Object, labels: Mapping[str, str]) -> bool:
    """Return whether all requirements of the term are met; a term without requirements matches nothing."""
    expressions = term.get("matchExpressions") or []
    named = expressions or term.get("matchFields")
    return bool(named) and all(_is_met(expression, labels) for expression in expressions)


def _is_met(expression: Object, labels: Mapping[str, str]) -> bool:
    operator, values = expression.get("operator"), expression.get("values") or []
    value = labels.get(str(expression.get("key")))
    if operator == "NotIn":
        return value not in values
    if operator == "DoesNotExist":
        return value is None
    if value is None:
        return False
    if operator in ("Gt", "Lt"):
        return _is_within(operator, value, values)
    return operator == "Exists" or (operator == "In" and value in values)


def _is_within(operator: str, value: str, values: list[Any]) -> bool:
    try:
        number, limit = int(value), int(values[0])
    except (ValueError, TypeError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit
