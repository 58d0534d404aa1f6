# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the allocatable GPUs of each node with the expected ones and explains a difference in one clause.

The caller lists nodes and pods once, and can pass evidence (log lines, events) about plugin pods.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence, Union

from .._kube_error import shorten
from .._sharing.catalogue import OWN_PLUGIN, Strategy, strategy_of
from .._sharing.gpu_operator import GpuOperator
from .._text import make_printable
from .._vendors import OTHERS, SERVED
from .drain.plan import describe_maintenance
from .extended_resources import count_gpu_resources
from .objects import (
    Object,
    find_untolerated_taints,
    format_taint,
    get_allocatable,
    get_annotations,
    get_capacity,
    get_condition,
    get_labels,
    get_name,
    group_by_node,
    is_ready,
    is_schedulable,
    matches_selector,
)
from .pod_failures import (
    Evidence,
    add_remedy,
    explain_failure,
    explain_unread_log,
    find_error_line,
    find_newest,
)
from .requests import count_allocated

PRESENT_LABEL = SERVED.present_label
OWN_ANNOTATIONS = "gpu-kubernetes/"
#: Units of the query's resource, or of others by their names.
Units = Union[int, Mapping[str, int]]

# Taints that the DaemonSet controller tolerates by itself.
_DAEMON_TAINTS = (
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
)
_PLUGIN_FOLDER = re.compile(r"/device-plugins/?$")
_GPU_PLUGIN = re.compile(SERVED.plugin_images + "|gpu-?share|nano-?gpu|elastic-?gpu|hami|vgpu", re.IGNORECASE)
_OTHER_VENDOR = re.compile("|".join(vendor.plugin_images for vendor in OTHERS), re.IGNORECASE)


@dataclass(frozen=True)
class Query:
    """The resource, the labels of its plugin's pods, and the annotations that current pods have.

    Without labels, plugin pods are not searched. More units than expected are accepted unless ``exact``. ``boot_ids`` has the boot of
    each rebooted node.
    """

    resource: str = SERVED.resource
    namespace: str = "kube-system"
    plugin_labels: Mapping[str, str] = field(default_factory=lambda: {"name": "nvidia-device-plugin-ds"})
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    exact: bool = True
    boot_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def strategy(self) -> Strategy:
        """Return the sharing strategy whose device plugin registers the resource."""
        return strategy_of(self.resource)


