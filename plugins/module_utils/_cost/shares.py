# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of a GPU a unit of a resource is: a whole one, a replica, a MIG slice, a percent, or a GiB of memory."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Tuple

from .._allocation import names
from .._allocation.allocation import guess_unit
from .._allocation.extract import NodeShare, PodShare, extract_node
from .._allocation.resources import COUNT_LABEL, MAX_GPUS
from .._kubernetes.gpu_labels import MIG_RESOURCE, format_label_value
from .._kubernetes.labels.selectors import PRODUCT_LABELS
from .._kubernetes.objects import get_labels, parse_units
from .._sharing.catalogue import OWN_PLUGIN, SLICES
from .._vendors import SERVED, WHOLE_RESOURCES
from .integrate import UNKNOWN, Held, State

PRODUCT_LABEL = "nvidia.com/gpu.product"
MIB_PER_GIB = 1024
#: GPUs that MIG divides into fewer compute slices than MOST_SLICES. Source: NVIDIA MIG User Guide, supported profiles.
FEWER_SLICES = {r"\bA30\b": 4, r"\bRTX-PRO-6000\b": 4}
MOST_SLICES = 7

# What NVIDIA's GPU feature discovery appends to the product of a GPU with slices or replicas.
_PRODUCT = re.compile(r"(?P<product>.*?)(?:-MIG-(?P<profile>[1-9][a-z0-9.+-]*gb[a-z0-9.+]*))?(?:-SHARED)?")
_SLICES = re.compile(r"(?:(?P<compute>[1-9])c\.)?(?P<slices>[1-9])g\.")
_UNITS_PER_GPU = {each.name: each.units_per_gpu for row in OWN_PLUGIN for each in row.shared if each.units_per_gpu}

#: The GPUs of a unit, None if not known, and what the units are.
Share = Tuple["float | None", str]


class NodeGpus(NamedTuple):
    """A node with GPUs: their product, their number, what a unit of each of its resources is, and its values for memory."""

    name: str
    product: str
    gpus: float
    shares: Mapping[str, Share]
    memory: NodeShare


def name_product(text: str) -> str:
    """Return a product as node labels have it, without what GPU feature discovery appends to it; UNKNOWN for none."""
    return _split_product(text)[0] or UNKNOWN


def _split_product(text: str) -> tuple[str, str]:
    found = _PRODUCT.fullmatch(format_label_value(text))
    return (found.group("product"), found.group("profile") or "") if found else ("", "")


def _find_product(labels: Mapping[str, str]) -> str:
    """Return the product of a node's GPUs; that of NVIDIA's if it has GPUs of several vendors."""
    return next((labels[name] for names in PRODUCT_LABELS.values() for name in names if labels.get(name)), "")


def compute_slice(profile: str, product: str) -> float | None:
    """Return the part of a GPU's compute slices that a MIG profile such as ``3g.20gb`` has; None for another text."""
    found = _SLICES.match(profile)
    if not found:
        return None
    most = next((count for pattern, count in FEWER_SLICES.items() if re.search(pattern, product)), MOST_SLICES)
    return min(1.0, int(found.group("compute") or found.group("slices")) / most)


def extract_gpus(node: Mapping[str, Any]) -> NodeGpus | None:
    """Return what a node's GPUs are; None for a node without GPUs."""
    labels, memory = get_labels(node), extract_node(node)
    product, profile = _split_product(_find_product(labels))
    capacity = (node.get("status") or {}).get("capacity") or {}
    labelled = parse_units(labels.get(COUNT_LABEL))
    gpus, shares = float(labelled if labelled <= MAX_GPUS and not profile else 0), {}
    offered = 0.0
    for offer in memory.offers:
        units = max(offer.allocatable, parse_units(capacity.get(offer.resource)))
        share = _compute_share(offer.resource, product, profile)
        if share is None and offer.gpus:
            share = min(1.0, offer.gpus / units)
        elif share is None and offer.resource in WHOLE_RESOURCES:
            share = 1.0
        shares[offer.resource] = (share, offer.unit)
        offered += (share or 0.0) * units
    mem = max(memory.gpu_mem, memory.gpu_mem_capacity)
    count = max(memory.gpu_count, memory.gpu_count_capacity)
    if mem:
        shares[names.GPU_MEM] = (count / mem if count else None, "")
    gpus = max(gpus, offered, float(count if mem else 0))
    return NodeGpus(memory.name, product or UNKNOWN, gpus, shares, memory) if shares or gpus else None


