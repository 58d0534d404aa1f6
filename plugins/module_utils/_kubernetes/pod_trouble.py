# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a pod does not run: one clause each, with a remedy where one is known.

Sources are the pod's own conditions and container states, the kubelet's events about it and its last log lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence

from .objects import Object, condition_of, name_of

LONGEST = 300

# What cannot heal by waiting.
HOPELESS = frozenset({"CreateContainerConfigError", "ErrImageNeverPull", "InvalidImageName"})
PULLING = frozenset({"ErrImageNeverPull", "ErrImagePull", "ImageInspectError", "ImagePullBackOff", "InvalidImageName"})

_KLOG = re.compile(r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [^\]]*\] ")
_STAMP = re.compile(r"^\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\S* ")
# What Go writes of a crash after its cause: goroutines, their calls and places, registers.
_TRACE = re.compile(
    r"^goroutine \d+ |^created by |^(?:\S+[./])+\S*\(.*\)$|\.go:\d+(?: \+0x|$)| [pf][cp]=0x|^[a-z]\w+ +0x[0-9a-f]+$|^PC=0x"
)
_TELLING: Sequence[re.Pattern[str]] = (
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
        "create it (the role that deploys the device plugin does), or leave the runtime class empty where nvidia is the default runtime",
    ),
    (
        re.compile(r"no runtime for|runtime ?handler", re.IGNORECASE),
        "the container runtime on the node does not know this runtime, so run the playbook prepare_gpu_nodes",
    ),
    (
        re.compile(r"load NVML|libnvidia-ml|LIBRARY_NOT_FOUND|incompatible (strategy|platform)", re.IGNORECASE),
        "the pod was given no driver, so let it use the runtime class nvidia and see that the driver works on the node",
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
    """What was asked about one pod: its log's last lines and its warning events, oldest first.

    ``log_error`` says why the log could not be read, as a clause; empty if it was, or if there is none yet.
    """

    log: str = ""
    events: Sequence[str] = field(default_factory=tuple)
    log_error: str = ""


def one_line(text: Any) -> str:
    """Fold whitespace and cut to a length that is good for a message."""
    folded = " ".join(str(text or "").split())
    return folded if len(folded) <= LONGEST else folded[: LONGEST - 1] + "…"


def telling_line(log: str) -> str:
    """Return the log line that says most about a failure, without its logger's prefix; empty for an empty log."""
    lines = [_STAMP.sub("", _KLOG.sub("", line)) for line in _without_trace(log)]
    for pattern in _TELLING:
        for line in reversed(lines):
            if pattern.search(line):
                return one_line(line)
    return one_line(lines[-1]) if lines else ""


def _without_trace(text: Any) -> list[str]:
    """Return the lines that are not empty and no part of a crash's stack trace."""
    return [line.strip() for line in str(text or "").splitlines() if line.strip() and not _TRACE.search(line.strip())]


def unread(evidence: Evidence) -> str:
    """Say in a clause that the log cannot be read and why, or an empty string if it could."""
    return f"its log cannot be read: {evidence.log_error}" if evidence.log_error else ""


def remedy_for(text: str) -> str:
    """Return the remedy for a known message, or an empty string."""
    for pattern, remedy in _REMEDIES:
        if pattern.search(text):
            return remedy
    return ""


def with_remedy(clause: str, default: str = "") -> str:
    """Append the remedy that the clause itself calls for, or the default one."""
    remedy = remedy_for(clause) or default
    return f"{clause}; {remedy}" if remedy else clause


def trouble(pod: Mapping[str, Any], evidence: Evidence | None = None) -> str:
    """Say in one clause what keeps the pod from running, or an empty string if all its containers are ready."""
    known = evidence or Evidence()
    for check in _CHECKS:
        clause = check(pod, known)
        if clause:
            return clause
    return ""


def container_states(pod: Mapping[str, Any]) -> list[Object]:
    """Return the status of all containers, those that run before the others first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def waiting_reason(pod: Mapping[str, Any]) -> str:
    """Return why the first waiting container waits (``ImagePullBackOff``), or an empty string."""
    for container in container_states(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return str(waiting["reason"])
    return ""


def _unscheduled(pod: Mapping[str, Any], _evidence: Evidence) -> str:
    if (pod.get("spec") or {}).get("nodeName"):
        return ""
    message = one_line(condition_of(pod, "PodScheduled").get("message"))
    return f"is Pending, not scheduled: {message or 'the scheduler has not answered yet'}"


def _ended(pod: Mapping[str, Any], evidence: Evidence) -> str:
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return ""
    reason = status.get("reason") or "container ended"
    said = one_line(status.get("message")) or _last_words(pod, evidence)
    return with_remedy(f"failed ({reason}): {said}")


def _crashing(pod: Mapping[str, Any], evidence: Evidence) -> str:
    for container in container_states(pod):
        state = container.get("state") or {}
        waits = (state.get("waiting") or {}).get("reason")
        restarts = int(container.get("restartCount") or 0)
        down = waits == "CrashLoopBackOff" or bool(state.get("terminated"))
        if restarts and down:
            return with_remedy(f"crashed {restarts} times: {_last_words(pod, evidence)}")
    return ""


def _waiting(pod: Mapping[str, Any], evidence: Evidence) -> str:
    for container in container_states(pod):
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason")
        if not reason or reason in ("PodInitializing", "ContainerCreating"):
            continue
        image = f" of image {container['image']}" if reason in PULLING and container.get("image") else ""
        said = one_line(waiting.get("message")) or _last_event(evidence)
        return with_remedy(f"waits ({reason}){image}: {said}", _IMAGE_REMEDY if reason in PULLING else "")
    return ""


def _starting(pod: Mapping[str, Any], evidence: Evidence) -> str:
    if (pod.get("status") or {}).get("phase") != "Pending":
        return ""
    event = _last_event(evidence)
    if not event:
        return "is being created, and its kubelet tells of no trouble yet"
    return with_remedy(f"is being created: {event}")


def _unready(pod: Mapping[str, Any], evidence: Evidence) -> str:
    if (pod.get("status") or {}).get("phase") != "Running":
        return ""
    unready = [str(container.get("name")) for container in container_states(pod) if _is_unready(container)]
    if not unready:
        return ""
    said = telling_line(evidence.log) or unread(evidence)
    return with_remedy(f"runs but {', '.join(unready)} is not ready" + (f": {said}" if said else ""))


def _is_unready(container: Mapping[str, Any]) -> bool:
    done = ((container.get("state") or {}).get("terminated") or {}).get("exitCode") == 0
    return not container.get("ready") and not done


_CHECKS: Sequence[Callable[[Mapping[str, Any], Evidence], str]] = (
    _ended,
    _unscheduled,
    _crashing,
    _waiting,
    _starting,
    _unready,
)


def _last_event(evidence: Evidence) -> str:
    return one_line(evidence.events[-1]) if evidence.events else ""


def _last_words(pod: Mapping[str, Any], evidence: Evidence) -> str:
    """Prefer the container's own termination message, then the log, then the exit code."""
    code = None
    for container in container_states(pod):
        for state in (container.get("state") or {}, container.get("lastState") or {}):
            ended = state.get("terminated") or {}
            said = one_line(" ".join(_without_trace(ended.get("message"))))
            if said:
                return said
            if ended.get("exitCode"):
                trace = ", with a stack trace in its log" if ended.get("message") else ""
                code = f"exit code {ended['exitCode']} ({ended.get('reason') or 'no reason given'}){trace}"
    return telling_line(evidence.log) or code or unread(evidence) or "it left no message"


def events_by_pod(events: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Sort warning events by the pod that they are about, oldest first, as ``reason: message``."""

    def when(event: Mapping[str, Any]) -> str:
        return str(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or "")

    found: dict[str, list[str]] = {}
    for event in sorted(events, key=when):
        about = event.get("involvedObject") or {}
        if about.get("kind") == "Pod" and event.get("type") == "Warning":
            text = f"{event.get('reason')}: {event.get('message')}"
            found.setdefault(str(about.get("name")), []).append(text)
    return found


def newest(pods: Iterable[Object]) -> Object | None:
    """Return the youngest pod that is not being deleted, else the youngest of all, else None."""
    ranked = sorted(pods, key=_age_rank)
    return ranked[-1] if ranked else None


def _age_rank(pod: Object) -> tuple[bool, str, str]:
    metadata = pod.get("metadata") or {}
    return (not metadata.get("deletionTimestamp"), str(metadata.get("creationTimestamp") or ""), name_of(pod))
