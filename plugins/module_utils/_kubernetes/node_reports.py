# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports on the GPU nodes of a cluster: which nodes have GPUs, their device plugins, and what is allocatable and allocated.

The caller lists nodes and pods once, and can pass evidence (log lines, events) about plugin pods.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Iterable, Mapping, Sequence

from .._kube_error import shorten
from .._sharing.catalogue import OWN_PLUGIN
from .._sharing.gpu_operator import GpuOperator
from .._text import make_printable
from .._vendors import OTHERS, SERVED, Vendor
from .drain.plan import describe_maintenance
from .extended_resources import count_gpu_resources
from .objects import (
    Object,
    find_edge_framework,
    get_annotations,
    get_labels,
    get_name,
    group_by_node,
    is_judged,
    is_ready,
    is_schedulable,
    matches_selector,
)
from .pod_failures import Evidence, find_newest
from .readiness import NodeState, Query, Units, explain_difference, find_note
from .requests import count_allocated

OWN_ANNOTATIONS = "gpu-kubernetes/"
_PLUGIN_FOLDER = re.compile(r"/device-plugins/?$")
_OTHER_VENDOR = re.compile("|".join(vendor.plugin_images for vendor in OTHERS), re.IGNORECASE)


@dataclass
class NodeReport:
    """The state of one node. Amounts are units of the resource, or of all expected ones; ``reason`` is empty if nothing is wrong.

    ``maintenance`` is that of ``describe_maintenance``: since when and why the node is in maintenance, and what to do.
    ``edge`` is the name of its edge framework. A node that is not ``judged`` is not ``ok``, and not at fault either.
    """

    name: str
    known: bool = False
    expected: int | None = None
    capacity: int = 0
    allocatable: int = 0
    allocated: int = 0
    ready: bool = False
    schedulable: bool = False
    ok: bool = False
    reason: str = ""
    gpu_resources: dict[str, int] = field(default_factory=dict)
    gpu_capacity: dict[str, int] = field(default_factory=dict)
    gpu_allocated: dict[str, int] = field(default_factory=dict)
    plugin_pod: str = ""
    plugin_stale: bool = False
    unmanaged_plugins: list[str] = field(default_factory=list)
    gpu_operator: list[str] = field(default_factory=list)
    container_runtime_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    maintenance: Object | None = None
    edge: str = ""
    judged: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def assess_nodes(
    nodes: Iterable[Object],
    pods: Iterable[Object],
    query: Query,
    expected: Mapping[str, Units] | None = None,
    *,
    daemon_sets: Sequence[Object] = (),
    evidence: Mapping[str, Evidence] | None = None,
    operator: GpuOperator | None = None,
) -> list[NodeReport]:
    """Return reports on the expected nodes, or on every node of the resource if no nodes are expected.

    Args:
        nodes: all nodes of the cluster.
        pods: all pods, or at least the plugin's; finished ones can be missing.
        query: the resource and its plugin.
        expected: node name to number of units, by resource for others than the query's; None expects the capacity of each node to be allocatable.
        daemon_sets: those of the plugin's namespace, which explain a missing pod.
        evidence: by name of plugin pod.
        operator: NVIDIA's GPU Operator, if the cluster has one.

    Returns:
        Reports sorted by node name.
    """
    by_name = {get_name(node): node for node in nodes}
    placed = group_by_node(pods)
    names = expected if expected is not None else _find_nodes(by_name, placed, query)
    reports = []
    for name in sorted(names):
        on_node = placed.get(name, [])
        plugin = find_newest(pod for pod in on_node if _is_plugin(pod, query))
        state = NodeState(
            name=name,
            node=by_name.get(name),
            wanted=None if expected is None else _by_resource(expected[name], query),
            query=query,
            plugin=plugin,
            daemon_sets=daemon_sets,
            evidence=(evidence or {}).get(get_name(plugin or {}), Evidence()),
        )
        reports.append(_build_report(state, on_node, operator))
    return reports


