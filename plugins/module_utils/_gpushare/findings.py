# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the sharing of GPUs on a node, as a table of pure checks; each finding is one sentence with a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Dict, Iterator

from . import names
from .extract import PENDING, parse_whole

if TYPE_CHECKING:
    from .allocation import Shares
    from .extract import NodeShare, PodShare

# {code, object: a node's name or a pod's namespace/name, message}
Finding = Dict[str, str]
MAX_VALUE = 40


def _check_leftover(node: NodeShare) -> Iterator[str]:
    count = max(node.gpu_count, node.gpu_count_capacity)
    if count <= 0 or node.gpu_mem > 0:
        return
    if node.gpu_mem_capacity > 0:
        yield (
            f"has {names.GPU_COUNT} {count} and none of its {names.GPU_MEM} {node.gpu_mem_capacity} allocatable; look whether "
            "gpushare's device plugin runs there, and at what it says of the GPUs"
        )
    else:
        yield (
            f"still has {names.GPU_COUNT} {count} without {names.GPU_MEM}; if gpushare's device plugin is gone for good, remove "
            "the count from the node's status, else read its log: it waits where NVML fails, and offers nothing where the memory "
            "in MiB makes too long a list"
        )


def _check_count(node: NodeShare) -> Iterator[str]:
    if node.gpu_mem > 0 and node.gpu_count <= 0:
        yield (
            f"offers {names.GPU_MEM} {node.gpu_mem} without {names.GPU_COUNT}, so that nothing is known of its single GPUs; "
            "restart gpushare's device plugin there, then its scheduler extender"
        )


def _check_other_plugin(node: NodeShare) -> Iterator[str]:
    if node.gpu_mem > 0 and node.nvidia:
        yield (
            f"offers the same GPUs as {names.GPU_MEM} and as {', '.join(node.nvidia)}, so that they are given away twice; take one "
            "of both device plugins off the node"
        )


def _check_pending(pod: PodShare) -> Iterator[str]:
    amount = sum(amount for index, amount in pod.amounts if index == PENDING)
    if pod.phase == "Running" and amount > 0:
        yield (
            f"runs with {names.GPU_MEM} {amount} on no known GPU, so that it was not gpushare's extender that bound it; check that "
            "kube-scheduler has the extender, and start the pod anew"
        )


def _check_assigned(pod: PodShare) -> Iterator[str]:
    if pod.phase == "Running" and pod.unassigned:
        yield (
            f"runs although gpushare's device plugin has not taken it up ({names.ASSIGNED} is false), so that it may use another "
            "GPU than it was given; look at the plugin's log, and start the pod anew"
        )


def _check_request(pod: PodShare) -> Iterator[str]:
    if pod.annotated is not None and parse_whole(pod.annotated) != pod.request:
        yield (
            f"asks for {names.GPU_MEM} {pod.request}, and gpushare's extender counts {names.REQUEST} "
            f"{pod.annotated[:MAX_VALUE]!r}; start the pod anew"
        )


def _check_override(pod: PodShare) -> Iterator[str]:
    if pod.overriding:
        yield (
            f"sets {names.VISIBLE_DEVICES} in container {', '.join(pod.overriding)}, which overrides the GPU that it was given; "
            "take the variable out of the pod and its image's wrappers"
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
    # One beyond is another finding, and of a node that offers nothing it is the leftover that counts.
    real = range(shares.node.gpu_count if shares.node.gpu_mem > 0 else 0)
    for device in shares.devices:
        # Of a GPU that is unhealthy the node has its memory still, and allocates it no more; the extender gives away what the node has.
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
                "they have ended, and look again"
            )
        else:
            yield f"{text}; move pods off that GPU, and restart gpushare's extender if it goes on giving it away"


def _check_index(pod: PodShare, shares: Shares) -> Iterator[str]:
    count = shares.node.gpu_count
    beyond = [str(index) for index, _amount in pod.amounts if index != PENDING and index not in range(count)]
    if beyond and shares.node.gpu_mem > 0:
        yield (
            f"is on GPU {', '.join(beyond[:5])} of node {shares.node.name}, which has {count or 'no number of GPUs'}; "
            f"{'start the pod anew' if count else 'see to the count of the node first'}"
        )


def _build_finding(code: str, subject: str, kind: str, text: str) -> Finding:
    return {"code": code, "object": subject, "message": f"{kind} {subject} {text}."}


def find_in_node(shares: Shares, unit: str) -> Iterator[Finding]:
    """Return what is wrong with a node, then with its pods."""
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
