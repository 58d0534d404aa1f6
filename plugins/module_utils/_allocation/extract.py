# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Extracts from nodes and pods the values that the allocation depends on, a thirtieth of what the API server sends.

The objects come from the API server, or from what ``kubectl get -o json`` has saved.
Annotations are untrusted input: those that cannot be read count as missing.
"""

from __future__ import annotations

import json
import re
from sys import intern
from typing import Any, Iterable, Iterator, Mapping, NamedTuple

from .._kube_error import shorten
from .._kubernetes.objects import FINISHED_PHASES, parse_units
from . import names
from .resources import MAX_GPUS, PENDING, Holding, Offer, extract_holdings, extract_offers, is_nvidia

# Fits into 64 bits.
MAX_AMOUNT = 10**18
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# Values of NVIDIA_VISIBLE_DEVICES that hide all GPUs, which does no harm in a container that requests none.
_HIDING = frozenset({"", "none", "void"})


class NodeShare(NamedTuple):
    """A node: gpu-mem in whole units, and GPUs, each allocatable and as capacity; address is empty if it has none.

    A count above MAX_GPUS is 0, and the largest such count is ``implausible_count``. ``offers`` are the resources of other device plugins.
    """

    name: str
    address: str
    gpu_mem: int
    gpu_count: int
    gpu_mem_capacity: int
    gpu_count_capacity: int
    offers: tuple[Offer, ...]
    implausible_count: int = 0

    @property
    def nvidia(self) -> list[str]:
        """Return the resources of NVIDIA's device plugin with allocatable units."""
        return [offer.resource for offer in self.offers if offer.allocatable and is_nvidia(offer.resource)]


class PodShare(NamedTuple):
    """An unfinished pod that requests GPUs on a node.

    ``request`` is the sum of its limits of gpu-mem, ``amounts`` the allocated amount by GPU index, with PENDING for an unknown GPU.
    ``annotated`` is the request in its annotation, or None. ``overriding`` are containers that select GPUs themselves. Without gpu-mem, these are empty.
    ``holdings`` are what it requests of other device plugins.
    """

    node: str
    namespace: str
    name: str
    phase: str
    terminating: bool
    request: int
    amounts: tuple[tuple[int, int], ...]
    annotated: str | None
    unassigned: bool
    overriding: tuple[str, ...]
    holdings: tuple[Holding, ...] = ()


def extract_node(node: Mapping[str, Any]) -> NodeShare:
    """Return the values of a node."""
    status = node.get("status") or {}
    offered, capacity = status.get("allocatable") or {}, status.get("capacity") or {}
    counts = [parse_units(each.get(names.GPU_COUNT)) for each in (offered, capacity)]
    gpu_count, gpu_count_capacity = (count if count <= MAX_GPUS else 0 for count in counts)
    return NodeShare(
        name=str((node.get("metadata") or {}).get("name") or ""),
        address=_find_address(status),
        gpu_mem=parse_units(offered.get(names.GPU_MEM)),
        gpu_count=gpu_count,
        gpu_mem_capacity=parse_units(capacity.get(names.GPU_MEM)),
        gpu_count_capacity=gpu_count_capacity,
        offers=extract_offers(node),
        implausible_count=max((count for count in counts if count > MAX_GPUS), default=0),
    )


def _find_address(status: Mapping[str, Any]) -> str:
    for address in status.get("addresses") or []:
        if address.get("type") == "InternalIP":
            return shorten(address.get("address"))
    return ""


def extract_pod(pod: Mapping[str, Any]) -> PodShare | None:
    """Return the values of a pod; None for one that holds no GPU."""
    spec, phase = pod.get("spec") or {}, str((pod.get("status") or {}).get("phase") or "")
    if not spec.get("nodeName") or phase in FINISHED_PHASES:
        return None
    # As the extender counts: the limits of the containers, without init containers and overhead (kube-scheduler's rule is in requests.py).
    request = sum(map(_get_limit, spec.get("containers") or []))
    holdings = extract_holdings(pod)
    if request <= 0 and not holdings:
        return None
    metadata = pod.get("metadata") or {}
    annotations = (metadata.get("annotations") or {}) if request > 0 else {}
    annotated = annotations.get(names.REQUEST)
    return PodShare(
        # Many pods share these values.
        node=intern(str(spec["nodeName"])),
        namespace=intern(str(metadata.get("namespace") or "")),
        name=str(metadata.get("name") or ""),
        phase=intern(phase),
        terminating=bool(metadata.get("deletionTimestamp")),
        request=request,
        amounts=_read_amounts(annotations, request) if request > 0 else (),
        annotated=None if annotated is None else intern(str(annotated)),
        unassigned=annotations.get(names.ASSIGNED) == "false",
        overriding=tuple(_find_overriding(spec)) if request > 0 else (),
        holdings=holdings,
    )


