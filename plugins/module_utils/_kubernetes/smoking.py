# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running the smoke test: all pods at once, one wait for all, logs side by side, and always a clean floor after."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Callable, Sequence

from .api import ApiError, Cluster, in_parallel
from .objects import Object, name_of, pods_by_node
from .pod_trouble import Evidence
from .smoke import LABELS, RUN_LABEL, Result, Smoke, is_decided, leftovers, manifest, precheck, refused, verdict
from .watching import UNFINISHED, collect

LOG_LINES = 200
CLEANUP_SECONDS = 30


@dataclass(frozen=True)
class Pace:
    """How often to look, in seconds; the clocks are arguments for the sake of tests."""

    interval: float = 2
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = field(default=lambda: datetime.now(timezone.utc))


@dataclass
class Outcome:
    """The results in order of the nodes asked for, and what was swept up of earlier runs."""

    results: list[Result]
    removed_leftovers: list[str]
    warnings: list[str]


def run_smoke_test(
    cluster: Cluster, smoke: Smoke, nodes: Sequence[str], pace: Pace | None = None, check_mode: bool = False
) -> Outcome:
    """Try one pod on each node and judge it. Raises ApiError, after cleaning up what it can."""
    pace = pace or Pace()
    known = {name_of(node): node for node in cluster.nodes()}
    placed = pods_by_node(cluster.pods(fields=UNFINISHED))
    stale = leftovers(cluster.pods(smoke.namespace, LABELS), pace.now())
    results = {name: precheck(name, known.get(name), placed.get(name, []), smoke) for name in nodes}
    ready = [name for name in nodes if results[name] is None]
    if check_mode:
        results.update({name: _not_run(name) for name in ready})
        return Outcome([result for result in results.values() if result], stale, [])
    in_parallel(lambda name: cluster.delete_pod(smoke.namespace, name), stale)
    tested, warnings = _test(cluster, smoke, ready, pace)
    results.update(tested)
    return Outcome([result for result in results.values() if result], stale, warnings)


def remove_pods(cluster: Cluster, namespace: str, pace: Pace | None = None, check_mode: bool = False) -> Outcome:
    """Remove all test pods in the namespace, whatever their age, and wait until they are gone. Raises ApiError."""
    found = sorted(name_of(pod) for pod in cluster.pods(namespace, LABELS))
    warnings = [] if check_mode else _sweep(cluster, namespace, LABELS, pace or Pace())
    return Outcome([], found, warnings)


def _not_run(name: str) -> Result:
    return Result(name, phase="NotCreated", skipped=True, reason="check mode: no pod was created, nothing was proved")


def _test(cluster: Cluster, smoke: Smoke, nodes: Sequence[str], pace: Pace) -> tuple[dict[str, Result], list[str]]:
    run = uuid.uuid4().hex[:12]
    warnings: list[str] = []
    try:
        created = dict(zip(nodes, in_parallel(lambda node: _create(cluster, smoke, node, run), nodes)))
        results = {node: pod for node, pod in created.items() if isinstance(pod, Result)}
        pods = {node: name_of(pod) for node, pod in created.items() if isinstance(pod, dict)}
        seen = _wait(cluster, smoke, run, len(pods), pace)
        evidence = collect(cluster, smoke.namespace, list(seen.values()), LOG_LINES)
        for node, name in pods.items():
            results[node] = _judge(node, name, seen.get(name), smoke, evidence.get(name, Evidence()))
    finally:
        if nodes:
            warnings.extend(_sweep(cluster, smoke.namespace, {RUN_LABEL: run}, pace))
    return results, warnings


def _create(cluster: Cluster, smoke: Smoke, node: str, run: str) -> Object | Result:
    try:
        return cluster.create_pod(smoke.namespace, manifest(smoke, node, run))
    except ApiError as error:
        if not error.status:
            raise
        return refused(node, str(error))


def _judge(node: str, name: str, pod: Object | None, smoke: Smoke, evidence: Evidence) -> Result:
    if pod is None:
        return Result(
            node, name, "Deleted", reason=f"somebody deleted the pod {smoke.namespace}/{name} during the test"
        )
    return verdict(node, pod, smoke, evidence)


def _wait(cluster: Cluster, smoke: Smoke, run: str, count: int, pace: Pace) -> dict[str, Object]:
    """Poll with one list until every pod is decided or time is up; return the pods by name."""
    deadline = pace.clock() + smoke.timeout
    while count:
        pods = {name_of(pod): pod for pod in cluster.pods(smoke.namespace, {RUN_LABEL: run})}
        if all(is_decided(pod) for pod in pods.values()) or pace.clock() >= deadline:
            return pods
        pace.sleep(pace.interval)
    return {}


def _sweep(cluster: Cluster, namespace: str, labels: dict[str, str], pace: Pace) -> list[str]:
    """Delete pods by label, also those whose creation we never heard back from, and wait until gone; return warnings."""
    deadline = pace.clock() + CLEANUP_SECONDS
    while True:
        left = cluster.pods(namespace, labels)
        if not left:
            return []
        if pace.clock() >= deadline:
            names = ", ".join(name_of(pod) for pod in left)
            return [f"Pods {names} in namespace {namespace} were deleted, but their kubelet has not let go yet."]
        doomed = [name_of(pod) for pod in left if not (pod.get("metadata") or {}).get("deletionTimestamp")]
        in_parallel(lambda name: cluster.delete_pod(namespace, name), doomed)
        pace.sleep(min(pace.interval, 1))
