# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes the allocation as the detailed view of ``kubectl inspect gpushare`` does.

It counts the limits of every unfinished pod. The extender counts its annotations, without terminating pods; ``findings.py`` reports the
differences.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable

from . import findings
from .extract import PENDING, NodeShare, PodShare
from .shares import Device, Shares

# More units than this on one GPU count as MiB.
MAX_GIB = 100
UNITS = ("GiB", "MiB")

# {nodes: [node], cluster: {allocated, total, percent}, unit, findings: [{code, object, message}]} where a node is
# {name, address, gpu_count, gpus: [{index, total, allocated}], pending, allocated, total, percent, pods: [pod]} and a pod is
# {namespace, name, phase, terminating, gpus: [{index, allocated}], pending, allocated}.
Allocation = Dict[str, Any]


class UnknownNode(Exception):
    """The requested node does not exist; the text is one sentence with cause and remedy."""


def allocate(
    nodes: Iterable[NodeShare], pods: Iterable[PodShare], node: str = "", unit: str = "", list_pods: bool = True
) -> Allocation:
    """Return the allocation of the nodes with allocatable gpu-mem, or of the named one. Raises UnknownNode.

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
    every = [_build_shares(each, sorted_pods[each.name]) for each in known]
    shown = [shares for shares in every if shares.node.gpu_mem > 0]
    used_unit = unit or guess_unit(shares.node for shares in shown)
    rows = [_build_row(shares, list_pods) for shares in shown]
    return {
        "nodes": rows,
        "cluster": _build_sum(sum(row["allocated"] for row in rows), sum(row["total"] for row in rows)),
        "unit": used_unit,
        "findings": [found for shares in every for found in findings.find_in_node(shares, used_unit)],
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
    """Return the percentage of *whole*, rounded down; 0 if it is 0."""
    return part * 100 // whole if whole > 0 else 0