@dataclass
class NodeReport:
    """The state of one node. Amounts are units of the resource, or of all expected ones; ``reason`` is empty if nothing is wrong.

    ``maintenance`` is that of ``describe_maintenance``: since when and why the node is in maintenance, and what to do.
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
    unmanaged_plugins: list[str] = field(default_factory=list)
    gpu_operator: list[str] = field(default_factory=list)
    container_runtime_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    maintenance: Object | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class _NodeState:
    """One node with its plugin pod, as the checks read it."""

    name: str
    node: Object | None
    # Units by resource; None expects the capacity of the query's resource.
    wanted: Mapping[str, int] | None
    query: Query
    plugin: Object | None
    daemon_sets: Sequence[Object]
    evidence: Evidence

    @property
    def resources(self) -> tuple[str, ...]:
        return tuple(self.wanted or [self.query.resource])

    @property
    def expected(self) -> int | None:
        return None if self.wanted is None else sum(self.wanted.values())

    @property
    def capacity(self) -> int:
        return sum(get_capacity(self.node or {}, name) for name in self.resources)

    @property
    def allocatable(self) -> int:
        return sum(get_allocatable(self.node or {}, name) for name in self.resources)

    @property
    def wrong(self) -> dict[str, int]:
        """Return the expected units of the resources of which another number is allocatable."""
        found = {name: get_allocatable(self.node or {}, name) - units for name, units in (self.wanted or {}).items()}
        return {
            name: (self.wanted or {})[name] for name, more in found.items() if more < 0 or (more and self.query.exact)
        }

    @property
    def shortage(self) -> str:
        units = self.wrong or self.wanted or {self.query.resource: self.capacity}
        return " and ".join(
            f"{get_allocatable(self.node or {}, name)} of {count} {name} allocatable" for name, count in units.items()
        )

    @property
    def plugin_name(self) -> str:
        return f"plugin pod {self.query.namespace}/{get_name(self.plugin or {})}"

    @property
    def is_count_right(self) -> bool:
        return self.allocatable == self.capacity > 0 if self.wanted is None else not self.wrong

    @property
    def is_current(self) -> bool:
        """Return whether the plugin pod has the requested configuration; a node with no expected GPU needs no pod."""
        if not self.query.pod_annotations or self.expected == 0:
            return True
        return self.plugin is not None and matches_selector(self.query.pod_annotations, get_annotations(self.plugin))

    @property
    def has_booted(self) -> bool:
        """Return whether the kubelet has reported since the requested boot; True if none is requested."""
        reported = ((self.node or {}).get("status") or {}).get("nodeInfo") or {}
        return self.query.boot_ids.get(self.name) in (None, reported.get("bootID"))

    @property
    def is_served(self) -> bool:
        """Return whether the plugin pod runs: the kubelet reports the devices of a deleted pod for some seconds."""
        return not self.query.pod_annotations or self.expected == 0 or not explain_failure(self.plugin or {})

    @property
    def ok(self) -> bool:
        ready = self.node is not None and is_ready(self.node)
        return ready and self.has_booted and self.is_count_right and self.is_current and self.is_served


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
        state = _NodeState(
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


def _build_report(state: _NodeState, on_node: Sequence[Object], operator: GpuOperator | None) -> NodeReport:
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
        reason=make_printable(_find_note(state) if state.ok else _explain(state)),
        **count_gpu_resources(node, on_node),
        plugin_pod=get_name(state.plugin or {}),
        unmanaged_plugins=find_other_plugins(on_node, state.query),
        gpu_operator=operator.find_parts(get_labels(node)) if operator and state.node is not None else [],
        container_runtime_version=_get_runtime_version(node),
        labels=get_labels(node),
        annotations={key: value for key, value in get_annotations(node).items() if key.startswith(OWN_ANNOTATIONS)},
        maintenance=describe_maintenance(node) if state.node is not None else None,
    )


def _get_runtime_version(node: Object) -> str:
    information = (node.get("status") or {}).get("nodeInfo") or {}
    return shorten(information.get("containerRuntimeVersion"))


def find_other_plugins(on_node: Iterable[Object], query: Query) -> list[str]:
    """Return ``namespace/owner`` of other GPU device plugins on a node, which would register the same GPUs again."""
    found = set()
    for pod in on_node:
        if not _is_plugin(pod, query) and _is_gpu_plugin(pod):
            metadata = pod.get("metadata") or {}
            owners = metadata.get("ownerReferences") or [{}]
            found.add(f"{metadata.get('namespace')}/{owners[0].get('name') or get_name(pod)}")
    return sorted(found)


def _is_gpu_plugin(pod: Object) -> bool:
    spec = pod.get("spec") or {}
    folders = [str((volume.get("hostPath") or {}).get("path") or "") for volume in spec.get("volumes") or []]
    images = " ".join(str(container.get("image")) for container in spec.get("containers") or [])
    return (
        any(_PLUGIN_FOLDER.search(folder) for folder in folders)
        and (
            bool(_GPU_PLUGIN.search(images))
            or any(matches_selector(row.plugin_labels, get_labels(pod)) for row in OWN_PLUGIN)
        )
        and not _OTHER_VENDOR.search(images)
    )


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
        or get_labels(node).get(PRESENT_LABEL) == "true"
        or any(_is_plugin(pod, query) for pod in placed.get(name, []))
    }


def _find_note(state: _NodeState) -> str:
    """Return a remark on a node that is as expected; empty without one."""
    if state.node is not None and not is_schedulable(state.node):
        maintenance = describe_maintenance(state.node)
        if maintenance:
            return str(maintenance["message"])
        return "is cordoned, so that no new pods are scheduled here; uncordon it when it may run pods"
    return ""


def _explain(state: _NodeState) -> str:
    for check in _CHECKS:
        clause = check(state)
        if clause:
            return clause
    return f"{state.shortage}, and the cluster reports no cause; read the kubelet's log on the node"


def _check_exists(state: _NodeState) -> str:
    if state.node is not None:
        return ""
    return "is not in the cluster; join it, or set gpu_node_name if its Kubernetes name differs"


def _check_ready(state: _NodeState) -> str:
    node = state.node or {}
    if is_ready(node):
        return ""
    message = shorten(get_condition(node, "Ready").get("message")) or "its kubelet has not reported"
    return f"is not Ready: {message}; check the kubelet and the container runtime on the node"


def _check_booted(state: _NodeState) -> str:
    return "" if state.has_booted else "its kubelet has not reported since the host was booted; check it on the node"


def _check_plugin_pod(state: _NodeState) -> str:
    if state.plugin is not None:
        return ""
    if state.expected == 0:
        return f"has {state.allocatable} {state.query.resource} though no GPU is expected; find the plugin that registered it"
    if not state.query.plugin_labels:
        return f"{state.shortage}; check the pod of its device plugin on the node, and read its log"
    labels = ",".join(f"{key}={value}" for key, value in sorted(state.query.plugin_labels.items()))
    for daemon_set in state.daemon_sets:
        template = (daemon_set.get("spec") or {}).get("template") or {}
        if matches_selector(state.query.plugin_labels, get_labels(template)):
            return f"{state.shortage}: {_explain_missing_pod(state, daemon_set, template)}"
    return (
        f"{state.shortage}: no plugin pod ({labels}) in namespace {state.query.namespace} is on the node; "
        f"deploy it with the role {state.query.strategy.role}"
    )


def _explain_missing_pod(state: _NodeState, daemon_set: Object, template: Object) -> str:
    """Return a clause with the reason why a DaemonSet creates no pod for the node."""
    node, strategy = state.node or {}, state.query.strategy
    spec = template.get("spec") or {}
    labels = get_labels(node)
    missing = [f"{key}={value}" for key, value in (spec.get("nodeSelector") or {}).items() if labels.get(key) != value]
    subject = f"DaemonSet {get_name(daemon_set)} creates no pod here"
    if missing:
        return (
            f"{subject}, because the node lacks the label {', '.join(missing)}; set it (role {strategy.labelling_role})"
        )
    taints = find_untolerated_taints(node, spec.get("tolerations") or [], _DAEMON_TAINTS)
    if taints:
        named = ", ".join(format_taint(taint) for taint in taints)
        return f"{subject}, because it does not tolerate the taint {named}; add it to {strategy.tolerations}"
    return f"{subject} yet; check its affinity and the events of the DaemonSet"


def _check_plugin_runs(state: _NodeState) -> str:
    failure = explain_failure(state.plugin or {}, state.evidence)
    return f"{state.shortage}: {state.plugin_name} {failure}" if failure else ""


def _check_current(state: _NodeState) -> str:
    if state.is_current:
        return ""
    return f"{state.plugin_name} still runs the previous configuration; the DaemonSet has not replaced it yet"


def _check_registered(state: _NodeState) -> str:
    if state.capacity or state.expected == 0:
        return ""
    line, unread = find_error_line(state.evidence.log), explain_unread_log(state.evidence)
    detail = f" and logs: {line}" if line else f", and {unread}" if unread else "; read its log"
    return add_remedy(f"{state.shortage}: {state.plugin_name} runs but has registered no GPU with the kubelet{detail}")


def _check_healthy(state: _NodeState) -> str:
    if state.allocatable >= state.capacity:
        return ""
    line = find_error_line(state.evidence.log)
    detail = f" ({line})" if line else ""
    lost = state.capacity - state.allocatable
    return (
        f"{state.shortage}: {lost} of {state.capacity} unhealthy as {state.plugin_name} reports{detail}; "
        "search the node's kernel log for Xid errors"
    )


def _check_count(state: _NodeState) -> str:
    if state.is_count_right:
        return ""
    return (
        f"{state.shortage}: all devices of {state.plugin_name} are healthy, so compare the node's GPUs with its "
        "sharing configuration and with what was expected"
    )


_CHECKS: Sequence[Callable[[_NodeState], str]] = (
    _check_exists,
    _check_ready,
    _check_booted,
    _check_plugin_pod,
    _check_plugin_runs,
    _check_current,
    _check_registered,
    _check_healthy,
    _check_count,
)