def _compute_share(resource: str, product: str, profile: str) -> float | None:
    """Return the part of a GPU that a unit is by its resource and the product's profile alone; None if these do not tell."""
    if resource in _UNITS_PER_GPU:
        return 1 / _UNITS_PER_GPU[resource]
    if fnmatchcase(resource, SLICES):
        return compute_slice(resource[len(MIG_RESOURCE) :], product) if not resource.endswith(".shared") else None
    return compute_slice(profile, product) if profile and resource == SERVED.resource else None


class Shares:
    """Converts what pods request to GPUs, and notes what it had to assume. *unit* is that of memory, guessed if it is empty."""

    def __init__(self, nodes: Iterable[NodeGpus], unit: str = "") -> None:
        self.nodes = {node.name: node for node in nodes}
        self.unit = unit or guess_unit(node.memory for _name, node in sorted(self.nodes.items())) or "GiB"
        self._gone: set[str] = set()
        self._uncounted: set[str] = set()

    def hold(self, namespace: str, node: str, resource: str, units: float) -> Held | None:
        """Return what the units are; None if their part of a GPU is not known, which a note reports."""
        share, unit = self._find(node, resource)
        if share is None:
            self._uncounted.add(f"{resource} on {node}")
            return None
        if resource == names.GPU_MEM:
            return Held(
                namespace, node, resource, "GiB", units / (MIB_PER_GIB if self.unit == "MiB" else 1), units * share
            )
        return Held(namespace, node, resource, unit, units, units * share)

    def _find(self, node: str, resource: str) -> Share:
        known = self.nodes.get(node)
        if known and resource in known.shares:
            return known.shares[resource]
        if not known:
            self._gone.add(node)
        share = _compute_share(resource, known.product if known else "", "")
        if share is None and resource in WHOLE_RESOURCES:
            share = 1.0
        return share, "percent" if resource in _UNITS_PER_GPU else "slices" if fnmatchcase(resource, SLICES) else "GPUs"

    def list_notes(self) -> Iterator[str]:
        """Yield a sentence for each assumption."""
        if self._gone:
            yield (
                f"Not in the cluster any more: {_join(self._gone)}. Each {SERVED.resource} of their pods counts as a whole GPU, and slices as those of"
                f" a GPU with {MOST_SLICES}."
            )
        if self._uncounted:
            yield (
                f"In no sum, because the part of a GPU is not known: {_join(self._uncounted)}. The node reports no number of GPUs for it; check"
                f" {names.GPU_COUNT} and the label {COUNT_LABEL}."
            )
        unnamed = {name for name, node in self.nodes.items() if node.product == UNKNOWN}
        if unnamed:
            yield f"Without the label {PRODUCT_LABEL}: {_join(unnamed)}. Run the playbook label_gpu_nodes, so that prices apply."


def _join(texts: Iterable[str], most: int = 5) -> str:
    listed = sorted(texts)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" if len(listed) > most else "")


def build_state(shares: Shares, pods: Iterable[PodShare]) -> State:
    """Return the state that nodes and pods of the API have now, without load."""
    sums: dict[tuple[str, str, str], float] = {}
    for pod in pods:
        amounts = {holding.resource: holding.amount for holding in pod.holdings}
        if pod.request > 0:
            amounts[names.GPU_MEM] = pod.request
        for resource, amount in amounts.items():
            key = (pod.namespace, pod.node, resource)
            sums[key] = sums.get(key, 0) + amount
    held = [shares.hold(*key, units) for key, units in sorted(sums.items())]
    gpus = {name: {node.product: node.gpus} for name, node in sorted(shares.nodes.items())}
    return State(gpus, [row for row in held if row is not None])
