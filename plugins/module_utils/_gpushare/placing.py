# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict on the pods of a proof: where each one landed, whether what is too large was refused, and what they printed.

What is *ended* or *gone* are pods by namespace and name; in the rows that are given count also the pods of the test that have ended.
"""

from __future__ import annotations

import re
from typing import AbstractSet, Any, Iterator, Mapping, Sequence

from .._kubernetes.objects import Object, get_annotations, get_condition
from .._kubernetes.pod_failures import FATAL_REASONS, Evidence, explain_failure, get_waiting_reason, shorten
from .._kubernetes.smoke import Smoke, deleted, verdict
from . import names
from .extract import parse_whole
from .room import Row, allocated_to, best_fit, free_by_gpu, full_name, has_room, percent_of
from .sharing import Fault, Share, Sharing, SharingResult, Trial

# How gpushare's extender and kube-scheduler itself say that there is too little.
_SHORT = re.compile(r"insufficient (?:gpu memory|aliyun\.com/gpu-mem)", re.IGNORECASE)
# Remedies for what the scheduler says, and for what a container runtime does.
_SCHEDULING = (
    (
        re.compile(r"insufficient gpu memory", re.IGNORECASE),
        "restart gpushare's extender, which may remember the GPUs of the node or its pods as they were",
    ),
    (
        re.compile(r"bind with extender .*code 500"),
        "read the log of gpushare's extender, which refused it; an old one cannot write back pods with fields such as runtimeClassName",
    ),
    (
        re.compile(r"/gpushare-scheduler|extender|connection refused|no route to host|deadline exceeded|\bEOF\b"),
        "see that gpushare's extender runs, and that kube-scheduler has the way to it (playbook deploy_gpushare)",
    ),
)
_RUNNING = (
    (
        re.compile(r"no-gpu-has-"),
        "gpushare's device plugin found no pod that the extender had placed for this amount, so read the plugin's log",
    ),
)
UNASKED = "kube-scheduler does not ask gpushare's extender; run the playbook deploy_gpushare"


def gpu_index(pod: Mapping[str, Any]) -> int | None:
    """Return the GPU that gpushare's extender has written down for the pod, or None."""
    index = parse_whole(get_annotations(pod).get(names.INDEX))
    return None if index is None or index < 0 else index


