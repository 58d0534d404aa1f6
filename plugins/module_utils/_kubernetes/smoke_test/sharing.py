# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests nodes whose pods share GPUs: pods that fit together on one GPU get the same GPU, and a pod larger than a GPU stays Pending.

An image that runs for a moment has ended before the next pod starts. What counts is that each pod got its part and saw the GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Mapping, Sequence

from ..._kube_error import shorten
from ..._sharing.catalogue import SharedResource
from ..api import run_parallel
from ..objects import UNFINISHED, Object, get_allocatable, get_annotations, get_capacity, get_condition, get_name
from ..pod_failures import Evidence
from ..requests import count_allocated, list_holders
from .pod import SmokeTest
from .session import Session
from .verdict import Result, check_node, explain_deletion, is_decided, judge_pod, phase_of

_UNREACHABLE = re.compile(r"extender|https?://|connection refused|no route to host|deadline exceeded|\bEOF\b")
# What the scheduler reports of other resources. What remains are reports about the size of the request, in any words.
_OTHER_RESOURCE = re.compile(r"Insufficient (?:cpu|memory|ephemeral-storage)\b|Too many pods")
_REMEDIES = (
    (
        re.compile(r"bind with extender .*code 500"),
        "read the log of the scheduler extender, which refused it; an old one cannot write back pods with fields such as runtimeClassName",
    ),
    (_UNREACHABLE, "verify that the scheduler extender runs and that kube-scheduler reaches it (playbook site)"),
    (
        re.compile(r"no-gpu-has-"),
        "the device plugin found no pod of this amount that the scheduler extender had placed, so read the plugin's log",
    ),
)
_INDEX = re.compile(r"[0-9]+(?:,[0-9]+)*")


@dataclass
class NodeShares:
    """The test of one node: a test for each pod, the last one larger than a GPU, and the names of the pods created so far."""

    result: Result
    resource: SharedResource
    tests: Sequence[SmokeTest]
    pods: list[str] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """Whether nothing has decided the result yet."""
        return not self.result.reason

    def end(self, reason: str, skipped: bool = False) -> None:
        """Record why the node has not passed; the first reason counts."""
        if self.is_open:
            self.result.reason, self.result.skipped = reason, skipped


