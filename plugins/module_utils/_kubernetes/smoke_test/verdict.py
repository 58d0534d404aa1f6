# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node can be tested, and the verdict on its pods."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any, Iterable, Mapping, Sequence

from ..._config.redact import mask_text
from ..._kube_error import shorten
from ..._sharing.catalogue import NVIDIA_RESOURCES, SLICES, matching
from ..._text import make_printable
from ..._vendors import SERVED
from ..objects import (
    Object,
    find_edge_framework,
    find_untolerated_taints,
    format_taint,
    get_allocatable,
    get_condition,
    get_name,
    is_judged,
    is_ready,
    is_schedulable,
)
from ..pod_failures import (
    FATAL_REASONS,
    Evidence,
    add_remedy,
    explain_failure,
    explain_unread_log,
    find_error_line,
    get_waiting_reason,
    list_containers,
)
from ..requests import count_allocated, list_holders
from .pod import GRACE_SECONDS, SmokeTest

# The control plane takes these off soon after the node became Ready.
_PASSING_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")

# How a kubelet rejects a pod for devices that its last report, up to 10 s ago, still had (pkg/kubelet/cm/devicemanager/manager.go).
_TOO_EARLY = re.compile(r"unhealthy devices|unregistered device|number of devices unavailable")
_DEVICE = re.compile(r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")


@dataclass
class Result:
    """The verdict on one node. ``skipped`` means that its GPUs were not verified, so it is never ``passed`` then.

    ``pod`` and ``phase`` are those of the last pod, and ``resource`` is what it requests. Of pods that share a GPU, ``gpu_index`` is
    that GPU as their annotations name it, and ``pending_reason`` what the scheduler reports of the pod that is too large.
    """

    node: str
    passed: bool = False
    skipped: bool = False
    reason: str = ""
    log_tail: list[str] = field(default_factory=list)
    pod: str = ""
    phase: str = "NotCreated"
    resource: str = ""
    image: str = ""
    visible_devices: list[str] = field(default_factory=list)
    gpu_index: str = ""
    pending_reason: str = ""

    @property
    def failed(self) -> bool:
        """Neither passed nor skipped."""
        return not self.passed and not self.skipped

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types. What pods have written is printable."""
        log_tail = [make_printable(line) for line in self.log_tail]
        return {**asdict(self), "reason": make_printable(self.reason), "log_tail": log_tail}


def fit_to_edge(test: SmokeTest, node: Object | None) -> SmokeTest:
    """Return the test as it is on the node: at the edge, logs may not reach the API server."""
    return replace(test, needs_log=False) if find_edge_framework(node or {}) else test


def choose_test(node: Object | None, pods: Sequence[Object], test: SmokeTest) -> SmokeTest:
    """Return the test with the resource that NVIDIA's device plugin offers on the node; as it is for another resource.

    MIG slices that have the name of their profile come first, then whole GPUs, then shared ones; free ones before those in use.
    """
    allocatable = ((node or {}).get("status") or {}).get("allocatable") or {}
    if test.resource != SERVED.resource:
        return test
    names = sorted(matching(allocatable, NVIDIA_RESOURCES), key=lambda name: (not fnmatchcase(name, SLICES), name))
    amounts = {name: get_allocatable(node or {}, name) for name in names}
    free = [name for name, amount in amounts.items() if amount - count_allocated(pods, name) >= test.count]
    offered = [name for name, amount in amounts.items() if amount >= test.count]
    return replace(test, resource=next(iter([*free, *offered]), test.resource))


def check_node(
    name: str, node: Object | None, pods: Sequence[Object], test: SmokeTest, check_mode: bool = False
) -> Result | None:
    """Return why no pod can be tested on the node now, or None.

    A fully used node is skipped, and a cordoned one unless cordoned nodes are tested: their GPUs are not at fault, but they are not
    verified. So is, in check mode, a node without devices, whose device plugin a run deploys first.
    """
    result = Result(name, resource=test.resource)
    if node is None:
        result.reason = "is not in the cluster; join it, or set gpu_node_name if its Kubernetes name differs"
    elif not test.cordoned and not is_schedulable(node):
        result.skipped, result.reason = True, "cordoned: no pod may be scheduled here; uncordon the node to test it"
    elif not is_ready(node):
        message = shorten(get_condition(node, "Ready").get("message")) or "its kubelet has not reported"
        result.reason = f"is not Ready: {message}"
        if not is_judged(node):
            result.skipped, result.reason = (
                True,
                f"not judged: its edge framework keeps its pods while it is offline ({message})",
            )
    else:
        result.reason = _find_taints(node, test)
    return result if result.reason else _check_devices(result, node or {}, pods, test, check_mode)


def _find_taints(node: Object, test: SmokeTest) -> str:
    taints = find_untolerated_taints(node, test.all_tolerations, _PASSING_TAINTS)
    named = ", ".join(format_taint(taint) for taint in taints)
    return f"has the taint {named}, which the pod does not tolerate; add it to the test's tolerations" if taints else ""


def _check_devices(
    result: Result, node: Object, pods: Sequence[Object], test: SmokeTest, check_mode: bool
) -> Result | None:
    allocatable, used = get_allocatable(node, test.resource), count_allocated(pods, test.resource)
    if allocatable < test.count:
        result.reason = (
            f"has {allocatable} allocatable {test.resource}, so a device plugin has to be deployed or repaired first"
        )
        if check_mode:
            result.skipped, result.reason = True, f"check mode: no GPU was tested, and at present it {result.reason}"
        return result
    if allocatable - used < test.count:
        holders = _list_first(list_holders(pods, test.resource))
        result.skipped, result.reason = True, f"busy: {used} of {allocatable} {test.resource} are in use by {holders}"
        return result
    return None


def _list_first(names: Sequence[str]) -> str:
    """Return the first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def phase_of(pod: Mapping[str, Any]) -> str:
    """Return the phase of a pod; ``Unknown`` if it has none."""
    return str((pod.get("status") or {}).get("phase") or "Unknown")


def is_decided(pod: Mapping[str, Any]) -> bool:
    """Return whether a longer wait can no longer change the verdict."""
    return phase_of(pod) in ("Succeeded", "Failed") or get_waiting_reason(pod) in FATAL_REASONS


def is_too_early(pod: Mapping[str, Any]) -> bool:
    """Return whether the kubelet rejected the pod because its device plugin has just stopped or started; another pod may succeed."""
    status = pod.get("status") or {}
    reason, message = status.get("reason"), str(status.get("message"))
    # Where NUMA nodes matter, a kubelet without devices finds no suitable NUMA node.
    rejected = reason == "TopologyAffinityError" or (
        reason == "UnexpectedAdmissionError" and _TOO_EARLY.search(message)
    )
    return status.get("phase") == "Failed" and bool(rejected)


def judge_pod(node: str, pod: Object, test: SmokeTest, evidence: Evidence, log_lines: int = 10) -> Result:
    """Return the verdict on a pod that has ended, or whose time is up."""
    result = Result(node, pod=get_name(pod), phase=phase_of(pod), resource=test.resource, image=test.image)
    lines = [line.rstrip() for line in evidence.log.splitlines() if line.strip()]
    result.log_tail = [mask_text(line) for line in lines[-log_lines:]]
    result.visible_devices = sorted(set(_DEVICE.findall(evidence.log)))
    if result.phase == "Succeeded":
        unread = bool(evidence.log_error) and not test.needs_log
        if unread:
            result.log_tail = [f"not read ({evidence.log_error}); the pod has succeeded", *_list_messages(pod)][
                :log_lines
            ]
        result.passed = unread or test.expected_output in evidence.log
        result.reason = "" if result.passed else _explain_output(result, test, evidence)
        return result
    if _lacks_device(pod, test.resource):
        result.skipped = True
        result.reason = f"busy: no free {test.resource} within {test.timeout} s, as the scheduler reports"
        return result
    late = "" if result.phase == "Failed" else f" (after {test.timeout} s)"
    result.reason = f"{test.subject} {explain_failure(pod, evidence) or _explain_running(evidence)}{late}"
    return result


def _list_messages(pod: Object) -> list[str]:
    """Return the termination messages of the containers, which reach the API server without a connection to the node."""
    ended = [(container.get("state") or {}).get("terminated") or {} for container in list_containers(pod)]
    return [mask_text(line) for each in ended for line in str(each.get("message") or "").splitlines() if line.strip()]


def explain_refusal(test: SmokeTest, message: str) -> str:
    """Return why there is no pod if the API server did not create it."""
    return add_remedy(f"the API server refused {test.subject}: {message.rstrip('.')}")


def explain_deletion(test: SmokeTest, name: str) -> str:
    """Return why a pod that was created no longer exists."""
    return f"the pod {test.namespace}/{name} was deleted by others during the test"


def _explain_output(result: Result, test: SmokeTest, evidence: Evidence) -> str:
    """Return why a pod that has succeeded did not pass."""
    if evidence.log_error:
        return f"{test.subject} succeeded, but {explain_unread_log(evidence)}"
    last = result.log_tail[-1] if result.log_tail else "(no output)"
    return f"{test.subject} succeeded but never printed {test.expected_output!r}; its last line is: {shorten(last)}"


def _explain_running(evidence: Evidence) -> str:
    if evidence.log_error:
        return f"is still running, and {explain_unread_log(evidence)}"
    line = find_error_line(evidence.log)
    return f"is still running, and its last line is: {line}" if line else "is still running and has printed nothing"


def _lacks_device(pod: Mapping[str, Any], resource: str) -> bool:
    scheduled = get_condition(pod, "PodScheduled")
    return scheduled.get("status") == "False" and f"Insufficient {resource}" in str(scheduled.get("message"))


def find_leftovers(pods: Iterable[Object], now: datetime) -> list[str]:
    """Return the names of test pods of runs that have ended: pods older than their own deadline plus the grace."""
    found = []
    for pod in pods:
        created = _parse_time((pod.get("metadata") or {}).get("creationTimestamp"))
        deadline = int((pod.get("spec") or {}).get("activeDeadlineSeconds") or 0)
        if created and (now - created).total_seconds() > deadline + GRACE_SECONDS:
            found.append(get_name(pod))
    return sorted(found)


def _parse_time(text: Any) -> datetime | None:
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
