# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explains in one clause why a pod does not run, with a remedy if one is known.

It reads the pod's conditions and container states, the kubelet's events about the pod and its last log lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence

from .._config.redact import mask_text
from .._kube_error import shorten
from .._text import make_printable
from .objects import Object, get_condition, get_name

# A pod decides how long its lines are, and the patterns need up to the square of it.
MAX_LINE = 1000

# Waiting does not help.
FATAL_REASONS = frozenset({"CreateContainerConfigError", "ErrImageNeverPull", "InvalidImageName"})
PULL_REASONS = frozenset(
    {"ErrImageNeverPull", "ErrImagePull", "ImageInspectError", "ImagePullBackOff", "InvalidImageName"}
)

_KLOG = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\]]*\] ")
_STAMP = re.compile(r"^\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\S* ")
# What Go prints of a crash after its cause: goroutines, calls with their lines, registers.
_TRACE = re.compile(
    r"^goroutine \d+ |^created by |^\S+[./]\S*\(.*\)$|\.go:\d+(?: \+0x|$)| [pf][cp]=0x|^[a-z]\w+ +0x[0-9a-f]+$|^PC=0x"
)
_ERROR_PATTERNS: Sequence[re.Pattern[str]] = (
    re.compile(r"^(?:panic|fatal error|SIG[A-Z]+): "),
    re.compile(r"nvml|libnvidia|driver/library|cuda driver", re.IGNORECASE),
    re.compile(r"incompatible|no devices found|panic|fatal|error|fail|cannot|could not", re.IGNORECASE),
)
_IMAGE_REMEDY = "check the image's name, the registry and its pull secrets, or import the image on the node"
_REMEDIES: Sequence[tuple[re.Pattern[str], str]] = (
    (
        re.compile(r"version mismatch", re.IGNORECASE),
        "the loaded driver and its library differ, so reboot the node or reload the driver's modules",
    ),
    (
        re.compile(r"RuntimeClass .* not found"),
        "create it (the role that deploys the device plugin does), or leave the runtime class empty if nvidia is the default runtime",
    ),
    (
        re.compile(r"no runtime for|runtime ?handler", re.IGNORECASE),
        "the container runtime on the node does not know this runtime, so run the playbook prepare_gpu_nodes",
    ),
    (
        re.compile(r"load NVML|libnvidia-ml|LIBRARY_NOT_FOUND|incompatible (strategy|platform)", re.IGNORECASE),
        "the container has no driver, so set the runtime class nvidia and check the driver on the node",
    ),
    (
        re.compile(
            r"failed to pull|pull access|not present with pull policy|image pull|manifest unknown", re.IGNORECASE
        ),
        "check the image's name, the registry and its pull secrets, or import the image on the node",
    ),
)


@dataclass(frozen=True)
class Evidence:
    """The last lines of a pod's log and its warning events, oldest first.

    ``log_error`` says in a clause why the log could not be read; empty if it was read, or if there is no log yet.
    """

    log: str = ""
    events: Sequence[str] = field(default_factory=tuple)
    log_error: str = ""


def find_error_line(log: str) -> str:
    """Return the log line that explains a failure best, without its logger's prefix and credentials; empty for an empty log."""
    lines = [_STAMP.sub("", _KLOG.sub("", line)) for line in _drop_trace(log)]
    for pattern in _ERROR_PATTERNS:
        for line in reversed(lines):
            if pattern.search(line):
                return shorten(mask_text(line))
    return shorten(mask_text(lines[-1])) if lines else ""


def _drop_trace(text: Any) -> list[str]:
    """Return the beginnings of the lines that are neither empty nor part of a stack trace."""
    lines = (line.strip()[:MAX_LINE] for line in str(text or "").splitlines())
    return [line for line in lines if line and not _TRACE.search(line)]


def explain_unread_log(evidence: Evidence) -> str:
    """Return a clause with the reason why the log cannot be read; empty if it was read."""
    return f"its log cannot be read: {evidence.log_error}" if evidence.log_error else ""


def find_remedy(text: str) -> str:
    """Return the remedy for a known message, or an empty string."""
    for pattern, remedy in _REMEDIES:
        if pattern.search(text):
            return remedy
    return ""


def add_remedy(clause: str, default: str = "") -> str:
    """Return the clause with the remedy for it, or with the default one."""
    remedy = find_remedy(clause) or default
    return f"{clause}; {remedy}" if remedy else clause


def explain_failure(pod: Mapping[str, Any], evidence: Evidence | None = None) -> str:
    """Return one clause with the reason why the pod does not run; empty if all its containers are ready."""
    known = evidence or Evidence()
    for check in _CHECKS:
        clause = check(pod, known)
        if clause:
            return make_printable(clause)
    return ""


