# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the state of GPU nodes from the API server, once or until it is as expected.

Each round of waiting lists nodes and the plugin's pods; the pods of all namespaces are listed once, at the end. For a single
node, neither other nodes nor their pods are listed. Logs, events and DaemonSets are only read if a node is not as expected.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterable, Mapping, Sequence

from .api import ApiError, read_nodes, run_parallel
from .objects import Object, get_full_name, get_name
from .pod_failures import Evidence, group_events, list_containers
from .readiness import NodeReport, Query, assess_nodes

if TYPE_CHECKING:
    from .._kube_api import Cluster

LOG_LINES = 30
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True)
class WaitTime:
    """How long to wait, in seconds; 0 reads once. Tests pass their own clock."""

    timeout: float = 0
    interval: float = 5
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def survey_nodes(
    cluster: Cluster,
    query: Query,
    expected: Mapping[str, int] | None,
    wait_time: WaitTime | None = None,
    explain: bool = True,
) -> list[NodeReport]:
    """Return reports on the nodes, once all are as expected or the time is over. Raises ApiError.

    A server that cannot be reached is retried until then. ``explain`` reads a log for each node that is not as expected.
    """
    wait_time = wait_time or WaitTime()
    deadline = wait_time.clock() + wait_time.timeout
    while wait_time.timeout:
        try:
            plugins = cluster.pods(query.namespace, query.plugin_labels) if query.plugin_labels else []
            if all(report.ok for report in assess_nodes(read_nodes(cluster, expected), plugins, query, expected)):
                break
        except ApiError as error:
            if not error.is_transient:
                raise
        left = deadline - wait_time.clock()
        if left <= 0:
            break
        wait_time.sleep(min(wait_time.interval, left))
    nodes = read_nodes(cluster, expected)
    pods = _list_pods(cluster, nodes if expected and len(expected) == 1 else [])
    reports = assess_nodes(nodes, pods, query, expected)
    if explain and not all(report.ok for report in reports):
        reports = assess_nodes(
            nodes,
            pods,
            query,
            expected,
            daemon_sets=_list_daemon_sets(cluster, query, reports),
            evidence=_collect_for_reports(cluster, query, reports, pods),
        )
    return reports


def _list_pods(cluster: Cluster, nodes: Sequence[Object]) -> list[Object]:
    """Return the pods of these nodes and those without a node, or all pods if *nodes* is empty."""
    if not nodes:
        return cluster.pods(fields=UNFINISHED)
    # Pods without a node first: one that is scheduled between the lists is then in both of them.
    places = ["", *map(get_name, nodes)]
    found = [pod for place in places for pod in cluster.pods(fields=f"{UNFINISHED},spec.nodeName={place}")]
    return list({get_full_name(pod): pod for pod in found}.values())


def _list_daemon_sets(cluster: Cluster, query: Query, reports: Sequence[NodeReport]) -> list[Object]:
    if all(report.ok or report.plugin_pod for report in reports):
        return []
    return list_daemon_sets(cluster, [query.namespace])


def list_daemon_sets(cluster: Cluster, namespaces: Iterable[str]) -> list[Object]:
    """Return the DaemonSets of the namespaces; empty without the right to read them."""
    found: list[Object] = []
    for namespace in sorted(set(namespaces)):
        with suppress(ApiError):
            found += cluster.daemon_sets(namespace)
    return found


def _collect_for_reports(
    cluster: Cluster, query: Query, reports: Sequence[NodeReport], pods: Sequence[Object]
) -> dict[str, Evidence]:
    """Return logs and events of the plugin pods on nodes that are not as expected."""
    suspects = {report.plugin_pod for report in reports if not report.ok and report.plugin_pod}
    found = [pod for pod in pods if get_name(pod) in suspects and pod["metadata"].get("namespace") == query.namespace]
    return collect_evidence(cluster, query.namespace, found)


def collect_evidence(
    cluster: Cluster, namespace: str, pods: Sequence[Object], lines: int = LOG_LINES
) -> dict[str, Evidence]:
    """Return log and events by name of pod, for pods of one namespace. The events of the namespace are listed once."""
    if not pods:
        return {}
    try:
        events = group_events(cluster.warning_events(namespace))
    except ApiError:
        events = {}
    logs = run_parallel(lambda pod: _try_read_log(cluster, namespace, pod, lines), pods)
    return {
        get_name(pod): Evidence(log, tuple(events.get(get_name(pod), ())), error)
        for pod, (log, error) in zip(pods, logs)
    }


def _try_read_log(cluster: Cluster, namespace: str, pod: Object, lines: int) -> tuple[str, str]:
    """Return (log, reason why it cannot be read); both are empty for a container without a log yet (status 400)."""
    try:
        return _read_log(cluster, namespace, pod, lines), ""
    except ApiError as error:
        return "", "" if error.status == 400 else str(error).rstrip(".")


def _read_log(cluster: Cluster, namespace: str, pod: Object, lines: int) -> str:
    """Return the log of the running container, else of the previous one."""
    states = list_containers(pod)
    if not any(kind in (status.get("state") or {}) for status in states for kind in ("running", "terminated")):
        restarted = any(status.get("restartCount") for status in states)
        return cluster.pod_log(namespace, get_name(pod), lines, previous=True) if restarted else ""
    return cluster.pod_log(namespace, get_name(pod), lines)
