# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deciding on a node's maintenance: what to patch, which pods have to go, and who is in the way.

That a node is in maintenance, and whether it was schedulable before, stands in its annotation
``gpu-kubernetes/maintenance`` as JSON, written in the same patch as the cordon. So whatever interrupts a run, the next
one knows where it is, and nobody's own cordon is ever lifted.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Iterable, Mapping, Sequence

from .._sharing.catalogue import OWN_PLUGIN
from .api import MISSING_RIGHT, ApiError
from .objects import (
    FINISHED_PHASES,
    Object,
    annotations_of,
    full_name_of,
    is_schedulable,
    name_of,
    tolerates,
)
from .requests import list_requested_resources

ANNOTATION = "gpu-kubernetes/maintenance"
#: Resources of NVIDIA, of the sharing strategies with a device plugin of their own, and of device plugins that this collection does not deploy.
GPU_RESOURCES = (
    "nvidia.com/*",
    "aliyun.com/gpu-*",
    *(pattern for row in OWN_PLUGIN for pattern in row.resources),
    "tencent.com/vcuda-*",
    "volcano.sh/*gpu*",
)
# How many pods a sentence names; the list of blockers has them all.
NAMED = 10

MIRROR = "kubernetes.io/config.mirror"
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class MaintenanceError(Exception):
    """The maintenance cannot begin, go on or end; the text is one sentence with cause and remedy."""


class UnknownNode(MaintenanceError):
    """The node is not in the cluster."""


