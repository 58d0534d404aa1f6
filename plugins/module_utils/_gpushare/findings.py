# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what is wrong with the sharing of GPUs on a node, by a table of checks; each finding is one sentence with a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, Iterator

from . import names
from .extract import PENDING, parse_whole

if TYPE_CHECKING:
    from .extract import NodeShare, PodShare
    from .shares import Shares

# {code, object: a node's name or a pod's namespace/name, message}
Finding = Dict[str, str]
MAX_VALUE = 40


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
    if node.gpu_mem > 0 and node.gpu_count <= 0:
        yield (
            f"has {names.GPU_MEM} {node.gpu_mem} without {names.GPU_COUNT}, so that its single GPUs are unknown; "
            "restart gpushare's device plugin there, then its scheduler extender"
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
