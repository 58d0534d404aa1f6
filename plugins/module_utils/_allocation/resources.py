# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The allocation of other resources than GPU memory, as device plugins offer them: whole GPUs, replicas, MIG slices and percents.

Pods request whole units of a resource, and kube-scheduler's rule counts them. The API does not report on which GPU a unit of NVIDIA's device plugin is;
the extenders of other plugins write it into annotations of pods, which are untrusted input.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from sys import intern
from typing import Any, Iterable, Mapping, NamedTuple

from .._kubernetes.objects import parse_units
from .._kubernetes.requests import count_requested, list_resources
from .._sharing.catalogue import NVIDIA_RESOURCES, OWN_PLUGIN, SLICES, SharedResource, gpu_resources
from .._sharing.plugin_config import LABEL, strategy_of_name
from .._vendors import OTHERS, SERVED, vendor_of
from . import names

# The index of amounts without a known GPU.
PENDING = -1
# A node with more GPUs than this has a wrong count: tables and lists have an entry for each GPU.
MAX_GPUS = 128
COUNT_LABEL = SERVED.count_label

_SHARED = {each.name: each for row in OWN_PLUGIN for each in row.shared}
_INDEXES = re.compile(r"[0-9]{1,9}(?:,[0-9]{1,9})*")


class Offer(NamedTuple):
    """A resource of a node, in whole units. ``unit`` names them: GPUs, replicas, slices, percent, or devices and units where it is not known.

    ``gpus`` is the number of GPUs that they are of; 0 if it is not known.
    """

    resource: str
    allocatable: int
    unit: str
    gpus: int


class Holding(NamedTuple):
    """What a pod requests of a resource, and the same by GPU index, with PENDING for an unknown GPU; empty if the API never reports it."""

    resource: str
    amount: int
    amounts: tuple[tuple[int, int], ...]


@lru_cache(maxsize=1024)
def is_listed(resource: str) -> bool:
    """Return whether pods request the resource for GPUs of any vendor, other than GPU memory."""
    return resource != names.GPU_MEM and bool(gpu_resources({resource: 1}))


def is_nvidia(resource: str) -> bool:
    """Return whether NVIDIA's device plugin offers the resource."""
    return any(fnmatchcase(resource, pattern) for pattern in NVIDIA_RESOURCES)


def extract_offers(node: Mapping[str, Any]) -> tuple[Offer, ...]:
    """Return what the node has of these resources, by name; without those that the kubelet only remembers, with 0."""
    status = node.get("status") or {}
    allocatable, capacity = status.get("allocatable") or {}, status.get("capacity") or {}
    found = {}
    for name in sorted({*allocatable, *capacity}):
        if is_listed(name):
            amounts = parse_units(allocatable.get(name)), parse_units(capacity.get(name))
            if any(amounts):
                found[name] = amounts
    sliced = any(fnmatchcase(name, SLICES) for name in found)
    labels = (node.get("metadata") or {}).get("labels") or {}
    return tuple(
        Offer(intern(name), allocatable, *_describe(name, max(allocatable, capacity), labels, sliced))
        for name, (allocatable, capacity) in found.items()
    )


def _describe(resource: str, units: int, labels: Mapping[str, Any], sliced: bool) -> tuple[str, int]:
    """Return what the units of a resource are, and of how many GPUs; ``sliced`` nodes have MIG slices beside whole GPUs."""
    vendor = vendor_of(resource)
    if vendor in OTHERS:
        gpus = _limit(parse_units(labels.get(vendor.count_label)))
        return "GPUs" if units <= gpus else "devices", gpus
    if not is_nvidia(resource):
        shared = _SHARED.get(resource)
        per_gpu = shared.units_per_gpu if shared else 0
        return "percent" if per_gpu == 100 else "units", _limit(units // per_gpu) if per_gpu else 0
    gpus = _limit(parse_units(labels.get(COUNT_LABEL)))
    return _name_unit(resource, units, gpus, str(labels.get(LABEL) or ""), sliced), 0 if sliced else gpus


def _name_unit(resource: str, units: int, gpus: int, config: str, sliced: bool) -> str:
    """Return what the units of NVIDIA's device plugin are. Without a configuration of the node's own, their number has to tell."""
    strategy = strategy_of_name(config)
    if resource.endswith(".shared") or (strategy and strategy.sharing_section):
        return "replicas"
    if fnmatchcase(resource, SLICES) or (strategy and strategy.mig and not sliced):
        return "slices"
    return "GPUs" if strategy or units <= gpus else "devices"


def _limit(gpus: int) -> int:
    return gpus if gpus <= MAX_GPUS else 0


def extract_holdings(pod: Mapping[str, Any]) -> tuple[Holding, ...]:
    """Return what an unfinished pod requests of these resources, by name."""
    found = []
    for name in sorted(filter(is_listed, list_resources(pod))):
        amount, shared = count_requested(pod, name), _SHARED.get(name)
        if amount:
            found.append(Holding(intern(name), amount, _read_amounts(pod, shared, amount) if shared else ()))
    return tuple(found)


def _read_amounts(pod: Mapping[str, Any], shared: SharedResource, amount: int) -> tuple[tuple[int, int], ...]:
    """Return (index, amount) pairs by index. Each container has an annotation with its GPU, or with several whole ones."""
    annotations = (pod.get("metadata") or {}).get("annotations") or {}
    found: dict[int, int] = {}
    for container in (pod.get("spec") or {}).get("containers") or []:
        limits = (container.get("resources") or {}).get("limits") or {}
        units = parse_units(limits.get(shared.name))
        indexes = _parse_indexes(annotations.get(shared.name_annotation(str(container.get("name") or ""))))
        for index in indexes if units else ():
            found[index] = found.get(index, 0) + units // len(indexes)
    rest = amount - sum(found.values())
    return tuple(sorted({**found, **({PENDING: rest} if rest > 0 else {})}.items()))


def _parse_indexes(text: Any) -> list[int]:
    if not isinstance(text, str) or not _INDEXES.fullmatch(text):
        return []
    indexes = sorted({int(index) for index in text.split(",")})
    return indexes if len(indexes) <= MAX_GPUS else []


def count_by_gpu(offer: Offer, holdings: Iterable[Holding]) -> tuple[list[dict[str, int]], int]:
    """Return the GPUs of a node as ``{index, total, allocated}``, empty if the API does not report them, and the amount without a known GPU."""
    shared = _SHARED.get(offer.resource)
    if not shared:
        return [], 0
    used = dict.fromkeys(range(offer.gpus), 0)
    for holding in holdings:
        for index, amount in holding.amounts:
            used[index] = used.get(index, 0) + amount
    pending = used.pop(PENDING, 0)
    return [
        {"index": index, "total": shared.units_per_gpu, "allocated": used[index]} for index in sorted(used)
    ], pending
