# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Begins and ends the maintenance of a node: cordon, wait for jobs, evict; uncordon.

Each round reads the node once and lists its pods once. An interrupted run can be repeated; it resumes where it stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..._kube_error import ApiError
from ..objects import Object, get_full_name
from ..retries import API_SECONDS, Timing, Wait, retry
from .plan import (
    ANNOTATION,
    Blocker,
    DrainPods,
    Maintenance,
    MaintenanceError,
    Plan,
    Rules,
    UnknownNode,
    check_unchanged,
    explain_dry_run,
    explain_refusal,
    find_lost_pods,
    find_remaining,
    format_blockers,
    get_uid,
    plan_begin,
    plan_end,
    sort_pods,
)

if TYPE_CHECKING:
    from ..._kube_api import Cluster

# The server may have carried out the request although its response is missing.
_UNANSWERED = frozenset({0, 502, 503, 504})
LONGEST_PAUSE_FOR_JOBS = 30.0


class Blocked(MaintenanceError):
    """Pods block the drain; the node stays cordoned, and the annotation stays."""

    def __init__(self, message: str, blockers: Sequence[Blocker]) -> None:
        super().__init__(message)
        self.blockers = list(blockers)


@dataclass(frozen=True)
class DrainParams:
    """The parameters. Times are in seconds; a grace period of None is each pod's own."""

    node: str
    reason: str = ""
    rules: Rules = field(default_factory=Rules)
    jobs_timeout: int = 3600
    evict_timeout: int = 300
    grace_period: int | None = None