@dataclass(frozen=True)
class Maintenance:
    """What the annotation says; ``since`` is RFC 3339 by the controller's clock."""

    was_schedulable: bool
    reason: str
    since: str

    def as_text(self) -> str:
        """Return the value of the annotation."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class Plan:
    """What to patch on the node: ``patch`` is a merge patch or None; the annotation as it was, and as it shall be."""

    node: str
    patch: Object | None
    before: Maintenance | None
    after: Maintenance | None
    was_cordoned: bool
    cordoned: bool

    @property
    def changed(self) -> bool:
        """Say whether there is anything to patch."""
        return self.patch is not None


def recorded(node: Mapping[str, Any]) -> Maintenance | None:
    """Read the annotation; None if the node is in no maintenance. Raises MaintenanceError if it cannot be read."""
    text = annotations_of(node).get(ANNOTATION)
    if text is None:
        return None
    try:
        said = json.loads(text)
        was_schedulable = said["was_schedulable"]
        if not isinstance(was_schedulable, bool):
            raise TypeError
        return Maintenance(was_schedulable, str(said.get("reason") or ""), str(said.get("since") or ""))
    except (ValueError, TypeError, KeyError):
        raise MaintenanceError(
            f"Node {name_of(node)}: annotation {ANNOTATION} cannot be read, so it is unknown whether the node was "
            "schedulable before its maintenance; remove it, uncordon the node if it was, and run again."
        ) from None


def plan_begin(node: Mapping[str, Any], reason: str, since: str) -> Plan:
    """Decide what to patch so that the node is cordoned and says that it is in maintenance.

    An annotation that is there stays as it is, with one exception: if somebody has uncordoned the node since, it is
    wanted schedulable, whatever it was before, and will be in the end.
    """
    known, schedulable = recorded(node), is_schedulable(node)
    kept = known or Maintenance(schedulable, reason, since)
    wanted = replace(kept, was_schedulable=kept.was_schedulable or schedulable)
    return _plan(node, known, wanted, cordoned=True)


def plan_end(node: Mapping[str, Any], reason: str = "") -> Plan:
    """Decide what to patch so that the node is in no maintenance, and schedulable if it was before.

    A node without the annotation is left as it is, and so is one that was cordoned before or is uncordoned already. With a
    *reason*, so is one that is in maintenance for another.
    """
    known = recorded(node)
    if known and reason and known.reason != reason:
        return _plan(node, known, known, cordoned=not is_schedulable(node))
    return _plan(node, known, None, cordoned=not is_schedulable(node) and not (known and known.was_schedulable))


def _plan(node: Mapping[str, Any], known: Maintenance | None, wanted: Maintenance | None, cordoned: bool) -> Plan:
    metadata: Object = {}
    patch: Object = {}
    if known != wanted:
        metadata["annotations"] = {ANNOTATION: wanted.as_text() if wanted else None}
    if cordoned == is_schedulable(node):
        patch["spec"] = {"unschedulable": True if cordoned else None}
    if metadata or patch:
        # The server refuses the patch (409) if somebody changed the node since it was read.
        metadata["resourceVersion"] = (node.get("metadata") or {}).get("resourceVersion")
        patch["metadata"] = metadata
    return Plan(name_of(node), patch or None, known, wanted, not is_schedulable(node), cordoned)


def check_unchanged(node: Mapping[str, Any]) -> None:
    """Raise MaintenanceError if somebody has ended the maintenance or uncordoned the node while it was emptied."""
    if recorded(node) is None:
        done = "ended the maintenance of"
    elif is_schedulable(node):
        done = "uncordoned"
    else:
        return
    raise MaintenanceError(
        f"Somebody {done} node {name_of(node)} while it was being emptied, so no more pods are evicted; agree with "
        "whoever did, and run again."
    )


@dataclass(frozen=True)
class Rules:
    """Which pods have to go: those with ``resources`` (shell patterns) or all, and whether without a controller too."""

    resources: Sequence[str] = GPU_RESOURCES
    everything: bool = False
    force: bool = False


@dataclass
class Sorted:
    """The pods of a node that matter, by what is to become of them, each list sorted by name.

    ``finishing`` run to an end by themselves, ``lasting`` do not; ``ending`` are being deleted already; ``left`` hold a
    GPU and are not evicted, for their DaemonSet or their kubelet would start them again.
    """

    finishing: list[Object] = field(default_factory=list)
    lasting: list[Object] = field(default_factory=list)
    ending: list[Object] = field(default_factory=list)
    left: list[Object] = field(default_factory=list)

    @property
    def evictable(self) -> list[Object]:
        """What is not ending yet."""
        return sorted([*self.finishing, *self.lasting], key=full_name_of)


def sort_pods(pods: Iterable[Object], rules: Rules) -> Sorted:
    """Sort the pods of one node. Finished ones hold nothing any more and are left out."""
    found = Sorted()
    for pod in sorted(pods, key=full_name_of):
        if (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
            continue
        holds = any(fnmatchcase(name, pattern) for name in list_requested_resources(pod) for pattern in rules.resources)
        if _stays(pod):
            if holds:
                found.left.append(pod)
        elif holds or rules.everything:
            _list_for(pod, found).append(pod)
    return found


def _list_for(pod: Mapping[str, Any], found: Sorted) -> list[Object]:
    if (pod.get("metadata") or {}).get("deletionTimestamp"):
        return found.ending
    return found.finishing if _runs_to_an_end(pod) else found.lasting


def _controller(pod: Mapping[str, Any]) -> Object:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or []
    return next((dict(owner) for owner in owners if owner.get("controller")), {})


def _stays(pod: Mapping[str, Any]) -> bool:
    return MIRROR in annotations_of(pod) or _controller(pod).get("kind") == "DaemonSet"


def _runs_to_an_end(pod: Mapping[str, Any]) -> bool:
    """Jobs of any kind: those of Kubernetes and of training operators, and single pods that are not restarted."""
    return _controller(pod).get("kind") == "Job" or (pod.get("spec") or {}).get("restartPolicy") in (
        "Never",
        "OnFailure",
    )


@dataclass(frozen=True)
class Blocker:
    """A pod (``namespace/name``) that keeps the node from being empty: why, and what to do, as clauses."""

    pod: str
    reason: str
    remedy: str

    def as_dict(self) -> dict[str, str]:
        """Return plain JSON types."""
        return asdict(self)


def lost_if_evicted(pods: Iterable[Object], rules: Rules, waited: int = 0) -> list[Blocker]:
    """Return the pods that nobody would start again, and that may not be evicted for that; *waited* is seconds."""
    if rules.force:
        return []
    return [_lost(pod, waited) for pod in pods if not _controller(pod)]


def _lost(pod: Mapping[str, Any], waited: int) -> Blocker:
    before = f"has not ended in {waited} s, and " if waited and _runs_to_an_end(pod) else ""
    return Blocker(
        full_name_of(pod),
        f"{before}has no controller, so nobody would start it again",
        "delete it when it may go, or set gpu_node_maintenance_force (or force)",
    )


def late(found: Sorted, refusals: Mapping[str, Blocker], seconds: int) -> list[Blocker]:
    """Return the pods that are still there when time is up; ``refusals`` are the API server's, by ``uid_of``."""
    blockers = [_still_ending(pod, seconds) for pod in found.ending]
    blockers += [refusals.get(uid_of(pod)) or _still_there(pod, seconds) for pod in found.evictable]
    return sorted(blockers, key=lambda blocker: blocker.pod)


