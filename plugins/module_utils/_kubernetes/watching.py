# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking the cluster whether its GPUs are offered, once or until they are.

While waiting, each round lists nodes and the plugin's pods; pods of all namespaces are listed once, at the end. Of one node
alone neither other nodes nor their pods are listed.
Logs, events and DaemonSets are only asked for when there is something to explain.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterable, Mapping, Sequence

from .api import ApiError, in_parallel, read_nodes
from .objects import Object, full_name_of, name_of
from .pod_trouble import Evidence, container_states, events_by_pod
from .readiness import NodeReport, Question, assess

if TYPE_CHECKING:
    from .._kube_api import Cluster

LOG_LINES = 30
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds; 0 asks once. The clock is an argument for the sake of tests."""

    timeout: float = 0
    interval: float = 5
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def survey(
    cluster: Cluster,
    question: Question,
    expected: Mapping[str, int] | None,
    patience: Patience | None = None,
    explain: bool = True,
) -> list[NodeReport]:
    """Report on the nodes, after waiting until all are as expected or time is up, also for a server that is away. Raises ApiError.

    To ``explain`` takes a log for each node that is not as expected.
    """
    patience = patience or Patience()
    deadline = patience.clock() + patience.timeout
    while patience.timeout:
        try:
            plugins = cluster.pods(question.namespace, question.plugin_labels) if question.plugin_labels else []
            if all(report.ok for report in assess(read_nodes(cluster, expected), plugins, question, expected)):
                break
        except ApiError as error:
            if not error.passing:
                raise
        left = deadline - patience.clock()
        if left <= 0:
            break
        patience.sleep(min(patience.interval, left))
    nodes = read_nodes(cluster, expected)
    pods = _pods(cluster, nodes if expected and len(expected) == 1 else [])
    reports = assess(nodes, pods, question, expected)
    if explain and not all(report.ok for report in reports):
        reports = assess(
            nodes,
            pods,
            question,
            expected,
            daemon_sets=_daemon_sets(cluster, question, reports),
            evidence=_evidence(cluster, question, reports, pods),
        )
    return reports


def _pods(cluster: Cluster, nodes: Sequence[Object]) -> list[Object]:
    """List the pods that may be on one of these nodes, or all if none is named; those on no node yet may be meant for any."""
    if not nodes:
        return cluster.pods(fields=UNFINISHED)
    # Those on no node first: one that gets its node meanwhile is seen twice then, and not never.
    places = ["", *map(name_of, nodes)]
    found = [pod for place in places for pod in cluster.pods(fields=f"{UNFINISHED},spec.nodeName={place}")]
    return list({full_name_of(pod): pod for pod in found}.values())


def _daemon_sets(cluster: Cluster, question: Question, reports: Sequence[NodeReport]) -> list[Object]:
    if all(report.ok or report.plugin_pod for report in reports):
        return []
    return list_daemon_sets(cluster, [question.namespace])


def list_daemon_sets(cluster: Cluster, namespaces: Iterable[str]) -> list[Object]:
    """List the DaemonSets of the namespaces; without the right to read them, the list is empty."""
    found: list[Object] = []
    for namespace in sorted(set(namespaces)):
        with suppress(ApiError):
            found += cluster.daemon_sets(namespace)
    return found


def _evidence(
    cluster: Cluster, question: Question, reports: Sequence[NodeReport], pods: Sequence[Object]
) -> dict[str, Evidence]:
    """Fetch logs and events of the plugin pods on nodes that are not as expected."""
    suspects = {report.plugin_pod for report in reports if not report.ok and report.plugin_pod}
    found = [pod for pod in pods if name_of(pod) in suspects and pod["metadata"].get("namespace") == question.namespace]
    return collect(cluster, question.namespace, found)


def collect(cluster: Cluster, namespace: str, pods: Sequence[Object], lines: int = LOG_LINES) -> dict[str, Evidence]:
    """Fetch what explains these pods of one namespace: the log of each, and the namespace's warnings in one list."""
    if not pods:
        return {}
    try:
        events = events_by_pod(cluster.warning_events(namespace))
    except ApiError:
        events = {}
    logs = in_parallel(lambda pod: _try_log(cluster, namespace, pod, lines), pods)
    return {
        name_of(pod): Evidence(log, tuple(events.get(name_of(pod), ())), error) for pod, (log, error) in zip(pods, logs)
    }


def _try_log(cluster: Cluster, namespace: str, pod: Object, lines: int) -> tuple[str, str]:
    """Return (log, why it cannot be read); one of a container that has none yet (status 400) is empty without a why."""
    try:
        return _log(cluster, namespace, pod, lines), ""
    except ApiError as error:
        return "", "" if error.status == 400 else str(error).rstrip(".")


def _log(cluster: Cluster, namespace: str, pod: Object, lines: int) -> str:
    """Read the log of the running container, else of the one before it."""
    states = container_states(pod)
    if not any(kind in (status.get("state") or {}) for status in states for kind in ("running", "terminated")):
        restarted = any(status.get("restartCount") for status in states)
        return cluster.pod_log(namespace, name_of(pod), lines, previous=True) if restarted else ""
    return cluster.pod_log(namespace, name_of(pod), lines)