def _get_limit(container: Mapping[str, Any]) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return parse_units(limits[names.GPU_MEM]) if names.GPU_MEM in limits else 0


def _find_overriding(spec: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or []:
            values = [
                _get_value(each) for each in container.get("env") or [] if each.get("name") == names.VISIBLE_DEVICES
            ]
            if values and (_get_limit(container) or values[-1] not in _HIDING):
                yield intern(str(container.get("name") or ""))


def _get_value(variable: Mapping[str, Any]) -> str | None:
    """Return the value of a container's variable; None if it has a source (valueFrom)."""
    return None if variable.get("valueFrom") else str(variable.get("value") or "")


def _read_amounts(annotations: Mapping[str, Any], request: int) -> tuple[tuple[int, int], ...]:
    """Return (index, amount) pairs by index: of the annotated allocation, else the request on the annotated GPU."""
    allocation = annotations.get(names.ALLOCATION)
    found = _parse_allocation(allocation) if allocation else {}
    if found:
        return tuple(sorted(found.items()))
    index = parse_whole(annotations.get(names.INDEX))
    return ((PENDING if index is None else index, request),)


def _parse_allocation(text: Any) -> dict[int, int]:
    """Return amounts by GPU index; empty if the text is invalid."""
    try:
        containers = json.loads(text)
        found: dict[int, int] = {}
        for container, gpus in containers.items():
            if parse_whole(container) is None:
                return {}
            for gpu, amount in (gpus or {}).items():
                index = parse_whole(gpu)
                if index is None or not _is_amount(amount):
                    return {}
                found[index] = found.get(index, 0) + amount
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}
    return found


def _is_amount(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_AMOUNT


def parse_whole(text: Any) -> int | None:
    """Return a whole number in an annotation; None for anything else."""
    return int(text) if isinstance(text, str) and _WHOLE.fullmatch(text) else None


# -- what ``kubectl get -o json`` has saved, in one or several lists, as text or as data


class DumpError(Exception):
    """The input is not nodes and pods; the text is one sentence with cause and remedy."""


def read_dump(*given: Any) -> tuple[list[NodeShare], list[PodShare]]:
    """Return the nodes and the pods of lists of nodes, of pods, or of both and more. Raises DumpError.

    Each is JSON text, a list as the API server sends it, or a sequence of objects or of further lists. Duplicates count once.
    """
    nodes: dict[str, NodeShare] = {}
    pods: dict[tuple[str, str], PodShare] = {}
    for kind, item in _list_objects(given, ""):
        if kind == "Node":
            node = extract_node(item)
            nodes[node.name] = node
        elif kind == "Pod":
            pod = extract_pod(item)
            if pod is not None:
                pods[(pod.namespace, pod.name)] = pod
    if not nodes:
        raise DumpError("The input has no node; save nodes and pods by: kubectl get nodes,pods -A -o json.")
    return list(nodes.values()), list(pods.values())


def _list_objects(given: Any, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (kind, object); *kind* is that of items without a kind."""
    if isinstance(given, str):
        yield from _list_objects(_parse_json(given), kind)
    elif isinstance(given, Mapping):
        item_kind = str(given.get("kind") or kind)
        if item_kind.endswith("List"):
            yield from _list_items(given.get("items") or [], item_kind[: -len("List")])
        elif item_kind:
            yield item_kind, given
        else:
            raise DumpError(
                "The input has an object without a kind; pass a whole list, as kubectl get -o json writes it."
            )
    elif isinstance(given, Iterable):
        yield from _list_items(given, kind)
    else:
        raise DumpError(
            f"Lists of nodes and pods were expected, not {given!r:.40}; pass the output of kubectl get -o json."
        )


def _list_items(items: Iterable[Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for item in items:
        yield from _list_objects(item, kind)


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DumpError(f"The input is not JSON ({error}); save it by: kubectl get nodes,pods -A -o json.") from None