def list_containers(pod: Mapping[str, Any]) -> list[Object]:
    """Return the status of all containers, init containers first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def get_waiting_reason(pod: Mapping[str, Any]) -> str:
    """Return why the first waiting container waits (``ImagePullBackOff``), or an empty string."""
    for container in list_containers(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return str(waiting["reason"])
    return ""


def _check_scheduled(pod: Mapping[str, Any], _evidence: Evidence) -> str:
    if (pod.get("spec") or {}).get("nodeName"):
        return ""
    message = shorten(get_condition(pod, "PodScheduled").get("message"))
    return f"is Pending, not scheduled: {message or 'the scheduler has not answered yet'}"


def _check_ended(pod: Mapping[str, Any], evidence: Evidence) -> str:
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return ""
    reason = shorten(status.get("reason")) or "container ended"
    message = shorten(status.get("message")) or _find_last_message(pod, evidence)
    return add_remedy(f"failed ({reason}): {message}")


def _check_crashes(pod: Mapping[str, Any], evidence: Evidence) -> str:
    # After a reboot, the kubelet runs init containers again and counts that as a restart.
    finished = [each for each in (pod.get("status") or {}).get("initContainerStatuses") or [] if _is_finished(each)]
    for container in list_containers(pod):
        state = container.get("state") or {}
        waits = (state.get("waiting") or {}).get("reason")
        restarts = int(container.get("restartCount") or 0)
        down = waits == "CrashLoopBackOff" or bool(state.get("terminated"))
        if restarts and down and container not in finished:
            return add_remedy(f"crashed {restarts} times: {_find_last_message(pod, evidence)}")
    return ""


def _check_waiting(pod: Mapping[str, Any], evidence: Evidence) -> str:
    for container in list_containers(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = shorten(waiting.get("reason"))
        if not reason or reason in ("PodInitializing", "ContainerCreating"):
            continue
        image = f" of image {shorten(container['image'])}" if reason in PULL_REASONS and container.get("image") else ""
        message = shorten(waiting.get("message")) or _get_last_event(evidence)
        return add_remedy(f"waits ({reason}){image}: {message}", _IMAGE_REMEDY if reason in PULL_REASONS else "")
    return ""


def _check_starting(pod: Mapping[str, Any], evidence: Evidence) -> str:
    if (pod.get("status") or {}).get("phase") != "Pending":
        return ""
    event = _get_last_event(evidence)
    if not event:
        return "is being created, and its kubelet reports no problem yet"
    return add_remedy(f"is being created: {event}")


def _check_ready(pod: Mapping[str, Any], evidence: Evidence) -> str:
    if (pod.get("status") or {}).get("phase") != "Running":
        return ""
    unready = [str(container.get("name")) for container in list_containers(pod) if _is_unready(container)]
    if not unready:
        return ""
    message = find_error_line(evidence.log) or explain_unread_log(evidence)
    return add_remedy(f"runs but {shorten(', '.join(unready))} is not ready" + (f": {message}" if message else ""))


def _is_unready(container: Mapping[str, Any]) -> bool:
    return not container.get("ready") and not _is_finished(container)


def _is_finished(container: Mapping[str, Any]) -> bool:
    return ((container.get("state") or {}).get("terminated") or {}).get("exitCode") == 0


_CHECKS: Sequence[Callable[[Mapping[str, Any], Evidence], str]] = (
    _check_ended,
    _check_scheduled,
    _check_crashes,
    _check_waiting,
    _check_starting,
    _check_ready,
)


def _get_last_event(evidence: Evidence) -> str:
    return shorten(evidence.events[-1]) if evidence.events else ""


def _find_last_message(pod: Mapping[str, Any], evidence: Evidence) -> str:
    """Return the container's termination message, else a line of the log, else the exit code."""
    code = None
    for container in list_containers(pod):
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            ended = state.get("terminated") or {}
            message = shorten(" ".join(_drop_trace(ended.get("message"))))
            if message:
                return message
            if ended.get("exitCode"):
                trace = ", with a stack trace in its log" if ended.get("message") else ""
                code = f"exit code {ended['exitCode']} ({shorten(ended.get('reason')) or 'no reason given'}){trace}"
    return find_error_line(evidence.log) or code or explain_unread_log(evidence) or "it left no message"


def group_events(events: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the warning events by name of pod, oldest first, as ``reason: message`` without credentials."""

    def when(event: Mapping[str, Any]) -> str:
        return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")

    found: dict[str, list[str]] = {}
    for event in sorted(events, key=when):
        about = event.get("involvedObject") or {}
        if about.get("kind") == "Pod" and event.get("type") == "Warning":
            text = mask_text(f"{event.get('reason')}: {event.get('message')}")
            found.setdefault(str(about.get("name")), []).append(text)
    return found


def find_newest(pods: Iterable[Object]) -> Object | None:
    """Return the youngest pod that is not being deleted, else the youngest pod, else None."""
    ranked = sorted(pods, key=_rank_by_age)
    return ranked[-1] if ranked else None


def _rank_by_age(pod: Object) -> tuple[bool, str, str]:
    metadata = pod.get("metadata") or {}
    return (not metadata.get("deletionTimestamp"), str(metadata.get("creationTimestamp") or ""), get_name(pod))