@dataclass
class Outcome:
    """What was done, also if the run ends in an exception; pods are ``namespace/name``."""

    plan: Plan | None = None
    resumed: bool = False
    evicted: list[str] = field(default_factory=list)
    waited_for: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Return whether the node was patched or a pod evicted, or would be in check mode."""
        return bool(self.evicted) or bool(self.plan and self.plan.changed)


def begin_maintenance(
    cluster: Cluster, params: DrainParams, outcome: Outcome, timing: Timing | None = None, check_mode: bool = False
) -> None:
    """Cordon the node and evict its pods; *outcome* records what was done.

    Raises:
        Blocked: pods cannot be evicted, or remain after the timeout.
        MaintenanceError: the node is unknown, its annotation cannot be read, or the maintenance was ended by others.
        ApiError: the server does not answer in time, or rejects a request.
    """
    timing = timing or Timing()
    since = timing.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    plan = _patch(cluster, params.node, lambda node: plan_begin(node, params.reason, since), timing, check_mode)
    outcome.plan, outcome.resumed = plan, plan.before is not None
    drain = _Drain(cluster, params, outcome, timing, check_mode)
    if check_mode:
        drain.predict()
    else:
        drain.run()


def end_maintenance(
    cluster: Cluster, params: DrainParams, outcome: Outcome, timing: Timing | None = None, check_mode: bool = False
) -> None:
    """Remove the annotation, and the cordon if the node was schedulable before. Raises as ``begin_maintenance``.

    Only the node and the reason count; a maintenance for another reason continues. A node that is not in the cluster gives a warning.
    """
    try:
        outcome.plan = _patch(
            cluster, params.node, lambda node: plan_end(node, params.reason), timing or Timing(), check_mode
        )
    except UnknownNode:
        outcome.warnings.append(
            f"Node {params.node} is not in the cluster at {cluster.server}, so it has no maintenance to end."
        )


def _patch(cluster: Cluster, name: str, plan_node: Callable[[Object], Plan], timing: Timing, check_mode: bool) -> Plan:
    """Read the node, plan and patch it; retry if the node has changed since or the server cannot be reached."""
    wait = Wait(timing, API_SECONDS)
    unanswered: Plan | None = None
    while True:
        try:
            plan = plan_node(cluster.node(name))
            if not plan.changed:
                return unanswered if unanswered and unanswered.after == plan.after else plan
            if check_mode:
                return plan
            unanswered = plan
            cluster.patch_node(name, plan.patch or {})
        except ApiError as error:
            if error.status == 404:
                raise UnknownNode(_explain_unknown(cluster, name)) from error
            if error.status == 409:
                unanswered = None
            elif not error.is_transient:
                raise
            if wait.over:
                raise
            wait.pause()
        else:
            return plan


def _explain_unknown(cluster: Cluster, name: str) -> str:
    return (
        f"Node {name} is not in the cluster at {cluster.server}; join it first, or set gpu_node_name where the "
        "Kubernetes name differs from the host's."
    )


class _Drain:
    """The rounds of a drain; *outcome* records what was done."""

    def __init__(
        self, cluster: Cluster, params: DrainParams, outcome: Outcome, timing: Timing, check_mode: bool
    ) -> None:
        self._cluster, self._params, self._outcome, self._timing = cluster, params, outcome, timing
        self._check_mode = check_mode
        self._unanswered: dict[str, str] = {}  # UID and name of pods

    def predict(self) -> None:
        """Record what a run would do if no job ended in time and budgets stayed as they are. Raises as ``run``."""
        wait = Wait(self._timing, API_SECONDS)
        found = retry(self._list_pods, wait)
        self._refuse(found.permanent)
        if self._params.jobs_timeout:
            self._outcome.waited_for = [get_full_name(pod) for pod in found.finite]
            going = found.permanent
        else:
            self._refuse(found.finite)
            going = found.evictable
        blockers = [blocker for blocker in (retry(partial(self._dry_run, pod), wait) for pod in going) if blocker]
        kept = {blocker.pod for blocker in blockers}
        self._outcome.evicted = [name for name in map(get_full_name, going) if name not in kept]
        if blockers:
            raise self._blocked(blockers)

    def _dry_run(self, pod: Object) -> Blocker | None:
        """Return why the pod cannot be evicted now, or None."""
        metadata, grace = pod["metadata"], self._params.grace_period
        try:
            self._cluster.evict_pod(metadata["namespace"], metadata["name"], get_uid(pod), grace, dry_run=True)
        except ApiError as error:
            return explain_dry_run(pod, error)
        return None

    def run(self) -> None:
        """Wait for the pods that end by themselves, then evict the others."""
        found = self._wait_for_jobs()
        wait = Wait(self._timing, self._params.evict_timeout)
        while found.evictable or found.terminating:
            # A pod that no controller would start again blocks the drain before others are evicted in vain.
            self._refuse(found.evictable, self._params.jobs_timeout)
            refusals = self._evict(found.evictable, wait)
            last = wait.over
            wait.pause()
            found = self._read_pods(wait)
            blockers = find_remaining(found, refusals, self._params.evict_timeout)
            if last and blockers:
                raise self._blocked(blockers)

    def _wait_for_jobs(self) -> DrainPods:
        wait = Wait(self._timing, self._params.jobs_timeout, longest=LONGEST_PAUSE_FOR_JOBS)
        while True:
            found = self._read_pods(wait)
            self._refuse(found.permanent)
            if not found.finite or wait.over:
                return found
            names = self._outcome.waited_for
            names.extend(name for name in map(get_full_name, found.finite) if name not in names)
            wait.pause()

    def _refuse(self, pods: Sequence[Object], waited: int = 0) -> None:
        blockers = find_lost_pods(pods, self._params.rules, waited)
        if blockers:
            raise self._blocked(blockers)

    def _blocked(self, blockers: Sequence[Blocker]) -> Blocked:
        return Blocked(format_blockers(self._params.node, blockers, self._check_mode), blockers)

    def _read_pods(self, wait: Wait) -> DrainPods:
        """Return the node's pods; a server that cannot be reached is retried for at least API_SECONDS."""
        retries = Wait(self._timing, max(wait.left, API_SECONDS))
        check_unchanged(retry(lambda: self._cluster.node(self._params.node), retries))
        found = retry(self._list_pods, retries)
        self._resolve_unanswered(found)
        return found

    def _list_pods(self) -> DrainPods:
        found = sort_pods(self._cluster.pods(fields=f"spec.nodeName={self._params.node}"), self._params.rules)
        self._outcome.left = [get_full_name(pod) for pod in found.left]
        return found

    def _resolve_unanswered(self, found: DrainPods) -> None:
        """Record evictions without an answer that took place: their pods are deleted."""
        running = {get_uid(pod) for pod in found.evictable}
        self._outcome.evicted.extend(name for uid, name in self._unanswered.items() if uid not in running)
        self._unanswered.clear()

    def _evict(self, pods: Sequence[Object], wait: Wait) -> dict[str, Blocker]:
        """Request the eviction of each pod once; return the rejections by UID."""
        refusals: dict[str, Blocker] = {}
        for pod in pods:
            metadata, uid = pod["metadata"], get_uid(pod)
            try:
                self._cluster.evict_pod(metadata["namespace"], metadata["name"], uid, self._params.grace_period)
            except ApiError as error:
                refusals[uid] = explain_refusal(pod, error)
                if error.status in _UNANSWERED:
                    self._unanswered[uid] = get_full_name(pod)
                    if wait.over:
                        break
            else:
                self._outcome.evicted.append(get_full_name(pod))
        return refusals


def build_diff(outcome: Outcome) -> dict[str, Any]:
    """Return Ansible's diff of the node and its pods, without the time, so that check mode predicts it."""
    plan = outcome.plan
    if not plan or not outcome.changed:
        return {"before": {}, "after": {}}
    header = f"maintenance of node {plan.node}"
    before: Object = {"cordoned": plan.was_cordoned, ANNOTATION: _format_maintenance(plan.before)}
    after: Object = {"cordoned": plan.cordoned, ANNOTATION: _format_maintenance(plan.after)}
    if outcome.evicted:
        before["pods"], after["pods"] = sorted(outcome.evicted), []
    return {"before": before, "after": after, "before_header": header, "after_header": header}


def _format_maintenance(record: Maintenance | None) -> Object | None:
    return {"reason": record.reason, "was_schedulable": record.was_schedulable} if record else None
