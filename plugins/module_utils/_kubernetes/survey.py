# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the state of the cluster from the API server: of GPU nodes, once or until it is as expected, and of sharing strategies.

Each round of waiting lists nodes and the plugin's pods; the pods of all namespaces are listed once, at the end. For a single
node, neither other nodes nor their pods are listed. Logs, events and DaemonSets are only read if a node is not as expected.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Collection, Iterable, Iterator, Mapping, NamedTuple, Sequence

from .._kube_error import ApiError
from .._sharing.catalogue import IN_CLUSTER, OWN_PLUGIN, STRATEGIES, Strategy
from .._sharing.gpu_operator import (
    GpuOperator,
    OperatorState,
    has_operator_label,
    read_gpu_cluster,
    read_operator,
)
from .._sharing.node_state import is_labelled
from .._sharing.plugin_config import CONFIG_MAP_LABELS, LABEL, read_own_config, strategy_of_name
from .._vendors import SERVED, Vendor, vendor_of
from .api import DRA_VERSIONS, list_known, read_nodes, run_parallel
from .drain.plan import MIRROR, describe_maintenance
from .labels.ladder import read_published
from .node_reports import NodeReport, assess_nodes
from .objects import (
    UNFINISHED,
    Object,
    find_leaving,
    get_annotations,
    get_full_name,
    get_labels,
    get_name,
    get_node_name,
    is_schedulable,
)
from .pod_failures import Evidence, group_events, list_containers
from .readiness import Query, Units
from .retries import Wait

if TYPE_CHECKING:
    from .._kube_api import Cluster

LOG_LINES = 30

#: All device plugins of GPUs on a node are of interest, whoever deployed them.
ANY_PLUGIN = Query(plugin_labels={})


class Survey(NamedTuple):
    """Reports on the nodes, and ``{name, schedulable, maintenance}`` of other nodes that were read and are in maintenance.

    ``operator_plugins`` is whether NVIDIA's GPU Operator deploys device plugins in the cluster, and false where its ClusterPolicy is not read.
    ``owners`` are objects by which others offer the GPUs of another vendor than NVIDIA; without *wait* alone.
    """

    reports: list[NodeReport]
    others_in_maintenance: list[dict[str, Any]]
    operator_plugins: bool = False
    owners: tuple[str, ...] = ()


def survey_nodes(
    cluster: Cluster,
    query: Query,
    expected: Mapping[str, Units] | None,
    wait: Wait | None = None,
    explain: bool = True,
) -> Survey:
    """Return the survey, once all nodes are as expected or the time is over; at once without *wait*. Raises ApiError.

    A server that cannot be reached is retried until then. ``explain`` reads a log for each node that is not as expected.
    The ClusterPolicy or GPUCluster is read if a node has a label of NVIDIA's GPU Operator, and not with *wait*: what waits has read it before.
    """
    while wait and not wait.over:
        try:
            plugins = cluster.pods(query.namespace, query.plugin_labels) if query.plugin_labels else []
            if all(report.ok for report in assess_nodes(read_nodes(cluster, expected), plugins, query, expected)):
                break
        except ApiError as error:
            if not error.is_transient:
                raise
        wait.pause()
    nodes = read_nodes(cluster, expected)
    pods = _list_pods(cluster, nodes if expected and len(expected) == 1 else [])
    is_operated = wait is None and any(
        has_operator_label(get_labels(node)) for node in nodes if expected is None or get_name(node) in expected
    )
    operator = _read_operator(cluster) if is_operated else None
    reports = assess_nodes(nodes, pods, query, expected, operator=operator)
    if explain and not all(report.ok for report in reports):
        reports = assess_nodes(
            nodes,
            pods,
            query,
            expected,
            daemon_sets=_list_plugin_daemon_sets(cluster, query, reports),
            evidence=_collect_for_reports(cluster, query, reports, pods),
            operator=operator,
        )
    others = _find_others_in_maintenance(nodes, {report.name for report in reports})
    owners = () if wait else tuple(_find_owners(cluster, query.vendor))
    return Survey(reports, others, operator is not None and "device_plugin" in operator.enabled, owners)