def plan_shares(
    name: str, node: Object | None, pods: Sequence[Object], test: SmokeTest, check_mode: bool = False
) -> NodeShares | Result:
    """Return the tests of the node, or the result of a node that cannot be tested.

    Of the shared resources, the first one that the node has is tested.
    """
    known = node or {}
    resource = next((each for each in test.shared if get_allocatable(known, each.name) > 0), test.shared[0])
    size = _gpu_size(known, resource)
    amounts = [max(1, size * share // 100) for share in test.shares]
    together = replace(test, resource=resource.name, count=sum(amounts))
    result = check_node(name, node, pods, together, check_mode)
    if result:
        return result
    if not size:
        reason = (
            f"has allocatable {resource.name} without {resource.gpu_count_resource}; restart the device plugin there"
        )
        return Result(name, reason=reason)
    if sum(amounts) > size:
        reason = f"has GPUs of {size} {resource.name}, which {len(amounts)} pods cannot share"
        return Result(name, skipped=True, reason=reason)
    free = get_allocatable(known, resource.name) - count_allocated(pods, resource.name) - sum(amounts)
    # In vain, kube-scheduler would evict pods of a lower priority for what the node does not have free as a whole.
    whole_node = resource.spans_gpus or free <= size
    amounts.append((get_capacity(known, resource.name) if whole_node else size) + 1)
    tests = [
        replace(test, resource=resource.name, count=amount, subject=f"the pod with {amount} {resource.name}")
        for amount in amounts
    ]
    return NodeShares(Result(name, resource=resource.name), resource, tests)


def _gpu_size(node: Mapping[str, Any], resource: SharedResource) -> int:
    """Return the units of one GPU; 0 if the node does not report its number of GPUs."""
    if resource.units_per_gpu:
        return resource.units_per_gpu
    gpus = get_allocatable(node, resource.gpu_count_resource)
    return get_capacity(node, resource.name) // gpus if gpus else 0


def run_shares(session: Session, nodes: Sequence[NodeShares]) -> dict[str, Result]:
    """Run the pods of all nodes and return the results. Raises ApiError.

    Pods are created one after another, because device plugins and scheduler extenders may confuse pods that come at once. The pod
    that is too large gets no GPU, so it is created together with the one before it.
    """
    last = len(nodes[0].tests) - 2
    for index in range(last + 1):
        _run_step(session, [each for each in nodes if each.is_open], index, is_last=index == last)
    return {each.result.node: each.result for each in nodes}


def _run_step(session: Session, nodes: Sequence[NodeShares], index: int, is_last: bool) -> None:
    jobs = [(each, test) for each in nodes for test in each.tests[index : index + (2 if is_last else 1)]]
    made = run_parallel(lambda job: session.create(job[1], job[0].result.node), jobs)
    for (each, _test), created in zip(jobs, made):
        each.pods.append(created.pod)
        if created.reason:
            each.end(created.reason)
    nodes = [each for each in nodes if each.is_open]
    if not nodes:
        return
    deadline = session.timing.clock() + nodes[0].tests[0].timeout
    pods = session.wait(deadline, lambda found: all(_is_settled(each, found, is_last) for each in nodes))
    names = [name for each in nodes for name in each.pods if name in pods]
    # The log of a pod that has started is read in the last step.
    evidence = session.collect([pods[name] for name in names if is_last or not _has_started(pods[name])])
    for each in nodes:
        _judge_shares(session, each, pods, evidence, is_last)
        if is_last and each.is_open:
            _judge_too_large(each, pods.get(each.pods[-1]))
            each.result.passed = each.is_open


def _is_settled(shares: NodeShares, pods: Mapping[str, Object], is_last: bool) -> bool:
    """Return whether a longer wait can no longer change what this step finds on the node."""
    known = [(pods[name], test) for name, test in zip(shares.pods, shares.tests) if name in pods]
    if any(_lacks_gpu(shares, pod) for pod, test in known if test is not shares.tests[-1]):
        return True
    return all(
        bool(_node_name(pod)) or _is_too_large(pod)
        if test is shares.tests[-1]
        else is_decided(pod) or (not is_last and _has_started(pod))
        for pod, test in known
    )


def _judge_shares(
    session: Session, shares: NodeShares, pods: Mapping[str, Object], evidence: Mapping[str, Evidence], is_last: bool
) -> None:
    """Judge the pods that share a GPU, and compare their GPUs in the last step."""
    gpus, devices = set(), set()
    for name, test in zip(shares.pods, shares.tests[:-1]):
        pod = pods.get(name)
        if pod is None:
            reason = explain_deletion(test, name)
            shares.result = Result(shares.result.node, pod=name, phase="Deleted", reason=reason, resource=test.resource)
        elif is_last or not _has_started(pod) or _lacks_gpu(shares, pod):
            shares.result = _judge_share(session, shares, pod, test, evidence.get(name, Evidence()))
        if not shares.is_open:
            return
        gpus.add(_read_gpu(shares, pod or {}))
        devices.update(shares.result.visible_devices)
    if is_last:
        _compare_gpus(shares, sorted(gpus), sorted(devices))


def _judge_share(session: Session, shares: NodeShares, pod: Object, test: SmokeTest, evidence: Evidence) -> Result:
    """Return the result of a node by one pod that should have a part of a GPU; without a reason if the pod is as expected."""
    result = replace(judge_pod(shares.result.node, pod, test, evidence), passed=False)
    if _lacks_gpu(shares, pod):
        result.reason = (
            f"{test.subject} came to the node without the annotation {shares.resource.gpu_annotation}, so kube-scheduler does not call "
            "the scheduler extender; run the playbook site"
        )
    elif not _is_too_large(pod) or result.skipped:
        result.reason = _with_remedy(result.reason)
    elif _find_other_holders(session, shares):
        result.skipped = True
        result.reason = (
            f"busy: {test.subject} fits on no GPU beside other pods, as the scheduler reports: {_message(pod)}"
        )
    else:
        result.reason += "; restart the scheduler extender, which may count pods that have ended"
    return result


def _compare_gpus(shares: NodeShares, gpus: Sequence[str], devices: Sequence[str]) -> None:
    """Compare the GPUs that annotations and logs of the pods name; a log may name none."""
    result = shares.result
    result.visible_devices = list(devices)
    result.gpu_index = gpus[0] if len(gpus) == 1 else ""
    if len(gpus) > 1:
        shares.end(f"the pods got GPU {' and GPU '.join(gpus)}, so that they shared none", skipped=True)
    elif len(devices) > 1 and result.gpu_index:
        shares.end(
            f"the scheduler extender gave GPU {result.gpu_index} to all pods, and they saw {' and '.join(devices)}; find what sets "
            "NVIDIA_VISIBLE_DEVICES in them, and read the device plugin's log"
        )
    elif len(devices) > 1:
        shares.end(f"the pods saw {' and '.join(devices)}, so that they shared none", skipped=True)


def _judge_too_large(shares: NodeShares, pod: Object | None) -> None:
    """Judge the pod that no GPU is large enough for, and record why it stays Pending."""
    test = shares.tests[-1]
    message = shares.result.pending_reason = _message(pod or {})
    if pod is None:
        shares.end(explain_deletion(test, shares.pods[-1]))
    elif _node_name(pod):
        shares.end(
            f"{test.subject} was scheduled, and no GPU has that much; restart the scheduler extender, or run the playbook site if "
            "kube-scheduler does not call it"
        )
    elif not _is_too_large(pod):
        cause = f"for another reason than its size: {message}" if message else "without a message of the scheduler"
        shares.end(_with_remedy(f"{test.subject} stays Pending {cause} (after {test.timeout} s)"))


def _find_other_holders(session: Session, shares: NodeShares) -> list[str]:
    """Return the pods of others that hold the resource on the node now. Raises ApiError."""
    pods = session.cluster.pods(fields=f"{UNFINISHED},spec.nodeName={shares.result.node}")
    return list_holders([pod for pod in pods if get_name(pod) not in shares.pods], shares.resource.name)


def _with_remedy(reason: str) -> str:
    remedy = next((remedy for pattern, remedy in _REMEDIES if pattern.search(reason)), "")
    return f"{reason}; {remedy}" if remedy else reason


def _node_name(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _has_started(pod: Mapping[str, Any]) -> bool:
    return phase_of(pod) in ("Running", "Succeeded")


def _read_gpu(shares: NodeShares, pod: Mapping[str, Any]) -> str:
    """Return the index of the pod's GPU from its annotation; empty if there is none."""
    text = str(get_annotations(pod).get(shares.resource.gpu_annotation) or "")
    return text if _INDEX.fullmatch(text) else ""


def _lacks_gpu(shares: NodeShares, pod: Mapping[str, Any]) -> bool:
    """Return whether the pod came to its node past the scheduler extender."""
    return bool(shares.resource.gpu_annotation and _node_name(pod) and not _read_gpu(shares, pod))


def _message(pod: Mapping[str, Any]) -> str:
    """Return why the scheduler has not scheduled the pod; empty if it has, or has not reported yet."""
    scheduled = get_condition(pod, "PodScheduled")
    return shorten(scheduled.get("message")) if scheduled.get("status") == "False" else ""


def _is_too_large(pod: Mapping[str, Any]) -> bool:
    """Return whether the scheduler has not scheduled the pod, for the size of its request."""
    message = _message(pod)
    return bool(message) and not _UNREACHABLE.search(message) and not _OTHER_RESOURCE.search(message)
