# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides on a node's maintenance: what to patch, which pods are evicted, and which pods block it.

The annotation ``gpu-kubernetes/maintenance`` records as JSON that a node is in maintenance and whether it was schedulable
before. It is written in the same patch as the cordon, so that an interrupted run can be resumed and a cordon by others stays.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Iterable, Mapping, Sequence

from ..._kube_error import MISSING_RIGHT, ApiError, SentenceError, shorten
from ..._sharing.catalogue import OWN_PLUGIN
from ..._vendors import OTHER_RESOURCES
from ..objects import FINISHED_PHASES, Object, get_annotations, get_full_name, get_name, is_schedulable, is_tolerated
from ..requests import list_requested_resources

ANNOTATION = "gpu-kubernetes/maintenance"
#: Resources of NVIDIA, of the sharing strategies with a device plugin of their own, of the GPUs of other vendors, and of device plugins that this
#: collection does not deploy.
GPU_RESOURCES = (
    "nvidia.com/*",
    *(pattern for row in OWN_PLUGIN for pattern in row.resources),
    *OTHER_RESOURCES,
    "aliyun.com/gpu-*",
    "tencent.com/vcuda-*",
    "volcano.sh/*gpu*",
)
# A sentence names at most this many pods; the list of blockers has all of them.
MAX_NAMED = 10

MIRROR = "kubernetes.io/config.mirror"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class MaintenanceError(SentenceError):
    """The maintenance cannot begin, continue or end; the text is one sentence with cause and remedy."""


class UnknownNode(MaintenanceError):
    """The node is not in the cluster."""


@dataclass(frozen=True)
class Maintenance:
    """The content of the annotation; ``since`` is RFC 3339 by the controller's clock, or empty.

    The node's kubelet can write it, so the reason is one printable line of limited length. It can also uncordon its node itself.
    """

    was_schedulable: bool
    reason: str
    since: str

    def as_text(self) -> str:
        """Return the value of the annotation."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Plan:
    """The change of the node: ``patch`` is a merge patch or None; the annotation before and after it."""

    node: str
    patch: Object | None
    before: Maintenance | None
    after: Maintenance | None
    was_cordoned: bool
    cordoned: bool

    @property
    def changed(self) -> bool:
        """Return whether there is a patch."""
        return self.patch is not None


def read_maintenance(node: Mapping[str, Any]) -> Maintenance | None:
    """Return the annotation's content; None if the node is not in maintenance. Raises MaintenanceError if it is damaged or forged."""
    text = get_annotations(node).get(ANNOTATION)
    if text is None:
        return None
    try:
        content = json.loads(text)
        was_schedulable = content["was_schedulable"]
        if not isinstance(was_schedulable, bool):
            raise TypeError
        since = str(content.get("since") or "")
        return Maintenance(was_schedulable, shorten(content.get("reason")), since if _TIME.fullmatch(since) else "")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise MaintenanceError(
            f"Node {get_name(node)}: annotation {ANNOTATION} cannot be read, so it is unknown whether the node was "
            "schedulable before its maintenance; remove it, uncordon the node if it was, and run again."
        ) from None


def describe_maintenance(node: Mapping[str, Any]) -> Object | None:
    """Return ``{since, reason, was_schedulable, message}`` of a node in maintenance; None for any other node.

    The message is a clause with the remedy. If the annotation cannot be read, ``was_schedulable`` is None and since and reason are empty.
    """
    cordon = "" if is_schedulable(node) else "cordoned, and "
    try:
        found = read_maintenance(node)
    except MaintenanceError:
        message = f"is {cordon}in maintenance, and the annotation {ANNOTATION} cannot be read; remove it, and uncordon the node with kubectl"
        return {"since": "", "reason": "", "was_schedulable": None, "message": message}
    if found is None:
        return None
    since = f" since {found.since}" if found.since else ""
    cause = f"is {cordon}in maintenance by this collection{since} for {found.reason or 'a reason that is not recorded'}"
    end = (
        "uncordon the node with the role gpu_node_maintenance (tasks_from: end)"
        if found.was_schedulable
        else "end it with the role gpu_node_maintenance (tasks_from: end), after which the node stays cordoned as it was before"
    )
    message = f"{cause}; run the playbook again if one was interrupted, or {end}"
    return {"since": found.since, "reason": found.reason, "was_schedulable": found.was_schedulable, "message": message}


