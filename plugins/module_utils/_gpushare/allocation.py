# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the allocation as ``kubectl inspect gpushare`` does; where its two views differ, as the detailed one.

What that tool cannot know either stays so: the extender counts what it has annotated and forgets pods that are terminating, while
this counts limits and every pod that has not finished. ``findings.py`` tells where both differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Iterable, NamedTuple, Sequence

from . import findings
from .extract import PENDING, NodeShare, PodShare

# More units than this on one GPU are taken for MiB.
MAX_GIB = 100
UNITS = ("GiB", "MiB")

# {nodes: [node], cluster: {allocated, total, percent}, unit, findings: [{code, object, message}]} where a node is
# {name, address, gpu_count, gpus: [{index, total, allocated}], pending, allocated, total, percent, pods: [pod]} and a pod is
# {namespace, name, phase, terminating, gpus: [{index, allocated}], pending, allocated}.
Allocation = Dict[str, Any]


class UnknownNode(Exception):
    """There is no node of the name asked for; the text is one sentence with cause and remedy."""


@dataclass(frozen=True)
class Device:
    """A GPU of a node. One beyond the node's number is there only because a pod says so."""

    index: int
    total: int
    allocated: int


class Shares(NamedTuple):
    """A node with its pods and GPUs."""

    node: NodeShare
    pods: Sequence[PodShare]
    devices: tuple[Device, ...]
    pending: int


def allocate(
    nodes: Iterable[NodeShare], pods: Iterable[PodShare], node: str = "", unit: str = "", list_pods: bool = True
) -> Allocation:
    """Return the allocation of the nodes that offer gpu-mem, or of the one named. Raises UnknownNode.

    ``unit`` is what one gpu-mem is; empty guesses, which takes a GPU of more than 100 GiB for one in MiB.
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
    every = [_build_shares(each, sorted_pods[each.name]) for each in known]
    shown = [shares for shares in every if shares.node.gpu_mem > 0]
    told_unit = unit or guess_unit(shares.node for shares in shown)
    rows = [_build_row(shares, list_pods) for shares in shown]
    return {
        "nodes": rows,
        "cluster": _build_sum(sum(row["allocated"] for row in rows), sum(row["total"] for row in rows)),
        "unit": told_unit,
        "findings": [found for shares in every for found in findings.find_in_node(shares, told_unit)],
    }


def guess_unit(nodes: Iterable[NodeShare]) -> str:
    """Return the unit as ``kubectl inspect gpushare`` guesses it from the first node that has GPUs; empty without one."""
    for node in nodes:
        if node.gpu_count > 0:
            return "MiB" if get_gpu_total(node) > MAX_GIB else "GiB"
    return ""


def get_gpu_total(node: NodeShare) -> int:
    """Return the gpu-mem of each GPU: gpushare takes all GPUs of a node for equal."""
    return node.gpu_mem // node.gpu_count if node.gpu_count > 0 else 0


def _build_shares(node: NodeShare, pods: list[PodShare]) -> Shares:
    used = dict.fromkeys(range(node.gpu_count if node.gpu_mem > 0 else 0), 0)
    for pod in pods:
        for index, amount in pod.amounts:
            used[index] = used.get(index, 0) + amount
    pending, total = used.pop(PENDING, 0), get_gpu_total(node)
    pods.sort(key=lambda pod: (pod.namespace, pod.name))
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
        row["pods"] = [_build_pod(pod) for pod in shares.pods]
    return row


def _build_pod(pod: PodShare) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "phase": pod.phase,
        "terminating": pod.terminating,
        "gpus": [{"index": index, "allocated": amount} for index, amount in pod.amounts if index != PENDING],
        "pending": sum(amount for index, amount in pod.amounts if index == PENDING),
        "allocated": sum(amount for _index, amount in pod.amounts),
    }


def _build_sum(allocated: int, total: int) -> dict[str, int]:
    return {"allocated": allocated, "total": total, "percent": compute_percent(allocated, total)}


def compute_percent(part: int, whole: int) -> int:
    """Return the whole percents that are full; 0 of nothing."""
    return part * 100 // whole if whole > 0 else 0
