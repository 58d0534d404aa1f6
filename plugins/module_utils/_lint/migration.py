# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the workloads that no node can run any more once nodes have changed their sharing strategy."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._kubernetes.objects import Object, can_run_on, get_condition, get_labels, get_name, parse_units
from .._kubernetes.requests import count_requested, list_resources
from .._sharing.catalogue import STRATEGIES, strategy_resources
from .._text import make_printable
from .model import Document
from .walker import find_workloads

#: How many workloads a printed plan names.
MOST_NAMED = 20
# The parts of a pod's spec that select nodes.
_SELECTING = ("nodeSelector", "affinity")


class Demand(NamedTuple):
    """What a pod requests, with its owner: units of each GPU resource, and those of the container that requests most of it."""

    kind: str
    namespace: str
    name: str
    requested: Mapping[str, int]
    largest: Mapping[str, int]
    spec: Mapping[str, Any]


class Place(NamedTuple):
    """A node with its labels, and whether it offers units of a resource: (resource, units of the pod, largest of a container) -> bool."""

    labels: Mapping[str, str]
    offers: Callable[[str, int, int], bool]


def find_stranded(
    nodes: Iterable[Object], pods: Iterable[Object], rows: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the owners of *pods* that a node can run now and that no node can run after the changes of *rows*, the nodes of a plan.

    Each has ``kind``, ``namespace``, ``name``, ``resources`` and a ``sentence``. Free units are not compared: only what nodes offer in total.
    """
    changed = {row["node"]: row for row in rows if row["from"]}
    if not changed:
        return []
    before, after = [], []
    for node in nodes:
        amounts = _read_amounts(node)
        place = Place(get_labels(node), _offer_amounts(amounts))
        row = changed.get(get_name(node))
        before += [place] if amounts else []
        after += [_change(place, row)] if row else [place] if amounts else []
    fits: dict[str, bool] = {}
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for demand in _list_demands(pods):
        key = json.dumps([demand.requested, demand.largest, *(demand.spec.get(each) for each in _SELECTING)])
        if key not in fits:
            fits[key] = not _fits(demand, before) or _fits(demand, after)
        if not fits[key]:
            found.setdefault((demand.namespace, demand.name, demand.kind), _describe(demand, after))
    return [found[owner] for owner in sorted(found)]


def list_template_pods(documents: Iterable[Document]) -> list[Object]:
    """Return for each template of *documents* a pod as its controller would create it; none for a Job that has ended.

    Of a CronJob between two runs, or of a Deployment with 0 replicas, there is no other one.
    """
    return [
        {
            "metadata": {
                **workload.metadata,
                "namespace": (document.object.get("metadata") or {}).get("namespace"),
                "ownerReferences": [{"kind": document.kind, "name": get_name(document.object), "controller": True}],
            },
            "spec": workload.pod["spec"],
        }
        for document in documents
        if not any(get_condition(document.object, end).get("status") == "True" for end in ("Complete", "Failed"))
        for workload in find_workloads([document])
    ]


def render_stranded(stranded: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a plan that name these workloads, of which the first MOST_NAMED."""
    lines = [make_printable(f"WARNING: {each['sentence']}") for each in stranded[:MOST_NAMED]]
    left = len(stranded) - MOST_NAMED
    return [*lines, f"WARNING: {left} more workloads can run on no node after this change."] if left > 0 else lines


def _list_demands(pods: Iterable[Object]) -> Iterator[Demand]:
    """Yield the demand of each pod that requests GPUs by a strategy: those of other vendors stay as they are."""
    for pod in pods:
        amounts = {
            name: count_requested(pod, name) for name in strategy_resources(dict.fromkeys(list_resources(pod), 1))
        }
        requested = {name: amounts[name] for name in sorted(amounts) if amounts[name]}
        if requested:
            kind, name = _find_owner(pod)
            largest = {each: _find_largest(pod, each) for each in requested}
            namespace = str(pod["metadata"].get("namespace") or "")
            yield Demand(kind, namespace, name, requested, largest, pod.get("spec") or {})


def _find_owner(pod: Object) -> tuple[str, str]:
    """Return kind and name of the controller; the Deployment of a ReplicaSet, whose name ends with the hash of the pod's template."""
    owners = pod["metadata"].get("ownerReferences") or []
    owner = next((each for each in owners if each.get("controller")), owners[0] if owners else None)
    if not owner:
        return "Pod", get_name(pod)
    kind, name = str(owner.get("kind")), str(owner.get("name"))
    suffix = f"-{get_labels(pod).get('pod-template-hash', '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        return "Deployment", name[: -len(suffix)]
    return kind, name


def _find_largest(pod: Object, resource: str) -> int:
    """Return the units of the container that requests most."""
    spec = pod.get("spec") or {}
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    limits = [(each.get("resources") or {}).get("limits") or {} for each in containers]
    return max((parse_units(each.get(resource)) for each in limits), default=0)


def _read_amounts(node: Object) -> dict[str, int]:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    amounts = strategy_resources({name: parse_units(amount) for name, amount in allocatable.items()})
    return {name: units for name, units in amounts.items() if units}


def _offer_amounts(amounts: Mapping[str, int]) -> Callable[[str, int, int], bool]:
    return lambda name, units, _largest: amounts.get(name, 0) >= units


def _change(place: Place, row: Mapping[str, Any]) -> Place:
    """Return the node as it is afterwards. How many units it offers then is not known before."""

    def offers(name: str, _units: int, largest: int) -> bool:
        return any(fnmatchcase(name, each) for each in row["offered"]) and not 0 < row["most"] < largest

    left = {key for name in row["from"] for key in STRATEGIES[name].label}
    labels = {key: value for key, value in place.labels.items() if key not in left}
    return Place({**labels, **(STRATEGIES[row["to"]].label if row["to"] else {})}, offers)


def _fits(demand: Demand, places: Iterable[Place]) -> bool:
    return any(not _find_lacking(demand, place) and can_run_on(demand.spec, place.labels) for place in places)


def _find_lacking(demand: Demand, place: Place, largest: bool = True) -> list[str]:
    """Return the resources that the node does not offer; without *largest*, those that it offers to no container at all."""
    return [
        name
        for name, units in demand.requested.items()
        if not place.offers(name, units, demand.largest[name] if largest else 1)
    ]


def _describe(demand: Demand, after: Sequence[Place]) -> dict[str, Any]:
    amounts = " and ".join(f"{units} of {name}" for name, units in demand.requested.items())
    suited = [place for place in after if can_run_on(demand.spec, place.labels)]
    is_limited = any(not _find_lacking(demand, place, largest=False) for place in suited)
    reason = "of which a container gets at most one" if is_limited else "which no node that it selects offers"
    return {
        "kind": demand.kind,
        "namespace": demand.namespace,
        "name": demand.name,
        "resources": list(demand.requested),
        "sentence": f"{demand.kind} {demand.namespace}/{demand.name} requests {amounts}, {reason} after this change.",
    }
