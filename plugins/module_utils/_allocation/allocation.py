# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the allocation of gpushare as the detailed view of ``kubectl inspect gpushare`` does, and finds what is wrong with the sharing.

It counts the limits of every unfinished pod. The extender counts its annotations, without terminating pods; the findings report the
differences. What other device plugins offer is counted by kube-scheduler's rule, see resources.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, NamedTuple, Sequence

from . import names
from .extract import NodeShare, PodShare, parse_whole
from .resources import MAX_GPUS, PENDING, Holding, Offer, count_by_gpu

# More units than this on one GPU count as MiB.
MAX_GIB = 100
UNITS = ("GiB", "MiB")

# {nodes: [node], cluster: sum, unit, findings: [{code, object, message}], resources: [resource], totals: [{resource, sum}]} where a sum is
# {allocated, total, percent}, a node is {name, address, gpu_count, gpus: [{index, total, allocated}], pending, sum, pods: [pod]}, a pod is
# {namespace, name, phase, terminating, gpus: [{index, allocated}], pending, allocated}, and a resource is a node with the fields resource and unit.
# Nodes, cluster, unit and findings are of gpushare; the others are of all other device plugins.
Allocation = Dict[str, Any]

# {code, object: a node's name or a pod's namespace/name, message}
Finding = Dict[str, str]
MAX_VALUE = 40


class UnknownNode(Exception):
    """The requested node does not exist; the text is one sentence with cause and remedy."""


def allocate(
    nodes: Iterable[NodeShare], pods: Iterable[PodShare], node: str = "", unit: str = "", list_pods: bool = True
) -> Allocation:
    """Return the allocation of the nodes with GPUs, or of the named one. Raises UnknownNode.

    ``unit`` is the unit of gpu-mem; if it is empty, it is guessed, and a GPU of more than 100 GiB counts as one in MiB.
    """
    known = sorted((each for each in nodes if node in ("", each.name)), key=lambda each: each.name)
    if node and not known:
        raise UnknownNode(
            f"There is no node {node} in the cluster; correct the name, or leave it out to see all nodes."
        )
    sorted_pods: dict[str, list[PodShare]] = {each.name: [] for each in known}
    for pod in pods:
        if pod.node in sorted_pods:
            sorted_pods[pod.node].append(pod)
    for on_node in sorted_pods.values():
        on_node.sort(key=lambda pod: (pod.namespace, pod.name))
    every = [_build_shares(each, [pod for pod in sorted_pods[each.name] if pod.request > 0]) for each in known]
    resources = [row for each in known for row in _build_resources(each, sorted_pods[each.name], list_pods)]
    shown = [shares for shares in every if shares.node.gpu_mem > 0]
    used_unit = unit or guess_unit(shares.node for shares in shown)
    rows = [_build_row(shares, list_pods) for shares in shown]
    return {
        "nodes": rows,
        "cluster": _build_sum(sum(row["allocated"] for row in rows), sum(row["total"] for row in rows)),
        "unit": used_unit,
        "findings": [found for shares in every for found in find_in_node(shares, used_unit)],
        "resources": resources,
        "totals": _sum_resources(resources),
    }


def guess_unit(nodes: Iterable[NodeShare]) -> str:
    """Return the unit as ``kubectl inspect gpushare`` guesses it from the first node that has GPUs; empty without one."""
    for node in nodes:
        if node.gpu_count > 0:
            return "MiB" if get_gpu_total(node) > MAX_GIB else "GiB"
    return ""


def get_gpu_total(node: NodeShare) -> int:
    """Return the gpu-mem of each GPU: gpushare treats all GPUs of a node as equal."""
    return node.gpu_mem // node.gpu_count if node.gpu_count > 0 else 0


def _build_shares(node: NodeShare, pods: list[PodShare]) -> Shares:
    used = dict.fromkeys(range(node.gpu_count if node.gpu_mem > 0 else 0), 0)
    for pod in pods:
        for index, amount in pod.amounts:
            used[index] = used.get(index, 0) + amount
    pending, total = used.pop(PENDING, 0), get_gpu_total(node)
    return Shares(node, pods, tuple(Device(index, total, used[index]) for index in sorted(used)), pending)


def _build_row(shares: Shares, list_pods: bool) -> dict[str, Any]:
    node = shares.node
    allocated = sum(device.allocated for device in shares.devices) + shares.pending
    row = {
        "name": node.name,
        "address": node.address,
        "gpu_count": node.gpu_count,
        "gpus": [dict(vars(device)) for device in shares.devices],
        "pending": shares.pending,
        **_build_sum(allocated, node.gpu_mem),
    }
    if list_pods:
        row["pods"] = [_build_pod(pod, pod.amounts) for pod in shares.pods]
    return row


