# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the smoke test: all pods at once, one wait for all, logs side by side, and always a clean floor after."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Callable, Generic, Mapping, Sequence, TypeVar

from .api import ApiError, run_parallel
from .objects import Object, get_allocatable, get_name, group_by_node
from .pod_failures import Evidence
from .smoke import (
    RUN_LABEL,
    Result,
    Smoke,
    Verdict,
    came_too_early,
    deleted,
    is_decided,
    labels_for,
    leftovers,
    manifest,
    precheck,
    refused,
    verdict,
)
from .survey import UNFINISHED, collect_evidence

if TYPE_CHECKING:
    from .._kube_api import Cluster

LOG_LINES = 200
CLEANUP_SECONDS = 30

Kind = TypeVar("Kind", bound=Verdict)


@dataclass(frozen=True)
class Pace:
    """How often to look, in seconds; the clocks are arguments for the sake of tests."""

    interval: float = 2
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = field(default=lambda: datetime.now(timezone.utc))


@dataclass
class Outcome(Generic[Kind]):
    """The results in order of the nodes asked for, and what was swept up of earlier runs."""

    results: list[Kind]
    removed_leftovers: list[str]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return what a module answers, without the warnings."""
        return {
            "changed": bool(self.removed_leftovers),
            "ok": not any(result.failed for result in self.results),
            "failed_nodes": [result.node for result in self.results if result.failed],
            "skipped_nodes": [result.node for result in self.results if result.skipped],
            "removed_leftovers": self.removed_leftovers,
            "results": [result.as_dict() for result in self.results],
        }


def run_smoke_test(
    cluster: Cluster, smoke: Smoke, nodes: Sequence[str], pace: Pace | None = None, check_mode: bool = False
) -> Outcome[Result]:
    """Try one pod on each node and judge it. Raises ApiError, after cleaning up what it can."""
    pace = pace or Pace()
    known = {get_name(node): node for node in cluster.nodes()}
    placed = group_by_node(cluster.pods(fields=UNFINISHED))

    def check(name: str) -> Result | None:
        return precheck(name, known.get(name), placed.get(name, []), smoke, check_mode)

    def test(ready: Sequence[str], run: str) -> dict[str, Result]:
        return _test(cluster, smoke, ready, run, pace)

    return conduct(cluster, smoke, nodes, check, Result, test, pace, check_mode)


def conduct(
    cluster: Cluster,
    smoke: Smoke,
    nodes: Sequence[str],
    check: Callable[[str], Kind | None],
    blank: Callable[[str], Kind],
    test: Callable[[Sequence[str], str], Mapping[str, Kind]],
    pace: Pace,
    check_mode: bool = False,
) -> Outcome[Kind]:
    """Test the nodes that can be tested, and leave nothing behind whatever happens. Raises ApiError.

    *check* says why a node cannot be tested, *blank* makes the verdict on one that is not, and *test* tests the others at once with pods
    that have the value given to it as their run label.
    """
    stale = leftovers(cluster.pods(smoke.namespace, labels_for(smoke.name)), pace.now())
    results = {name: check(name) for name in nodes}
    ready = [name for name in nodes if results[name] is None]
    warnings: list[str] = []
    if check_mode:
        results.update({name: _not_run(blank(name)) for name in ready})
    else:
        run_parallel(lambda name: cluster.delete_pod(smoke.namespace, name), stale)
        run = uuid.uuid4().hex[:12]
        try:
            results.update(test(ready, run))
        finally:
            if ready:
                warnings.extend(_sweep(cluster, smoke.namespace, {RUN_LABEL: run}, pace))
    return Outcome([result for result in results.values() if result], stale, warnings)


def remove_pods(
    cluster: Cluster,
    namespace: str,
    labels: Mapping[str, str],
    pace: Pace | None = None,
    check_mode: bool = False,
) -> Outcome[Any]:
    """Remove all test pods with the labels in the namespace, whatever their age, and wait until they are gone. Raises ApiError."""
    found = sorted(get_name(pod) for pod in cluster.pods(namespace, labels))
    warnings = [] if check_mode else _sweep(cluster, namespace, labels, pace or Pace())
    return Outcome([], found, warnings)


def _not_run(result: Kind) -> Kind:
    result.skipped, result.reason = True, "check mode: no pod was created, nothing was proved"
    return result


def _test(cluster: Cluster, smoke: Smoke, nodes: Sequence[str], run: str, pace: Pace) -> dict[str, Result]:
    """Try a pod on each node, and as long as there is time another one where it came too early."""
    deadline = pace.clock() + smoke.timeout
    created = dict(zip(nodes, run_parallel(lambda node: create(cluster, smoke, node, run), nodes)))
    seen: dict[str, Object] = {}
    early: dict[str, Result] = {}
    while any(name for name, _why in created.values()):
        seen = wait(cluster, smoke, run, lambda those: _settled(those, created), pace, deadline)
        asked = [node for node, (name, _why) in created.items() if name in seen and came_too_early(seen[name])]
        early.update({node: verdict(node, seen[created[node][0]], smoke, Evidence()) for node in asked})
        if not asked or pace.clock() + pace.interval >= deadline:
            break
        pace.sleep(pace.interval)
        anew = run_parallel(lambda node: _create_anew(cluster, smoke, node, run, created[node][0]), asked)
        created.update(zip(asked, anew))
    evidence = collect_evidence(cluster, smoke.namespace, list(seen.values()), LOG_LINES)
    results = {}
    for node, (name, why) in created.items():
        result = _judge(node, name, seen.get(name), smoke, evidence.get(name, Evidence()))
        lost = result.skipped and node in early and get_allocatable(cluster.node(node), smoke.resource) < smoke.count
        results[node] = Result(node, reason=why) if why else early[node] if lost else result
    return results


def _create_anew(cluster: Cluster, smoke: Smoke, node: str, run: str, former: str) -> tuple[str, str]:
    """Create another pod for the node, as `create` does, and delete the former one if there is another."""
    name, why = create(cluster, smoke, node, run, former)
    if name != former:
        with suppress(ApiError):  # it goes with all others in the end
            cluster.delete_pod(smoke.namespace, former)
    return name, why


def _settled(seen: Mapping[str, Object], created: Mapping[str, tuple[str, str]]) -> bool:
    """Say whether all the pods of these nodes are decided or gone, or one came too early."""
    pods = [seen[name] for name, _why in created.values() if name in seen]
    return all(map(is_decided, pods)) or any(map(came_too_early, pods))


def create(cluster: Cluster, smoke: Smoke, node: str, run: str, former: str = "") -> tuple[str, str]:
    """Create a pod for the node: return (its name, empty), or (empty, why the API server refused it).

    A server that is away for a moment leaves the *former* one, if there is one, and else raises ApiError.
    """
    try:
        return get_name(cluster.create_pod(smoke.namespace, manifest(smoke, node, run))), ""
    except ApiError as error:
        if former and error.is_transient:
            return former, ""
        if not error.status:
            raise
        return "", refused(smoke, str(error))


def _judge(node: str, name: str, pod: Object | None, smoke: Smoke, evidence: Evidence) -> Result:
    if pod is None:
        return Result(node, pod=name, phase="Deleted", reason=deleted(smoke, name))
    return verdict(node, pod, smoke, evidence)


def wait(
    cluster: Cluster,
    smoke: Smoke,
    run: str,
    enough: Callable[[Mapping[str, Object]], bool],
    pace: Pace,
    deadline: float | None = None,
) -> dict[str, Object]:
    """Poll with one list of the run's pods until they are *enough* or time is up; return them by name. Raises ApiError.

    Without a *deadline* by the clock of *pace*, time is up after that of the test.
    """
    deadline = pace.clock() + smoke.timeout if deadline is None else deadline
    while True:
        late = pace.clock() >= deadline
        try:
            pods = {get_name(pod): pod for pod in cluster.pods(smoke.namespace, {RUN_LABEL: run})}
        except ApiError as error:
            if late or not error.is_transient:
                raise
        else:
            if late or enough(pods):
                return pods
        pace.sleep(pace.interval)


def _sweep(cluster: Cluster, namespace: str, labels: Mapping[str, str], pace: Pace) -> list[str]:
    """Delete pods by label, also those whose creation we never heard back from, and wait until gone; return warnings."""
    deadline = pace.clock() + CLEANUP_SECONDS
    while True:
        left = cluster.pods(namespace, labels)
        if not left:
            return []
        if pace.clock() >= deadline:
            names = ", ".join(get_name(pod) for pod in left)
            return [f"Pods {names} in namespace {namespace} were deleted, but their kubelet has not let go yet."]
        doomed = [get_name(pod) for pod in left if not (pod.get("metadata") or {}).get("deletionTimestamp")]
        run_parallel(lambda name: cluster.delete_pod(namespace, name), doomed)
        pace.sleep(min(pace.interval, 1))