def plan_begin(node: Mapping[str, Any], reason: str, since: str) -> Plan:
    """Return the plan that cordons the node and sets the annotation.

    An existing annotation stays, with one exception: if someone has uncordoned the node since, it becomes schedulable at the end.
    """
    known, schedulable = read_maintenance(node), is_schedulable(node)
    current = known or Maintenance(schedulable, shorten(reason), since)
    desired = replace(current, was_schedulable=current.was_schedulable or schedulable)
    return _plan(node, known, desired, cordoned=True)


def plan_end(node: Mapping[str, Any], reason: str = "") -> Plan:
    """Return the plan that removes the annotation, and the cordon if the node was schedulable before.

    A node without the annotation is not changed; with a *reason*, neither is a node in maintenance for another reason.
    """
    known = read_maintenance(node)
    if known and reason and known.reason != shorten(reason):
        return _plan(node, known, known, cordoned=not is_schedulable(node))
    return _plan(node, known, None, cordoned=not is_schedulable(node) and not (known and known.was_schedulable))


def _plan(node: Mapping[str, Any], known: Maintenance | None, desired: Maintenance | None, cordoned: bool) -> Plan:
    metadata: Object = {}
    patch: Object = {}
    if known != desired:
        metadata["annotations"] = {ANNOTATION: desired.as_text() if desired else None}
    if cordoned == is_schedulable(node):
        patch["spec"] = {"unschedulable": True if cordoned else None}
    if metadata or patch:
        # The server rejects the patch (409) if the node has changed since it was read.
        metadata["resourceVersion"] = (node.get("metadata") or {}).get("resourceVersion")
        patch["metadata"] = metadata
    return Plan(get_name(node), patch or None, known, desired, not is_schedulable(node), cordoned)


def check_unchanged(node: Mapping[str, Any]) -> None:
    """Raise MaintenanceError if the maintenance was ended or the node uncordoned during the drain."""
    if read_maintenance(node) is None:
        change = "The maintenance of node {} was ended"
    elif is_schedulable(node):
        change = "Node {} was uncordoned"
    else:
        return
    raise MaintenanceError(
        f"{change.format(get_name(node))} during its drain, so no more pods are evicted; agree with "
        "the person or program that did it, and run again."
    )


@dataclass(frozen=True)
class Rules:
    """Which pods are evicted: those with ``resources`` (shell patterns) or all; ``force`` includes those without a controller."""

    resources: Sequence[str] = GPU_RESOURCES
    everything: bool = False
    force: bool = False


@dataclass
class DrainPods:
    """The pods that a drain concerns, each list sorted by name.

    ``finite`` end by themselves, ``permanent`` do not, ``terminating`` are being deleted. ``left`` hold a GPU and are not
    evicted, because their DaemonSet or their kubelet would start them again.
    """

    finite: list[Object] = field(default_factory=list)
    permanent: list[Object] = field(default_factory=list)
    terminating: list[Object] = field(default_factory=list)
    left: list[Object] = field(default_factory=list)

    @property
    def evictable(self) -> list[Object]:
        """Return the pods that are not being deleted."""
        return sorted([*self.finite, *self.permanent], key=get_full_name)


