# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources that pods request, as kube-scheduler and the kubelet count them.

Source: k8s.io/component-helpers/resource, PodRequests. An amount is in the unit of its resource: CPUs, bytes, devices.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Iterable, Mapping, Union

from .objects import FINISHED_PHASES, get_full_name
from .quantities import parse_quantity

Amount = Union[int, Fraction]


def sum_requests(pod: Mapping[str, Any], resource: str) -> Fraction:
    """Return the amount of *resource* that the pod requests; 0 if it has finished.

    A sidecar is an init container with ``restartPolicy: Always``. The pod needs the larger of two amounts, plus its overhead: all
    containers with all sidecars, and each init container with the sidecars that start before it.
    """
    spec = pod.get("spec") or {}
    if (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
        return Fraction(0)
    sidecars: Amount = 0
    peak: Amount = 0
    for container in spec.get("initContainers") or []:
        amount = _request_of(container, resource)
        if container.get("restartPolicy") == "Always":
            sidecars += amount
        else:
            peak = max(peak, sidecars + amount)
    total = sidecars + sum(_request_of(container, resource) for container in spec.get("containers") or [])
    # Set for the pod as a whole, it replaces the sum of its containers.
    whole = ((spec.get("resources") or {}).get("requests") or {}).get(resource)
    overhead = _parse((spec.get("overhead") or {}).get(resource))
    return Fraction((max(total, peak) if whole is None else _parse(whole)) + overhead)


def count_requested(pod: Mapping[str, Any], resource: str) -> int:
    """Return how many whole units of a device resource the pod requests, rounded up; 0 if it has finished."""
    return max(0, math.ceil(sum_requests(pod, resource)))


def count_allocated(pods: Iterable[Mapping[str, Any]], resource: str) -> int:
    """Return how many units the pods with a node request."""
    return sum(count_requested(pod, resource) for pod in pods if _has_node(pod))


def list_holders(pods: Iterable[Mapping[str, Any]], resource: str) -> list[str]:
    """Return ``namespace/name`` of the pods with a node that request the resource, sorted."""
    return sorted(get_full_name(pod) for pod in pods if _has_node(pod) and count_requested(pod, resource))


def list_resources(pod: Mapping[str, Any]) -> set[str]:
    """Return the names of all resources in the limits and requests of the pod's containers, also those with the amount 0."""
    spec = pod.get("spec") or {}
    names: set[str] = set()
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or []:
            resources = container.get("resources") or {}
            names.update(resources.get("limits") or {}, resources.get("requests") or {})
    return names


def list_requested_resources(pod: Mapping[str, Any]) -> set[str]:
    """Return the names of the resources of which the pod requests more than 0."""
    return {name for name in list_resources(pod) if sum_requests(pod, name) > 0}


def _has_node(pod: Mapping[str, Any]) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def _request_of(container: Mapping[str, Any], resource: str) -> Amount:
    """Return what the container requests; without a request it is the limit, which is the API server's default."""
    resources = container.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return _parse(requests[resource] if resource in requests else limits.get(resource))


def _parse(quantity: Any) -> Amount:
    """Return the amount of a quantity; 0 if it is missing or is not a quantity."""
    text = str(quantity if quantity is not None else "0")
    if text.isdigit() and text.isascii() and len(text) < 20:
        return int(text)
    try:
        return parse_quantity(text)
    except ValueError:
        return 0
