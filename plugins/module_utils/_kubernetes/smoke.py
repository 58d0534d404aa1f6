# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod that proves a GPU: its manifest, whether it can run at all, and the verdict on it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any, Iterable, Mapping, Sequence

from .objects import (
    Object,
    find_untolerated_taints,
    format_taint,
    get_allocatable,
    get_condition,
    get_name,
    is_ready,
    is_schedulable,
)
from .pod_failures import (
    FATAL_REASONS,
    Evidence,
    add_remedy,
    explain_failure,
    explain_unread_log,
    find_error_line,
    get_waiting_reason,
    shorten,
)
from .requests import count_allocated, list_holders

NAME_LABEL = "app.kubernetes.io/name"
MANAGER_LABEL = "app.kubernetes.io/managed-by"
RUN_LABEL = "gpu-kubernetes/smoke-test-run"
NAME = "gpu-smoke-test"

# The pod outlives the wait by this many seconds, so that its state can be read; then the kubelet ends it by itself.
GRACE_SECONDS = 60

GPU_TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
CORDON_TOLERATION = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}

UNKNOWN = "is not in the cluster; join it, or set gpu_node_name if its Kubernetes name differs"

# The control plane takes these off soon after the node became Ready.
_PASSING_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def labels_for(name: str) -> dict[str, str]:
    """Return the labels of all pods of the test of this name, whatever run they belong to."""
    return {NAME_LABEL: name, MANAGER_LABEL: "gpu.kubernetes"}


LABELS = labels_for(NAME)