def sort_pods(pods: Iterable[Object], rules: Rules) -> DrainPods:
    """Return the pods of one node that a drain concerns; finished ones hold nothing."""
    found = DrainPods()
    for pod in sorted(pods, key=get_full_name):
        if (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
            continue
        holds = any(fnmatchcase(name, pattern) for name in list_requested_resources(pod) for pattern in rules.resources)
        if _is_kept(pod):
            if holds:
                found.left.append(pod)
        elif holds or rules.everything:
            _select_list(pod, found).append(pod)
    return found


def _select_list(pod: Mapping[str, Any], found: DrainPods) -> list[Object]:
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return found.terminating
    return found.finite if _is_finite(pod) else found.permanent


def _get_controller(pod: Mapping[str, Any]) -> Object:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or []
    return next((dict(owner) for owner in owners if owner.get("controller")), {})


def _is_kept(pod: Mapping[str, Any]) -> bool:
    return MIRROR in get_annotations(pod) or _get_controller(pod).get("kind") == "DaemonSet"


def _is_finite(pod: Mapping[str, Any]) -> bool:
    """Return whether the pod ends by itself: Jobs of Kubernetes and of training operators, and pods that are not restarted."""
    return _get_controller(pod).get("kind") == "Job" or (pod.get("spec") or {}).get("restartPolicy") in (
        "Never",
        "OnFailure",
    )


@dataclass(frozen=True)
class Blocker:
    """A pod (``namespace/name``) that blocks the drain; reason and remedy are clauses."""

    pod: str
    reason: str
    remedy: str

    def as_dict(self) -> dict[str, str]:
        """Return plain JSON types."""
        return asdict(self)


def find_lost_pods(pods: Iterable[Object], rules: Rules, waited: int = 0) -> list[Blocker]:
    """Return the pods that must not be evicted because no controller would start them again; *waited* is in seconds."""
    if rules.force:
        return []
    return [_explain_lost(pod, waited) for pod in pods if not _get_controller(pod)]


def _explain_lost(pod: Mapping[str, Any], waited: int) -> Blocker:
    before = f"has not ended in {waited} s, and " if waited and _is_finite(pod) else ""
    return Blocker(
        get_full_name(pod),
        f"{before}has no controller that would start it again",
        "delete it when it is no longer needed, or set gpu_node_maintenance_force (or force)",
    )


def find_remaining(found: DrainPods, refusals: Mapping[str, Blocker], seconds: int) -> list[Blocker]:
    """Return the pods that remain after the timeout; ``refusals`` are the API server's, by ``get_uid``."""
    blockers = [_explain_terminating(pod, seconds) for pod in found.terminating]
    blockers += [refusals.get(get_uid(pod)) or _explain_remaining(pod, seconds) for pod in found.evictable]
    return sorted(blockers, key=lambda blocker: blocker.pod)


def get_uid(pod: Mapping[str, Any]) -> str:
    """Return ``metadata.uid``: a pod of a StatefulSet has the same name after a restart."""
    return str((pod.get("metadata") or {}).get("uid") or "")


def _explain_terminating(pod: Mapping[str, Any], seconds: int) -> Blocker:
    metadata = pod.get("metadata") or {}
    finalizers = ", ".join(metadata.get("finalizers") or [])
    return Blocker(
        get_full_name(pod),
        f"is being deleted, due at {metadata.get('deletionTimestamp')}"
        + (f", and has the finalizers {finalizers}" if finalizers else ""),
        f"{_suggest_timeout(seconds)}, or check why its kubelet does not stop it",
    )


def _explain_remaining(pod: Mapping[str, Any], seconds: int) -> Blocker:
    if is_tolerated((pod.get("spec") or {}).get("tolerations") or [], _CORDON):
        return Blocker(
            get_full_name(pod),
            "tolerates the cordon, so that its controller may have started it here again",
            "scale down or pause its controller",
        )
    return Blocker(get_full_name(pod), "still runs", _suggest_timeout(seconds))


def _suggest_timeout(seconds: int) -> str:
    return f"set gpu_node_maintenance_evict_timeout (or evict_timeout) to more than {seconds} s"


def explain_refusal(pod: Mapping[str, Any], error: ApiError) -> Blocker:
    """Return the blocker for a rejected eviction. Raises the error if a retry cannot help."""
    if error.status in (400, 401) or MISSING_RIGHT in error.causes:
        raise error
    name, budget = get_full_name(pod), error.causes.get("DisruptionBudget")
    if _is_budget(error):
        return Blocker(
            name,
            f"is protected by a PodDisruptionBudget ({budget or str(error).rstrip('.')})",
            "add replicas or lower the minimum of the budget, or delete the pod yourself",
        )
    return Blocker(name, f"cannot be evicted ({str(error).rstrip('.')})", "correct that, or delete the pod yourself")


def _is_budget(error: ApiError) -> bool:
    return "DisruptionBudget" in error.causes or "isruption" in str(error)


def explain_dry_run(pod: Mapping[str, Any], error: ApiError) -> Blocker | None:
    """Return the blocker for a rejected dry run of an eviction; None if the answer does not concern the eviction.

    Raises the error as ``explain_refusal`` does, and if a retry may succeed.
    """
    # A webhook without dry runs; a pod that was deleted or replaced since the list.
    if error.status in (400, 404, 409):
        return None
    if error.is_transient and not _is_budget(error):
        raise error
    return explain_refusal(pod, error)


def format_blockers(node: str, blockers: Sequence[Blocker], check_mode: bool = False) -> str:
    """Return one sentence with the blocking pods, reasons and remedies."""
    named = "; ".join(f"{blocker.pod} {blocker.reason}: {blocker.remedy}" for blocker in blockers[:MAX_NAMED])
    more = f"; and {len(blockers) - MAX_NAMED} more" if len(blockers) > MAX_NAMED else ""
    count = f"{len(blockers)} pod{'s' if len(blockers) > 1 else ''}"
    if check_mode:
        return f"The drain of node {node} would be blocked by {count}, and the node would stay cordoned: {named}{more}."
    return (
        f"The drain of node {node} is blocked by {count}, and the node stays cordoned: {named}{more}. "
        "Then run again, which resumes the drain."
    )