def _build_resources(node: NodeShare, pods: Sequence[PodShare], list_pods: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each resource that the node offers or pods on it hold, by name."""
    holders: dict[str, list[tuple[PodShare, Holding]]] = {offer.resource: [] for offer in node.offers}
    for pod in pods:
        for holding in pod.holdings:
            holders.setdefault(holding.resource, []).append((pod, holding))
    offers = {offer.resource: offer for offer in node.offers}
    for name in sorted(holders):
        # Pods can hold what the node has no more.
        offer, holdings = offers.get(name, Offer(name, 0, "units", 0)), [holding for _pod, holding in holders[name]]
        gpus, pending = count_by_gpu(offer, holdings)
        row = {
            "name": node.name,
            "address": node.address,
            "resource": name,
            "unit": offer.unit,
            "gpu_count": offer.gpus,
            "gpus": gpus,
            "pending": pending,
            **_build_sum(sum(holding.amount for holding in holdings), offer.allocatable),
        }
        if list_pods:
            row["pods"] = [_build_pod(pod, holding.amounts, holding.amount) for pod, holding in holders[name]]
        yield row


def _sum_resources(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    sums: dict[str, list[int]] = {}
    for row in rows:
        found = sums.setdefault(row["resource"], [0, 0])
        found[0] += row["allocated"]
        found[1] += row["total"]
    return [{"resource": name, **_build_sum(*sums[name])} for name in sorted(sums)]


def _build_pod(pod: PodShare, amounts: Iterable[tuple[int, int]], allocated: int | None = None) -> dict[str, Any]:
    """Return a pod; *allocated* is the sum of *amounts* by GPU, unless these are unknown."""
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "phase": pod.phase,
        "terminating": pod.terminating,
        "gpus": [{"index": index, "allocated": amount} for index, amount in amounts if index != PENDING],
        "pending": sum(amount for index, amount in amounts if index == PENDING),
        "allocated": sum(amount for _index, amount in amounts) if allocated is None else allocated,
    }


def _build_sum(allocated: int, total: int) -> dict[str, int]:
    return {"allocated": allocated, "total": total, "percent": compute_percent(allocated, total)}


def compute_percent(part: int, whole: int) -> int:
    """Return the percentage of *whole*, rounded down; 0 if it is 0."""
    return part * 100 // whole if whole > 0 else 0


# -- nodes with their pods and GPUs, as the findings read them


@dataclass(frozen=True)
class Device:
    """A GPU of a node. A pod's annotation can name one beyond the node's number."""

    index: int
    total: int
    allocated: int


class Shares(NamedTuple):
    """A node with its pods and GPUs."""

    node: NodeShare
    pods: Sequence[PodShare]
    devices: tuple[Device, ...]
    pending: int


# -- findings: a table of checks, each finding is one sentence with a remedy


def _check_leftover(node: NodeShare) -> Iterator[str]:
    count = max(node.gpu_count, node.gpu_count_capacity)
    if count <= 0 or node.gpu_mem > 0:
        return
    if node.gpu_mem_capacity > 0:
        yield (
            f"has {names.GPU_COUNT} {count} and none of its {names.GPU_MEM} {node.gpu_mem_capacity} allocatable; check whether "
            "gpushare's device plugin runs there, and what its log says about the GPUs"
        )
    else:
        yield (
            f"still has {names.GPU_COUNT} {count} without {names.GPU_MEM}; if gpushare's device plugin was removed, remove "
            "the count from the node's status, else read its log: it waits if NVML fails, and registers nothing if the memory "
            "in MiB makes too long a list"
        )


def _check_count(node: NodeShare) -> Iterator[str]:
    if node.gpu_mem > 0 and node.gpu_count <= 0 and not node.implausible_count:
        yield (
            f"has {names.GPU_MEM} {node.gpu_mem} without {names.GPU_COUNT}, so that its single GPUs are unknown; "
            "restart gpushare's device plugin there, then its scheduler extender"
        )


def _check_implausible(node: NodeShare) -> Iterator[str]:
    if node.implausible_count:
        yield (
            f"reports {names.GPU_COUNT} {node.implausible_count}, more than the {MAX_GPUS} GPUs that a node can have here, so that its "
            "single GPUs are unknown; restart gpushare's device plugin there, and find out who else writes the node's status"
        )


def _check_other_plugin(node: NodeShare) -> Iterator[str]:
    if node.gpu_mem > 0 and node.nvidia:
        yield (
            f"has the same GPUs as {names.GPU_MEM} and as {', '.join(node.nvidia)}, so that they are allocated twice; remove one "
            "of both device plugins from the node"
        )


def _check_pending(pod: PodShare) -> Iterator[str]:
    amount = sum(amount for index, amount in pod.amounts if index == PENDING)
    if pod.phase == "Running" and amount > 0:
        yield (
            f"runs with {names.GPU_MEM} {amount} on no known GPU, so that gpushare's extender has not bound it; check that "
            "kube-scheduler has the extender, and restart the pod"
        )


def _check_assigned(pod: PodShare) -> Iterator[str]:
    if pod.phase == "Running" and pod.unassigned:
        yield (
            f"runs although gpushare's device plugin has not assigned it ({names.ASSIGNED} is false), so that it may use another "
            "GPU than its own; read the plugin's log, and restart the pod"
        )


def _check_request(pod: PodShare) -> Iterator[str]:
    if pod.annotated is not None and parse_whole(pod.annotated) != pod.request:
        yield (
            f"requests {names.GPU_MEM} {pod.request}, and gpushare's extender counts {names.REQUEST} "
            f"{pod.annotated[:MAX_VALUE]!r}; restart the pod"
        )


def _check_override(pod: PodShare) -> Iterator[str]:
    if pod.overriding:
        yield (
            f"sets {names.VISIBLE_DEVICES} in container {', '.join(pod.overriding)}, which overrides its allocated GPU; "
            "remove the variable from the pod and its image's wrappers"
        )


NODE_CHECKS: dict[str, Callable[[NodeShare], Iterator[str]]] = {
    "leftover_gpu_count": _check_leftover,
    "gpu_mem_without_count": _check_count,
    "gpu_count_implausible": _check_implausible,
    "both_plugins": _check_other_plugin,
}
POD_CHECKS: dict[str, Callable[[PodShare], Iterator[str]]] = {
    "pending_running": _check_pending,
    "unassigned_running": _check_assigned,
    "pod_mem_mismatch": _check_request,
    "visible_devices_env": _check_override,
}


def _check_overcommitted(shares: Shares, unit: str) -> Iterator[str]:
    # GPUs beyond the node's number, and nodes without gpu-mem, have findings of their own.
    real = range(shares.node.gpu_count if shares.node.gpu_mem > 0 else 0)
    for device in shares.devices:
        # The memory of an unhealthy GPU is in the capacity but not allocatable; the extender allocates the capacity.
        whole_gpu = max(device.total, shares.node.gpu_mem_capacity // max(shares.node.gpu_count, 1))
        if device.index not in real or device.allocated <= whole_gpu:
            continue
        leaving = sum(
            amount for pod in shares.pods if pod.terminating for index, amount in pod.amounts if index == device.index
        )
        text = f"has {device.allocated} of {whole_gpu} {unit} of GPU {device.index} allocated"
        if leaving:
            yield (
                f"{text}, {leaving} of them to pods that are terminating, which gpushare's extender no longer counts; wait until "
                "they have ended, and check again"
            )
        else:
            yield f"{text}; move pods to other GPUs, and restart gpushare's extender if it still allocates that GPU"


def _check_index(pod: PodShare, shares: Shares) -> Iterator[str]:
    count = shares.node.gpu_count
    beyond = [str(index) for index, _amount in pod.amounts if index != PENDING and index not in range(count)]
    if beyond and shares.node.gpu_mem > 0:
        yield (
            f"is on GPU {', '.join(beyond[:5])} of node {shares.node.name}, which has {count or 'no number of GPUs'}; "
            f"{'restart the pod' if count else 'correct the count of the node first'}"
        )


def _build_finding(code: str, subject: str, kind: str, text: str) -> Finding:
    return {"code": code, "object": subject, "message": f"{kind} {subject} {text}."}


def find_in_node(shares: Shares, unit: str) -> Iterator[Finding]:
    """Return the findings on a node, then on its pods."""
    name = shares.node.name
    for code, check in NODE_CHECKS.items():
        for text in check(shares.node):
            yield _build_finding(code, name, "Node", text)
    for text in _check_overcommitted(shares, unit):
        yield _build_finding("gpu_overcommitted", name, "Node", text)
    for pod in shares.pods:
        subject = f"{pod.namespace}/{pod.name}"
        for text in _check_index(pod, shares):
            yield _build_finding("index_out_of_range", subject, "Pod", text)
        for code, of_pod in POD_CHECKS.items():
            for text in of_pod(pod):
                yield _build_finding(code, subject, "Pod", text)