def _by_resource(units: Units, query: Query) -> dict[str, int]:
    return dict(units) if isinstance(units, Mapping) else {query.resource: int(units)}


def _build_report(state: NodeState, on_node: Sequence[Object], operator: GpuOperator | None) -> NodeReport:
    node = state.node or {}
    return NodeReport(
        name=state.name,
        known=state.node is not None,
        expected=state.expected,
        capacity=state.capacity,
        allocatable=state.allocatable,
        allocated=sum(count_allocated(on_node, name) for name in state.resources),
        ready=is_ready(node),
        schedulable=state.node is not None and is_schedulable(node),
        ok=state.ok,
        reason=make_printable(find_note(state) if state.ok else explain_difference(state)),
        **count_gpu_resources(node, on_node),
        plugin_pod=get_name(state.plugin or {}),
        plugin_stale=state.is_plugin_stale,
        unmanaged_plugins=find_other_plugins(on_node, state.query),
        gpu_operator=operator.find_parts(get_labels(node)) if operator and state.node is not None else [],
        container_runtime_version=_get_runtime_version(node),
        labels=get_labels(node),
        annotations={key: value for key, value in get_annotations(node).items() if key.startswith(OWN_ANNOTATIONS)},
        maintenance=describe_maintenance(node) if state.node is not None else None,
        edge=find_edge_framework(node),
        judged=is_judged(node),
    )


def _get_runtime_version(node: Object) -> str:
    information = (node.get("status") or {}).get("nodeInfo") or {}
    return shorten(information.get("containerRuntimeVersion"))


def find_other_plugins(on_node: Iterable[Object], query: Query) -> list[str]:
    """Return ``namespace/owner`` of other GPU device plugins on a node, which would register the same GPUs again."""
    found = set()
    for pod in on_node:
        if not _is_plugin(pod, query) and _is_gpu_plugin(pod, query.vendor):
            metadata = pod.get("metadata") or {}
            owners = metadata.get("ownerReferences") or [{}]
            found.add(f"{metadata.get('namespace')}/{owners[0].get('name') or get_name(pod)}")
    return sorted(found)


def _is_gpu_plugin(pod: Object, vendor: Vendor) -> bool:
    """Return whether the pod offers GPUs of the vendor as a device plugin."""
    spec = pod.get("spec") or {}
    folders = [str((volume.get("hostPath") or {}).get("path") or "") for volume in spec.get("volumes") or []]
    images = " ".join(str(container.get("image")) for container in spec.get("containers") or [])
    if not any(_PLUGIN_FOLDER.search(folder) for folder in folders):
        return False
    named = bool(re.search(vendor.gpu_plugin_images, images, re.IGNORECASE))
    if vendor is not SERVED:
        return named
    labelled = any(matches_selector(row.plugin_labels, get_labels(pod)) for row in OWN_PLUGIN)
    return (named or labelled) and not _OTHER_VENDOR.search(images)


def _is_plugin(pod: Object, query: Query) -> bool:
    metadata = pod.get("metadata") or {}
    owners = [str(owner.get("name")) for owner in metadata.get("ownerReferences") or []]
    return (
        metadata.get("namespace") == query.namespace
        and bool(query.plugin_labels)
        and matches_selector(query.plugin_labels, get_labels(pod))
        # NVIDIA's chart gives the pods of this DaemonSet the labels of the plugin's.
        and not any(owner.endswith("-mps-control-daemon") for owner in owners)
    )


def _find_nodes(by_name: Mapping[str, Object], placed: Mapping[str, Sequence[Object]], query: Query) -> dict[str, None]:
    return {
        name: None
        for name, node in by_name.items()
        if query.resource in ((node.get("status") or {}).get("capacity") or {})
        or get_labels(node).get(query.vendor.present_label) == "true"
        or any(_is_plugin(pod, query) for pod in placed.get(name, []))
    }
