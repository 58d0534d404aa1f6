# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Taking a node into maintenance and out of it: cordon, wait for jobs, evict; and back.

Each round reads the node once and lists its pods once. Whatever is cut off anywhere is gone on with by the next run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Sequence, TypeVar

from .api import ApiError
from .maintenance import (
    ANNOTATION,
    Blocker,
    Maintenance,
    MaintenanceError,
    Plan,
    Rules,
    Sorted,
    UnknownNode,
    blocked_text,
    check_unchanged,
    foreseen_refusal,
    late,
    lost_if_evicted,
    plan_begin,
    plan_end,
    refusal,
    sort_pods,
    uid_of,
)
from .objects import Object, full_name_of

if TYPE_CHECKING:
    from .._kube_api import Cluster

# The server may have done what was asked, and its answer was lost on the way.
_UNANSWERED = frozenset({0, 502, 503, 504})
# The longest an API server is waited for that does not answer, or a node that others keep changing.
API_SECONDS = 60
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 10.0
LONGEST_PAUSE_FOR_JOBS = 30.0

Answer = TypeVar("Answer")


class Blocked(MaintenanceError):
    """Pods are in the way; the node stays cordoned, and the annotation stays."""

    def __init__(self, message: str, blockers: Sequence[Blocker]) -> None:
        super().__init__(message)
        self.blockers = list(blockers)


@dataclass(frozen=True)
class Pace:
    """The clocks, which are arguments for the sake of tests: seconds, and the time of day."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = field(default=lambda: datetime.now(timezone.utc))


@dataclass(frozen=True)
class Wish:
    """What is asked. Times are seconds; a grace period of None is each pod's own."""

    node: str
    reason: str = ""
    rules: Rules = field(default_factory=Rules)
    jobs_timeout: int = 3600
    evict_timeout: int = 300
    grace_period: int | None = None


