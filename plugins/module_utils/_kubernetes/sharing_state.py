# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what the plan of sharing strategies is made from: nodes, pods and ResourceSlices, each at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from .._sharing.catalogue import OWN_PLUGIN, STRATEGIES, Strategy
from .affinity import find_leaving
from .api import ApiError
from .drain.plan import MIRROR, MaintenanceError, read_maintenance
from .objects import Object, get_annotations, get_labels, get_name, get_node_name
from .readiness import NodeReport, Query, assess_nodes
from .survey import UNFINISHED, list_daemon_sets

if TYPE_CHECKING:
    from .._kube_api import Cluster

SLICES = ("resource.k8s.io/v1", "ResourceSlice")
DRA_DRIVER = "gpu.nvidia.com"
#: All device plugins of GPUs on a node are of interest, whoever deployed them.
QUERY = Query(plugin_labels={})


@dataclass(frozen=True)
class SharingState:
    """The state of the cluster. ``nodes`` are the rows of gpu_nodes_info for the nodes of hosts, with two more fields.

    ``maintenance`` is the reason of the node's maintenance, or empty. ``staying_plugins`` has for each strategy the device plugins on the node, as
    ``namespace/owner``, that do not leave a node with its label. The others are names of nodes: by strategy those with its label, those with
    ResourceSlices of NVIDIA's DRA driver, and those whose kube-scheduler is a static pod.
    """

    nodes: Sequence[Mapping[str, Any]]
    labelled: Mapping[str, Sequence[str]]
    claimed: Sequence[str]
    schedulers: Sequence[str]


def read_sharing_state(cluster: Cluster, hosts: Mapping[str, str]) -> SharingState:
    """Read the state of the cluster for hosts, given as names of nodes with the declared strategy or an empty text. Raises ApiError.

    Device plugins and ResourceSlices are read only if a host has or declares a strategy with a device plugin of its own.
    """
    nodes = cluster.nodes()
    pods = cluster.pods(fields=UNFINISHED)
    labelled = {
        row.name: sorted(get_name(node) for node in nodes if row.is_labelled(get_labels(node))) for row in OWN_PLUGIN
    }
    reports = assess_nodes(nodes, pods, QUERY, dict.fromkeys(hosts, 0))
    concerned = [report for report in reports if _has_own_plugin(hosts[report.name], report)]
    plugins = {name for report in concerned for name in report.foreign_plugins}
    daemon_sets = list_daemon_sets(cluster, {name.partition("/")[0] for name in plugins})
    reasons = {get_name(node): _read_reason(node) for node in nodes if get_name(node) in hosts}
    rows = [
        {
            **report.as_dict(),
            "maintenance": reasons.get(report.name, ""),
            "staying_plugins": {row.name: _find_staying(report, row, daemon_sets) for row in OWN_PLUGIN},
        }
        for report in reports
    ]
    return SharingState(rows, labelled, _list_claimed(cluster) if concerned else [], _list_schedulers(pods))


def _has_own_plugin(declared: str, report: NodeReport) -> bool:
    if declared:
        return not STRATEGIES[declared].by_nvidia
    return any(row.is_labelled(report.labels) for row in OWN_PLUGIN)


def _read_reason(node: Object) -> str:
    """An annotation that cannot be read counts as none."""
    try:
        found = read_maintenance(node)
    except MaintenanceError:
        return ""
    return found.reason if found else ""


def _find_staying(report: NodeReport, row: Strategy, daemon_sets: Sequence[Object]) -> list[str]:
    gone = find_leaving(daemon_sets, {**report.labels, **row.label})
    return [name for name in report.foreign_plugins if name not in gone]


def _list_claimed(cluster: Cluster) -> list[str]:
    """ResourceSlices of a node's GPUs have its name; those of GPUs on a fabric have no node name."""
    try:
        slices = cluster.objects(*SLICES, fields=f"spec.driver={DRA_DRIVER}")
    except ApiError as error:
        # Kubernetes before 1.34 has no resource.k8s.io/v1.
        if error.status != 404:
            raise
        return []
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