def _find_owners(cluster: Cluster, vendor: Vendor) -> Iterator[str]:
    """Yield what offers GPUs of the vendor: custom resources of its operator, and device classes that stand for its extended resources."""
    if vendor is SERVED:
        return
    version, kind = vendor.operator_resource
    for found in list_known(cluster, kind, version):
        is_namespaced = bool((found.get("metadata") or {}).get("namespace"))
        yield f"{vendor.operator} ({found['kind']} {get_full_name(found) if is_namespaced else get_name(found)})"
    for found in list_known(cluster, "DeviceClass", *DRA_VERSIONS):
        name, resource = get_name(found), str((found.get("spec") or {}).get("extendedResourceName") or "")
        if vendor_of(resource) is vendor or name == vendor.dra_driver or name.startswith(f"{vendor.dra_driver}-"):
            yield f"the DeviceClass {name} (dynamic resource allocation{f' of {resource}' if resource else ''})"


def _find_others_in_maintenance(nodes: Iterable[Object], reported: Collection[str]) -> list[dict[str, Any]]:
    found = [
        {"name": get_name(node), "schedulable": is_schedulable(node), "maintenance": describe_maintenance(node)}
        for node in nodes
        if get_name(node) not in reported
    ]
    return sorted((each for each in found if each["maintenance"]), key=lambda each: str(each["name"]))


def _list_pods(cluster: Cluster, nodes: Sequence[Object]) -> list[Object]:
    """Return the pods of these nodes and those without a node, or all pods if *nodes* is empty."""
    if not nodes:
        return cluster.pods(fields=UNFINISHED)
    # Pods without a node first: one that is scheduled between the lists is then in both of them.
    places = ["", *map(get_name, nodes)]
    found = [pod for place in places for pod in cluster.pods(fields=f"{UNFINISHED},spec.nodeName={place}")]
    return list({get_full_name(pod): pod for pod in found}.values())


def _list_plugin_daemon_sets(cluster: Cluster, query: Query, reports: Sequence[NodeReport]) -> list[Object]:
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


# -- what the plan of sharing strategies is made from


@dataclass(frozen=True)
class SharingState:
    """The state of the cluster. ``nodes`` are the rows of gpu_nodes_info for the nodes of hosts, with two more fields.

    ``staying_plugins`` has for each strategy the device plugins on the node, as
    ``namespace/owner``, that do not leave a node with its label. ``published_labels`` are the names of labels that node feature discovery has
    recorded on the node. The others are names of nodes: by strategy those with its label, those with
    ResourceSlices of NVIDIA's DRA driver, and those whose kube-scheduler is a static pod. ``config_names`` is the name of the configuration of
    NVIDIA's device plugin by node, where it has its own, and ``configs`` are the configurations by their names. ``operator`` is NVIDIA's GPU
    Operator, whose nodes are neither in ``labelled`` for a strategy of NVIDIA's device plugin nor in ``config_names``; None without one.
    ``node_objects`` and ``pods`` are all nodes, and the pods that have not finished, as the API server sends them.
    """

    nodes: Sequence[Mapping[str, Any]]
    labelled: Mapping[str, Sequence[str]]
    claimed: Sequence[str]
    schedulers: Sequence[str]
    config_names: Mapping[str, str]
    configs: Mapping[str, Any]
    operator: OperatorState | None = None
    node_objects: Sequence[Object] = ()
    pods: Sequence[Object] = ()