def uid_of(pod: Mapping[str, Any]) -> str:
    """Return ``metadata.uid``: a pod of a StatefulSet keeps its name when it starts again elsewhere."""
    return str((pod.get("metadata") or {}).get("uid") or "")


def _still_ending(pod: Mapping[str, Any], seconds: int) -> Blocker:
    metadata = pod.get("metadata") or {}
    finalizers = ", ".join(metadata.get("finalizers") or [])
    return Blocker(
        full_name_of(pod),
        f"is to be gone by {metadata.get('deletionTimestamp')} and is not"
        + (f", held by its finalizers {finalizers}" if finalizers else ""),
        f"{_more_than(seconds)}, or look why its kubelet does not let go",
    )


def _still_there(pod: Mapping[str, Any], seconds: int) -> Blocker:
    if tolerates((pod.get("spec") or {}).get("tolerations") or [], _CORDON):
        return Blocker(
            full_name_of(pod),
            "tolerates the cordon, so that it may have been started here again",
            "scale down or pause what it belongs to",
        )
    return Blocker(full_name_of(pod), "is still there", _more_than(seconds))


def _more_than(seconds: int) -> str:
    return f"give it more than {seconds} s by gpu_node_maintenance_evict_timeout (or evict_timeout)"


def refusal(pod: Mapping[str, Any], error: ApiError) -> Blocker:
    """Turn the answer to an eviction into a blocker. Raises the error if no later try could be answered otherwise."""
    if error.status in (400, 401) or MISSING_RIGHT in error.causes:
        raise error
    name, budget = full_name_of(pod), error.causes.get("DisruptionBudget")
    if _by_budget(error):
        return Blocker(
            name,
            f"is kept by a PodDisruptionBudget ({budget or str(error).rstrip('.')})",
            "let the budget allow one to go, with more replicas or a lower minimum, or delete the pod yourself",
        )
    return Blocker(name, f"cannot be evicted ({str(error).rstrip('.')})", "put that right, or delete the pod yourself")


def _by_budget(error: ApiError) -> bool:
    return "DisruptionBudget" in error.causes or "isruption" in str(error)


def foreseen_refusal(pod: Mapping[str, Any], error: ApiError) -> Blocker | None:
    """Turn the answer to a dry run of an eviction into a blocker; None if it says nothing of the eviction itself.

    Raises the error as ``refusal`` does, and where the server is only away or busy for a moment.
    """
    # A webhook that knows no dry runs; a pod that went meanwhile, or is another one now.
    if error.status in (400, 404, 409):
        return None
    if error.passing and not _by_budget(error):
        raise error
    return refusal(pod, error)


def blocked_text(node: str, blockers: Sequence[Blocker], check_mode: bool = False) -> str:
    """Say in one sentence which pods are in the way, or would be in check mode, why, and what to do."""
    named = "; ".join(f"{blocker.pod} {blocker.reason}: {blocker.remedy}" for blocker in blockers[:NAMED])
    more = f"; and {len(blockers) - NAMED} more" if len(blockers) > NAMED else ""
    count = f"{len(blockers)} pod{'s' if len(blockers) > 1 else ''}"
    if check_mode:
        return f"Node {node} would stay cordoned with {count} in the way: {named}{more}."
    return (
        f"Node {node} stays cordoned with {count} in the way: {named}{more}. Then run again, which goes on from here."
    )