def _node_name(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _phase(pod: Mapping[str, Any]) -> str:
    return str((pod.get("status") or {}).get("phase") or "Unknown")


def _message(pod: Mapping[str, Any]) -> str:
    """Return why the scheduler has not scheduled the pod; empty if it has, or has not said."""
    scheduled = get_condition(pod, "PodScheduled")
    return shorten(scheduled.get("message")) if scheduled.get("status") == "False" else ""


def _remedied(clause: str, remedies: Sequence[tuple[re.Pattern[str], str]]) -> str:
    for pattern, remedy in remedies:
        if pattern.search(clause):
            return f"{clause}; {remedy}"
    return clause


def is_placed(pod: Mapping[str, Any]) -> bool:
    """Say whether the step of this pod is over: it has started or never will, or has come to its node past the extender."""
    if _phase(pod) in ("Running", "Succeeded", "Failed") or get_waiting_reason(pod) in FATAL_REASONS:
        return True
    return bool(_node_name(pod)) and gpu_index(pod) is None


def has_trouble(pod: Mapping[str, Any]) -> bool:
    """Say whether the pod is on its node and has not started well, so that its log and events tell why."""
    return bool(_node_name(pod)) and _phase(pod) not in ("Running", "Succeeded")


def judge_step(
    trial: Trial,
    pods: Mapping[str, Object],
    sharing: Sharing,
    row: Row | None,
    ended: AbstractSet[str],
    evidence: Mapping[str, Evidence],
) -> Fault | None:
    """Judge the node's latest pod after its step, and keep where it is and how full its GPU is now.

    In *row* count also the pods of the test that have *ended* well.
    """
    result = trial.result
    *earlier, share = result.pods
    fault = next(filter(None, (_lost(trial, each, pods, sharing, evidence) for each in earlier)), None)
    pod = pods.get(share.name)
    if fault or pod is None:
        return fault or _lost(trial, share, pods, sharing, evidence)
    share.phase, share.gpu_index = _phase(pod), gpu_index(pod)
    if not row:
        return Fault(f"stopped offering {names.GPU_MEM} during the test; look at gpushare's device plugin there")
    fault = _unfit(trial, pod, sharing, row, evidence) or _misplaced(trial, share, sharing, row, ended)
    if fault:
        return fault
    result.gpu_index = share.gpu_index
    result.percent += [percent_of(each, share.gpu_index) for each in ([] if result.percent else [trial.row]) + [row]]
    trial.row = row
    return _miscounted(result, sharing, row)


def _lost(
    trial: Trial, share: Share, pods: Mapping[str, Object], sharing: Sharing, evidence: Mapping[str, Evidence]
) -> Fault | None:
    """Say whether a pod is gone, or has not started or ended well."""
    pod, smoke = pods.get(share.name), sharing.pod(share.amount)
    if pod is None:
        share.phase = "Deleted"
        return Fault(deleted(smoke, share.name))
    share.phase = _phase(pod)
    if not has_trouble(pod):
        return None
    told = verdict(trial.node, pod, smoke, evidence.get(share.name, Evidence()))
    trial.result.log_tail = told.log_tail
    return Fault(_remedied(told.reason, _RUNNING))


def _unfit(trial: Trial, pod: Object, sharing: Sharing, row: Row, evidence: Mapping[str, Evidence]) -> Fault | None:
    """Say why the latest pod was not scheduled by the extender and started with what it gave."""
    share = trial.result.pods[-1]
    smoke, annotations = sharing.pod(share.amount), get_annotations(pod)
    if not _node_name(pod):
        return _unscheduled(trial, pod, smoke, row)
    if gpu_index(pod) is None:
        return Fault(f"{smoke.subject} came to the node without the annotation {names.INDEX}, so {UNASKED}")
    fault = _lost(trial, share, {share.name: pod}, sharing, evidence)
    if fault:
        return fault
    if annotations.get(names.ASSIGNED) != "true":
        return Fault(
            f"{smoke.subject} runs although gpushare's device plugin has not taken it up ({names.ASSIGNED} is "
            f"{annotations.get(names.ASSIGNED)!r:.20}), so that it may use any GPU; read the plugin's log"
        )
    if parse_whole(annotations.get(names.REQUEST)) != smoke.count:
        return Fault(
            f"{smoke.subject} counts as {annotations.get(names.REQUEST)!r:.20} for gpushare's extender ({names.REQUEST}); "
            "look for what changes pods as they are created"
        )
    return None


def _unscheduled(trial: Trial, pod: Object, smoke: Smoke, row: Row) -> Fault:
    message = _message(pod)
    if _SHORT.search(message) and not has_room(row, free_by_gpu(row, trial.count), smoke.count):
        return Fault(f"busy: the memory was given to other pods meanwhile, as the scheduler says: {message}", True)
    return Fault(_remedied(f"{smoke.subject} {explain_failure(pod)} (after {smoke.timeout} s)", _SCHEDULING))


def _misplaced(trial: Trial, share: Share, sharing: Sharing, row: Row, ended: AbstractSet[str]) -> Fault | None:
    """Say whether the pod should be on another GPU: the first one where it fits best, the others beside it."""
    first, index, subject = trial.result.gpu_index, share.gpu_index, sharing.pod(share.amount).subject
    if index == first and index is not None:
        return None
    own = f"{sharing.smoke.namespace}/{share.name}"
    right = {best_fit(free, share.amount) for free in _seen_free(trial, row, own, ended)}
    if index in right:
        if first is None:
            return None
        return Fault(
            f"busy: pods came or went meanwhile, so that {subject} fitted best on GPU {index}, and not on GPU {first}",
            True,
        )
    best = ", ".join(sorted(f"GPU {each}" for each in right if each is not None)) or "none"
    return Fault(
        f"{subject} is on GPU {index}, and what is free fits best on {best}; restart gpushare's extender, which may remember pods as they "
        f"were, or see whether it takes a GPU for unhealthy (ConfigMap unhealthy-gpu-{trial.node})"
    )


def _seen_free(trial: Trial, row: Row, own: str, ended: AbstractSet[str]) -> Iterator[dict[int, int]]:
    """Yield what the extender may have seen as free: before or after the step, with or without pods that have ended or are terminating."""
    for each, without in ((trial.row, set()), (row, {own})):
        leaving = {full_name(pod) for pod in each["pods"] if pod["terminating"]}
        for gone in (set(), leaving, ended, leaving | ended):
            yield free_by_gpu(each, trial.count, without | gone)


def _miscounted(result: SharingResult, sharing: Sharing, row: Row) -> Fault | None:
    """Say whether the allocation has something else than was asked for."""
    ours = {f"{sharing.smoke.namespace}/{share.name}" for share in result.pods}
    counted = allocated_to(row, ours, result.gpu_index)
    wanted = sum(share.amount for share in result.pods)
    if counted == wanted:
        return None
    return Fault(
        f"has {sharing.told(counted)} of GPU {result.gpu_index} allocated to the test's pods, which asked for {sharing.told(wanted)}; "
        "look for what changes pods as they are created"
    )


def is_refused(pod: Mapping[str, Any]) -> bool:
    """Say whether it is decided what becomes of a pod that is too large."""
    return bool(_node_name(pod)) or bool(_SHORT.search(_message(pod)))


def judge_too_much(trial: Trial, name: str, pod: Object | None, smoke: Smoke) -> Fault | None:
    """Judge the pod that no GPU is large enough for, and keep why it stays Pending."""
    if pod is None:
        return Fault(deleted(smoke, name))
    if _node_name(pod):
        known = gpu_index(pod) is not None
        why = "gpushare's extender takes the GPUs for larger than they are; restart it" if known else UNASKED
        return Fault(f"{smoke.subject} was scheduled, and no GPU has that much: {why}")
    trial.result.pending_reason = message = _message(pod)
    if _SHORT.search(message):
        return None
    told = f"for another reason than its size: {message}" if message else "without a word of the scheduler"
    return Fault(_remedied(f"{smoke.subject} stays Pending {told} (after {smoke.timeout} s)", _SCHEDULING))


def has_run(pod: Mapping[str, Any], printed: bool) -> bool:
    """Say whether nothing more is to be expected of a pod, given that it has or has not *printed* what it should."""
    return printed or _phase(pod) in ("Succeeded", "Failed")


def judge_end(
    trial: Trial,
    pods: Mapping[str, Object],
    evidence: Mapping[str, Evidence],
    printed: AbstractSet[str],
    sharing: Sharing,
) -> Fault | None:
    """Judge by their logs the pods of a node on which all steps went well. Those that go on running have *printed* all the same."""
    devices: set[str] = set()
    for share in trial.result.pods:
        pod, smoke = pods.get(share.name), sharing.pod(share.amount)
        if pod is None:
            share.phase = "Deleted"
            return Fault(deleted(smoke, share.name))
        told = verdict(trial.node, pod, smoke, evidence.get(share.name, Evidence()))
        share.phase, trial.result.log_tail = told.phase, told.log_tail
        if not told.passed and not (told.phase == "Running" and share.name in printed):
            return Fault(_remedied(told.reason, _RUNNING))
        devices.update(device for device in told.visible_devices if device.startswith("GPU-"))
    if len(devices) > 1:
        return Fault(
            f"has given the pods GPU {trial.result.gpu_index}, and they saw {', '.join(sorted(devices))}; see what sets {names.VISIBLE_DEVICES} "
            "in them, and read the log of gpushare's device plugin"
        )
    return None