def read_sharing_state(cluster: Cluster, hosts: Mapping[str, str]) -> SharingState:
    """Read the state of the cluster for hosts, given as names of nodes with the declared strategy or an empty text. Raises ApiError.

    Device plugins and ResourceSlices are read only if a host has or declares a strategy with a device plugin of its own.
    """
    nodes = cluster.nodes()
    pods = cluster.pods(fields=UNFINISHED)
    policy = _read_operator(cluster)
    operated = {get_name(node) for node in nodes if policy and "device_plugin" in policy.find_parts(get_labels(node))}
    labelled = {
        row.name: sorted(
            get_name(node)
            for node in nodes
            if is_labelled(get_labels(node), row) and not (row.by_nvidia and get_name(node) in operated)
        )
        for row in IN_CLUSTER
    }
    reports = assess_nodes(nodes, pods, ANY_PLUGIN, dict.fromkeys(hosts, 0), operator=policy)
    concerned = [report for report in reports if _has_own_plugin(hosts[report.name], report)]
    plugins = {name for report in concerned for name in report.unmanaged_plugins}
    daemon_sets = list_daemon_sets(cluster, {name.partition("/")[0] for name in plugins})
    published = {get_name(node): read_published(node) for node in nodes if get_name(node) in hosts}
    rows = [
        {
            **report.as_dict(),
            "staying_plugins": {row.name: _find_staying(report, row, daemon_sets) for row in OWN_PLUGIN},
            "published_labels": published.get(report.name, frozenset()),
        }
        for report in reports
    ]
    names = {get_name(node): get_labels(node).get(LABEL, "") for node in nodes}
    own_names = {node: name for node, name in names.items() if name and node not in operated}
    configs = _read_configs(cluster) if own_names else {}
    operator = None
    if policy:
        operator = OperatorState(policy, _read_operator_configs(cluster, policy), names)
        configs = {**(operator.configs or {}), **configs}
    return SharingState(
        rows,
        labelled,
        _list_claimed(cluster) if concerned else [],
        _list_schedulers(pods),
        own_names,
        configs,
        operator,
        nodes,
        pods,
    )


def _read_operator(cluster: Cluster) -> GpuOperator | None:
    """Return what NVIDIA's GPU Operator deploys. It rejects a GPUCluster beside a ClusterPolicy."""
    return read_operator(cluster.cluster_policies()) or read_gpu_cluster(cluster.gpu_clusters())


def _read_configs(cluster: Cluster) -> dict[str, Any]:
    """Return the configurations that this collection has written, each as JSON."""
    found = {}
    for config_map in cluster.objects("v1", "ConfigMap", labels=CONFIG_MAP_LABELS):
        for name, text in (config_map.get("data") or {}).items():
            if strategy_of_name(name):
                with suppress(ValueError):
                    found[name] = json.loads(text)
    return found


def _read_operator_configs(cluster: Cluster, policy: GpuOperator) -> dict[str, Any] | None:
    """Return the configurations of this collection in the ConfigMap of the operator's device plugin; None if it does not exist."""
    found = cluster.objects("v1", "ConfigMap", policy.config_map, policy.namespace) if policy.config_map else []
    if not found:
        return None
    data = found[0].get("data") or {}
    read = {name: read_own_config(name, text) for name, text in data.items()}
    return {name: document for name, document in read.items() if document}


def _has_own_plugin(declared: str, report: NodeReport) -> bool:
    if declared:
        return not STRATEGIES[declared].by_nvidia
    return any(row.is_labelled(report.labels) for row in OWN_PLUGIN)


def _find_staying(report: NodeReport, row: Strategy, daemon_sets: Sequence[Object]) -> list[str]:
    gone = find_leaving(daemon_sets, {**report.labels, **row.label})
    return [name for name in report.unmanaged_plugins if name not in gone]


def _list_claimed(cluster: Cluster) -> list[str]:
    """ResourceSlices of a node's GPUs have its name; those of GPUs on a fabric have no node name."""
    slices = list_known(cluster, "ResourceSlice", *DRA_VERSIONS, fields=f"spec.driver={SERVED.dra_driver}")
    return sorted({str((each.get("spec") or {}).get("nodeName") or "") for each in slices} - {""})


def _list_schedulers(pods: Sequence[Object]) -> list[str]:
    """A second scheduler of users is not a static pod."""
    return sorted(
        get_node_name(pod)
        for pod in pods
        if get_labels(pod).get("component") == "kube-scheduler"
        and (pod.get("metadata") or {}).get("namespace") == "kube-system"
        and MIRROR in get_annotations(pod)
    )
