# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the smoke test: the pods of all nodes at once, one wait for all, and no pod left afterwards."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Mapping, NoReturn, Sequence

from ..._kube_error import ApiError
from ..api import run_parallel
from ..objects import UNFINISHED, Object, get_allocatable, get_name, group_by_node
from ..pod_failures import Evidence
from ..retries import Timing
from .pod import LABELS, SmokeTest
from .session import REPLACE_SECONDS, Created, Session, delete_pods
from .sharing import NodeShares, plan_shares, run_shares
from .verdict import (
    Result,
    check_node,
    choose_test,
    explain_deletion,
    find_leftovers,
    fit_to_edge,
    is_decided,
    is_too_early,
    judge_pod,
)

if TYPE_CHECKING:
    from ..._kube_api import Cluster

#: An interrupted run sends one or both of them to the process of a task.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def end_at_signals() -> Iterator[None]:
    """Raise SystemExit at the first of SIGNALS, so that run_smoke_test() deletes its pods, and ignore those after it. The caller has the main thread."""
    former = {each: signal.signal(each, _stop) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler or signal.SIG_DFL)


def _stop(*_details: object) -> NoReturn:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise SystemExit("interrupted")


@dataclass
class Outcome:
    """The results in the order of the requested nodes, and the deleted pods of earlier runs."""

    results: list[Result]
    removed_leftovers: list[str]
    warnings: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return what the module returns, without the warnings."""
        return {
            "changed": bool(self.removed_leftovers),
            "ok": not any(result.failed for result in self.results),
            "failed_nodes": [result.node for result in self.results if result.failed],
            "skipped_nodes": [result.node for result in self.results if result.skipped],
            "removed_leftovers": self.removed_leftovers,
            "results": [result.as_dict() for result in self.results],
        }


def run_smoke_test(
    cluster: Cluster, test: SmokeTest, nodes: Sequence[str], timing: Timing | None = None, check_mode: bool = False
) -> Outcome:
    """Test each node with one pod, or with several that share a GPU, and delete the pods whatever happens. Raises ApiError."""
    timing = timing or Timing()
    planned = _plan(cluster, test, nodes, check_mode)
    stale = find_leftovers(cluster.pods(test.namespace, LABELS), timing.now())
    results = {name: plan if isinstance(plan, Result) else _skip(name, plan) for name, plan in planned.items()}
    ready = {name: plan for name, plan in planned.items() if not isinstance(plan, Result)}
    warnings: list[str] = []
    if not check_mode:
        run_parallel(lambda name: cluster.delete_pod(test.namespace, name), stale)
        session = Session(cluster, test.namespace, timing)
        try:
            results.update(_test_nodes(session, test.timeout, ready))
        finally:
            if ready:
                warnings.extend(session.end())
    return Outcome(list(results.values()), stale, warnings)


def remove_pods(cluster: Cluster, namespace: str, timing: Timing | None = None, check_mode: bool = False) -> Outcome:
    """Delete all pods of the test in the namespace, whatever their age, and wait until they are gone. Raises ApiError."""
    found = sorted(get_name(pod) for pod in cluster.pods(namespace, LABELS))
    warnings = [] if check_mode else delete_pods(cluster, namespace, LABELS, timing or Timing())
    return Outcome([], found, warnings)


def _plan(
    cluster: Cluster, test: SmokeTest, nodes: Sequence[str], check_mode: bool
) -> dict[str, Result | NodeShares | SmokeTest]:
    """Return for each node its result if it cannot be tested, else the pods that share a GPU, or the test of one pod."""
    known = {get_name(node): node for node in cluster.nodes()}
    placed = group_by_node(cluster.pods(fields=UNFINISHED))
    plan = plan_shares if test.shared else _plan_one_pod
    return {
        name: plan(name, known.get(name), placed.get(name, []), fit_to_edge(test, known.get(name)), check_mode)
        for name in nodes
    }


def _plan_one_pod(
    name: str, node: Object | None, pods: Sequence[Object], test: SmokeTest, check_mode: bool
) -> Result | SmokeTest:
    chosen = choose_test(node, pods, test)
    return check_node(name, node, pods, chosen, check_mode) or chosen


def _skip(node: str, plan: NodeShares | SmokeTest) -> Result:
    resource = plan.resource if isinstance(plan, SmokeTest) else plan.resource.name
    reason = "check mode: no pod was created, no GPU was tested"
    return Result(node, skipped=True, reason=reason, resource=resource)


def _test_nodes(session: Session, timeout: int, ready: Mapping[str, NodeShares | SmokeTest]) -> dict[str, Result]:
    shares = [plan for plan in ready.values() if isinstance(plan, NodeShares)]
    tests = {node: plan for node, plan in ready.items() if isinstance(plan, SmokeTest)}
    return run_shares(session, shares) if shares else _test_with_one_pod(session, timeout, tests)


def _test_with_one_pod(session: Session, timeout: int, tests: Mapping[str, SmokeTest]) -> dict[str, Result]:
    """Test each node with one pod, and with another one as long as there is time if the pod came too early."""
    timing = session.timing
    deadline = timing.clock() + timeout
    created = dict(zip(tests, run_parallel(lambda node: session.create(tests[node], node), list(tests))))
    pods: dict[str, Object] = {}
    early: dict[str, Result] = {}
    while any(each.pod for each in created.values()):
        pods = session.wait(deadline, lambda found: _is_settled(found, created))
        rejected = [node for node, each in created.items() if each.pod in pods and is_too_early(pods[each.pod])]
        early.update({node: judge_pod(node, pods[created[node].pod], tests[node], Evidence()) for node in rejected})
        if not rejected or timing.clock() + REPLACE_SECONDS >= deadline:
            break
        timing.sleep(REPLACE_SECONDS)
        followers = run_parallel(lambda node: _replace(session, tests[node], node, created[node].pod), rejected)
        created.update(zip(rejected, followers))
    evidence = session.collect(list(pods.values()))
    results = {}
    for node, each in created.items():
        test = tests[node]
        result = _judge(node, each, pods.get(each.pod), test, evidence.get(each.pod, Evidence()))
        # Its devices have not come back: the kubelet's reason says more than a pod that was not scheduled.
        lost = (
            result.skipped and node in early and get_allocatable(session.cluster.node(node), test.resource) < test.count
        )
        results[node] = early[node] if lost else result
    return results


def _replace(session: Session, test: SmokeTest, node: str, former: str) -> Created:
    """Create another pod for the node, and delete the former one if there is another."""
    created = session.create(test, node, former)
    if created.pod != former:
        with suppress(ApiError):  # the end of the session deletes all pods
            session.delete(former)
    return created


def _is_settled(pods: Mapping[str, Object], created: Mapping[str, Created]) -> bool:
    """Return whether all pods of these nodes are decided or gone, or one came too early."""
    found = [pods[each.pod] for each in created.values() if each.pod in pods]
    return all(map(is_decided, found)) or any(map(is_too_early, found))


def _judge(node: str, created: Created, pod: Object | None, test: SmokeTest, evidence: Evidence) -> Result:
    if created.reason:
        return Result(node, reason=created.reason, resource=test.resource)
    if pod is None:
        reason = explain_deletion(test, created.pod)
        return Result(node, pod=created.pod, phase="Deleted", reason=reason, resource=test.resource)
    return judge_pod(node, pod, test, evidence)