# How a kubelet turns a pod away for devices that its last report, up to 10 s ago, still had (pkg/kubelet/cm/devicemanager/manager.go).
_TOO_EARLY = re.compile(r"unhealthy devices|unregistered device|number of devices unavailable")
_DEVICE = re.compile(r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")


@dataclass(frozen=True)
class Smoke:
    """What to run. ``timeout`` is in seconds, ``count`` in units of ``resource``; ``cordoned`` nodes are tested or skipped.

    ``name`` is that of the test, ``subject`` what a verdict calls the pod. A pod that has to outlast more than one wait has a
    ``lifetime`` in seconds. Without ``scheduler_name`` the cluster's own scheduler places it. One that is ``rewritten`` has no
    field that a client of 2019 would lose, who writes whole pods back.
    """

    image: str
    namespace: str = "default"
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    expected_output: str = ""
    runtime_class: str = ""
    resource: str = "nvidia.com/gpu"
    count: int = 1
    timeout: int = 300
    run_as_user: int = 65534
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    tolerations: Sequence[Mapping[str, Any]] = ()
    cordoned: bool = False
    name: str = NAME
    subject: str = "the pod"
    lifetime: int = 0
    scheduler_name: str = ""
    rewritten: bool = False

    @property
    def all_tolerations(self) -> list[Object]:
        """The GPU taint is always tolerated, a cordon if it shall be; the caller's come on top."""
        own = [dict(GPU_TOLERATION), *([dict(CORDON_TOLERATION)] if self.cordoned else [])]
        return [*own, *(dict(toleration) for toleration in self.tolerations)]


@dataclass
class Verdict:
    """The verdict on one node. ``skipped`` means that the GPU was not tried, so it is never ``passed`` then."""

    node: str
    passed: bool = False
    skipped: bool = False
    reason: str = ""
    log_tail: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Neither passed nor left out."""
        return not self.passed and not self.skipped

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


@dataclass
class Result(Verdict):
    """The verdict on a node with the one pod that it is for."""

    pod: str = ""
    phase: str = "NotCreated"
    image: str = ""
    visible_devices: list[str] = field(default_factory=list)


def manifest(smoke: Smoke, node: str, run: str) -> Object:
    """Build the pod for one node.

    It goes through the scheduler (an affinity to the node's name, never ``nodeName``), which is what users' pods do;
    it gets its GPU from the device plugin alone (no ``NVIDIA_VISIBLE_DEVICES`` of its own, which would pass by the
    plugin), and it holds no right that it does not need.
    """
    spec: Object = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": (smoke.lifetime or smoke.timeout) + GRACE_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "affinity": {"nodeAffinity": _only_on(node)},
        "tolerations": smoke.all_tolerations,
        "securityContext": _user(smoke.run_as_user),
        "containers": [_container(smoke)],
    }
    if not smoke.rewritten:
        spec["enableServiceLinks"] = False
        spec["securityContext"]["seccompProfile"] = {"type": "RuntimeDefault"}
    if smoke.scheduler_name:
        spec["schedulerName"] = smoke.scheduler_name
    if smoke.runtime_class:
        spec["runtimeClassName"] = smoke.runtime_class
    if smoke.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in smoke.image_pull_secrets]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{smoke.name}-",
            "namespace": smoke.namespace,
            "labels": {**labels_for(smoke.name), RUN_LABEL: run},
        },
        "spec": spec,
    }


def _only_on(node: str) -> Object:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}


def _user(uid: int) -> Object:
    return {"runAsNonRoot": True, "runAsUser": uid, "runAsGroup": uid} if uid else {"runAsUser": 0}


def _container(smoke: Smoke) -> Object:
    container: Object = {
        "name": "smoke-test",
        "image": smoke.image,
        "imagePullPolicy": smoke.image_pull_policy,
        "resources": {
            "limits": {smoke.resource: str(smoke.count)},
            "requests": {"cpu": "50m", "memory": "64Mi"},
        },
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if smoke.command:
        container["command"] = list(smoke.command)
    if smoke.args:
        container["args"] = list(smoke.args)
    return container


def precheck(
    name: str, node: Object | None, pods: Sequence[Object], smoke: Smoke, check_mode: bool = False
) -> Result | None:
    """Say why a pod cannot be tried on the node now, or None if it can.

    A fully used node is skipped, and a cordoned one unless cordons are passed: their GPUs are not at fault, but nothing was proved.
    So is, in check mode, one without devices: what was to be deployed before has not been.
    """
    result = Result(name)
    if node is None or barred(result, node, smoke):
        result.reason = result.reason or UNKNOWN
        return result
    return _precheck_devices(result, node, pods, smoke, check_mode)


def barred(result: Verdict, node: Object, smoke: Smoke) -> bool:
    """Say whether the node takes no pod of the test, whatever devices it has; *result* then says why."""
    if not smoke.cordoned and not is_schedulable(node):
        result.skipped, result.reason = True, "cordoned: no pod may be scheduled here; uncordon the node to test it"
        return True
    if not is_ready(node):
        message = shorten(get_condition(node, "Ready").get("message")) or "its kubelet has not reported"
        result.reason = f"is not Ready: {message}"
        return True
    taints = find_untolerated_taints(node, smoke.all_tolerations, _PASSING_TAINTS)
    if taints:
        named = ", ".join(format_taint(taint) for taint in taints)
        result.reason = f"has the taint {named}, which the pod does not tolerate; add it to the test's tolerations"
    return bool(taints)


def _precheck_devices(
    result: Result, node: Object, pods: Sequence[Object], smoke: Smoke, check_mode: bool
) -> Result | None:
    offered, used = get_allocatable(node, smoke.resource), count_allocated(pods, smoke.resource)
    if offered < smoke.count:
        result.reason = f"offers {offered} {smoke.resource}, so a device plugin has to be deployed or repaired first"
        if check_mode:
            result.skipped, result.reason = True, f"check mode: nothing was proved, and as it is now it {result.reason}"
        return result
    if offered - used < smoke.count:
        result.skipped, result.reason = True, _busy(offered, used, list_holders(pods, smoke.resource), smoke)
        return result
    return None


def _busy(offered: int, used: int, holders: Sequence[str], smoke: Smoke) -> str:
    return f"busy: {used} of {offered} {smoke.resource} are in use by {listed(holders)}"


def listed(names: Sequence[str]) -> str:
    """Name the first three and say how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def is_decided(pod: Mapping[str, Any]) -> bool:
    """Say whether waiting longer can no longer change the verdict."""
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return ended or get_waiting_reason(pod) in FATAL_REASONS


def came_too_early(pod: Mapping[str, Any]) -> bool:
    """Say whether the kubelet turned the pod away because its device plugin had left or just come: another one may fare better."""
    status = pod.get("status") or {}
    reason, message = status.get("reason"), str(status.get("message"))
    # Where NUMA nodes matter, a kubelet without devices knows none that would do.
    turned_away = reason == "TopologyAffinityError" or (
        reason == "UnexpectedAdmissionError" and _TOO_EARLY.search(message)
    )
    return status.get("phase") == "Failed" and bool(turned_away)


def verdict(node: str, pod: Object, smoke: Smoke, evidence: Evidence, log_lines: int = 10) -> Result:
    """Judge a pod that ended, or that time ran out on."""
    phase = str((pod.get("status") or {}).get("phase") or "Unknown")
    result = Result(node, pod=get_name(pod), phase=phase, image=smoke.image)
    result.log_tail = [line.rstrip() for line in evidence.log.splitlines() if line.strip()][-log_lines:]
    result.visible_devices = sorted(set(_DEVICE.findall(evidence.log)))
    if phase == "Succeeded":
        result.passed = smoke.expected_output in evidence.log
        result.reason = "" if result.passed else _silence(result, smoke, evidence)
        return result
    if _lacks_device(pod, smoke.resource):
        result.skipped = True
        result.reason = f"busy: no free {smoke.resource} within {smoke.timeout} s, as the scheduler says"
        return result
    late = "" if phase == "Failed" else f" (after {smoke.timeout} s)"
    result.reason = f"{smoke.subject} {explain_failure(pod, evidence) or _running_on(evidence)}{late}"
    return result


def refused(smoke: Smoke, message: str) -> str:
    """Say why there is no pod if the API server would not create it."""
    return add_remedy(f"the API server refused {smoke.subject}: {message.rstrip('.')}")


def deleted(smoke: Smoke, name: str) -> str:
    """Say why a pod that was created is not there any more."""
    return f"somebody deleted the pod {smoke.namespace}/{name} during the test"


def _silence(result: Result, smoke: Smoke, evidence: Evidence) -> str:
    """Say why a pod that ended well did not pass."""
    if evidence.log_error:
        return f"{smoke.subject} ended well, but {explain_unread_log(evidence)}"
    last = result.log_tail[-1] if result.log_tail else "(no output)"
    return f"{smoke.subject} ended well but never printed {smoke.expected_output!r}; its last line is: {shorten(last)}"


def _running_on(evidence: Evidence) -> str:
    if evidence.log_error:
        return f"is still running, and {explain_unread_log(evidence)}"
    line = find_error_line(evidence.log)
    return f"is still running, and its last word is: {line}" if line else "is still running and has printed nothing"


def _lacks_device(pod: Mapping[str, Any], resource: str) -> bool:
    scheduled = get_condition(pod, "PodScheduled")
    return scheduled.get("status") == "False" and f"Insufficient {resource}" in str(scheduled.get("message"))


def leftovers(pods: Iterable[Object], now: datetime) -> list[str]:
    """Name the test pods of runs that cannot be alive any more: older than their own deadline plus the grace."""
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