@dataclass
class Outcome:
    """What was done so far, also if it ends in an exception; pods are ``namespace/name``."""

    plan: Plan | None = None
    resumed: bool = False
    evicted: list[str] = field(default_factory=list)
    waited_for: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Say whether the node was patched or a pod evicted, or would be in check mode."""
        return bool(self.evicted) or bool(self.plan and self.plan.changed)


class _Wait:
    """Time that runs out, in pauses that grow."""

    def __init__(self, pace: Pace, seconds: float, longest: float = LONGEST_PAUSE) -> None:
        self._pace = pace
        self._deadline = pace.clock() + seconds
        self._pause, self._longest = FIRST_PAUSE, longest

    @property
    def left(self) -> float:
        return self._deadline - self._pace.clock()

    @property
    def over(self) -> bool:
        return self.left <= 0

    def pause(self) -> None:
        self._pace.sleep(max(0.0, min(self._pause, self.left)))
        self._pause = min(self._pause * 2, self._longest)


def begin(cluster: Cluster, wish: Wish, outcome: Outcome, pace: Pace | None = None, check_mode: bool = False) -> None:
    """Cordon the node and empty it of the pods that have to go, telling in *outcome* what was done.

    Raises:
        Blocked: pods are in the way, or not gone in time.
        MaintenanceError: the node is unknown, its annotation cannot be read, or somebody interferes.
        ApiError: the server does not answer in time, or refuses.
    """
    pace = pace or Pace()
    since = pace.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    plan = _patch(cluster, wish.node, lambda node: plan_begin(node, wish.reason, since), pace, check_mode)
    outcome.plan, outcome.resumed = plan, plan.before is not None
    emptying = _Emptying(cluster, wish, outcome, pace, check_mode)
    if check_mode:
        emptying.predict()
    else:
        emptying.run()


def end(cluster: Cluster, wish: Wish, outcome: Outcome, pace: Pace | None = None, check_mode: bool = False) -> None:
    """Take the annotation off, and the cordon with it if the node was schedulable before. Raises as ``begin``.

    Of the wish, the node and the reason count; a maintenance for another reason goes on, any ends where none is given.
    That of a node that is not in the cluster is over, and a warning is enough.
    """
    try:
        outcome.plan = _patch(cluster, wish.node, lambda node: plan_end(node, wish.reason), pace or Pace(), check_mode)
    except UnknownNode:
        outcome.warnings.append(
            f"Node {wish.node} is not in the cluster at {cluster.server}, so it has no maintenance to end."
        )


def _patch(cluster: Cluster, name: str, planned: Callable[[Object], Plan], pace: Pace, check_mode: bool) -> Plan:
    """Read the node, plan, and patch it; anew if somebody changed it meanwhile or the server is away for a moment."""
    wait = _Wait(pace, API_SECONDS)
    unsure: Plan | None = None  # a patch whose answer never came
    while True:
        try:
            plan = planned(cluster.node(name))
            if not plan.changed:
                return unsure if unsure and unsure.after == plan.after else plan
            if check_mode:
                return plan
            unsure = plan
            cluster.patch_node(name, plan.patch or {})
        except ApiError as error:
            if error.status == 404:
                raise UnknownNode(_unknown(cluster, name)) from error
            if error.status == 409:
                unsure = None
            elif not error.passing:
                raise
            if wait.over:
                raise
            wait.pause()
        else:
            return plan


def _unknown(cluster: Cluster, name: str) -> str:
    return (
        f"Node {name} is not in the cluster at {cluster.server}; join it first, or set gpu_node_name where the "
        "Kubernetes name differs from the host's."
    )


class _Emptying:
    """The rounds that empty a node; *outcome* is filled in on the way."""

    def __init__(self, cluster: Cluster, wish: Wish, outcome: Outcome, pace: Pace, check_mode: bool) -> None:
        self._cluster, self._wish, self._outcome, self._pace = cluster, wish, outcome, pace
        self._check_mode = check_mode
        self._unsure: dict[str, str] = {}  # UID and name of pods whose eviction was never answered

    def predict(self) -> None:
        """Tell what a run would do if no job ended by itself in time, and budgets stayed as they are. Raises as ``run``."""
        wait = _Wait(self._pace, API_SECONDS)
        found = _patiently(self._sorted, wait)
        self._refuse(found.lasting)
        if self._wish.jobs_timeout:
            self._outcome.waited_for = [full_name_of(pod) for pod in found.finishing]
            going = found.lasting
        else:
            self._refuse(found.finishing)
            going = found.evictable
        blockers = [blocker for blocker in (_patiently(partial(self._try, pod), wait) for pod in going) if blocker]
        kept = {blocker.pod for blocker in blockers}
        self._outcome.evicted = [name for name in map(full_name_of, going) if name not in kept]
        if blockers:
            raise self._blocked(blockers)

    def _try(self, pod: Object) -> Blocker | None:
        """Ask whether the pod may be evicted now, which evicts nobody."""
        metadata, grace = pod["metadata"], self._wish.grace_period
        try:
            self._cluster.evict_pod(metadata["namespace"], metadata["name"], uid_of(pod), grace, dry_run=True)
        except ApiError as error:
            return foreseen_refusal(pod, error)
        return None

    def run(self) -> None:
        """Wait for what ends by itself, then evict what is left."""
        found = self._wait_for_jobs()
        wait = _Wait(self._pace, self._wish.evict_timeout)
        while found.evictable or found.ending:
            # Whoever nobody would start again is not sacrificed, and nobody else in vain.
            self._refuse(found.evictable, self._wish.jobs_timeout)
            refusals = self._evict(found.evictable, wait)
            last = wait.over
            wait.pause()
            found = self._look(wait)
            blockers = late(found, refusals, self._wish.evict_timeout)
            if last and blockers:
                raise self._blocked(blockers)

    def _wait_for_jobs(self) -> Sorted:
        wait = _Wait(self._pace, self._wish.jobs_timeout, LONGEST_PAUSE_FOR_JOBS)
        while True:
            found = self._look(wait)
            self._refuse(found.lasting)
            if not found.finishing or wait.over:
                return found
            seen = self._outcome.waited_for
            seen.extend(name for name in map(full_name_of, found.finishing) if name not in seen)
            wait.pause()

    def _refuse(self, pods: Sequence[Object], waited: int = 0) -> None:
        blockers = lost_if_evicted(pods, self._wish.rules, waited)
        if blockers:
            raise self._blocked(blockers)

    def _blocked(self, blockers: Sequence[Blocker]) -> Blocked:
        return Blocked(blocked_text(self._wish.node, blockers, self._check_mode), blockers)

    def _look(self, wait: _Wait) -> Sorted:
        """Ask for the node and its pods, patiently; time that is up leaves the server API_SECONDS to come back."""
        patience = _Wait(self._pace, max(wait.left, API_SECONDS))
        check_unchanged(_patiently(lambda: self._cluster.node(self._wish.node), patience))
        found = _patiently(self._sorted, patience)
        self._settle(found)
        return found

    def _sorted(self) -> Sorted:
        found = sort_pods(self._cluster.pods(fields=f"spec.nodeName={self._wish.node}"), self._wish.rules)
        self._outcome.left = [full_name_of(pod) for pod in found.left]
        return found

    def _settle(self, found: Sorted) -> None:
        """Count evictions without an answer that took place, as is seen by what the pods do."""
        running = {uid_of(pod) for pod in found.evictable}
        self._outcome.evicted.extend(name for uid, name in self._unsure.items() if uid not in running)
        self._unsure.clear()

    def _evict(self, pods: Sequence[Object], wait: _Wait) -> dict[str, Blocker]:
        """Ask for the eviction of each pod once; return why the server refuses, by UID."""
        refusals: dict[str, Blocker] = {}
        for pod in pods:
            metadata, uid = pod["metadata"], uid_of(pod)
            try:
                self._cluster.evict_pod(metadata["namespace"], metadata["name"], uid, self._wish.grace_period)
            except ApiError as error:
                refusals[uid] = refusal(pod, error)
                if error.status in _UNANSWERED:
                    self._unsure[uid] = full_name_of(pod)
                    if wait.over:
                        break
            else:
                self._outcome.evicted.append(full_name_of(pod))
        return refusals


def _patiently(call: Callable[[], Answer], wait: _Wait) -> Answer:
    while True:
        try:
            return call()
        except ApiError as error:
            if wait.over or not error.passing:
                raise
        wait.pause()


def diff_of(outcome: Outcome) -> dict[str, Any]:
    """Build Ansible's diff from the node and the pods concerned; the time is left out, so that a check predicts it."""
    plan = outcome.plan
    if not plan or not outcome.changed:
        return {"before": {}, "after": {}}
    header = f"maintenance of node {plan.node}"
    before: Object = {"cordoned": plan.was_cordoned, ANNOTATION: _shown(plan.before)}
    after: Object = {"cordoned": plan.cordoned, ANNOTATION: _shown(plan.after)}
    if outcome.evicted:
        before["pods"], after["pods"] = sorted(outcome.evicted), []
    return {"before": before, "after": after, "before_header": header, "after_header": header}


def _shown(record: Maintenance | None) -> Object | None:
    return {"reason": record.reason, "was_schedulable": record.was_schedulable} if record else None
