# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is every GPU of every node offered to pods, and if not, why?

``assess`` compares what each node should offer with what it does offer and explains a difference in one clause.
It is pure: the caller lists nodes and pods once, and may hand in evidence (log lines, events) about plugin pods.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Iterable, Mapping, Sequence

from .._sharing.catalogue import Strategy, strategy_of
from .._vendors import OTHERS, SERVED
from .gpu_resources import amounts
from .objects import (
    Object,
    allocatable_of,
    annotations_of,
    capacity_of,
    condition_of,
    is_ready,
    is_schedulable,
    labels_of,
    name_of,
    pods_by_node,
    selects,
    taint_text,
    untolerated,
)
from .pod_trouble import Evidence, newest, one_line, telling_line, trouble, unread, with_remedy
from .requests import count_allocated

PRESENT_LABEL = SERVED.present_label
OPERATOR_LABEL = "nvidia.com/gpu.deploy.device-plugin"
OWN_ANNOTATIONS = "gpu-kubernetes/"

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
class Question:
    """What is asked: the resource, whose pods serve it, and what annotations these pods must carry to be current.

    Without labels nobody's pods are looked for. More units than expected are right unless it has to be ``exact``. ``boot_ids`` are of nodes
    that were rebooted, by their names.
    """

    resource: str = SERVED.resource
    namespace: str = "kube-system"
    plugin_labels: Mapping[str, str] = field(default_factory=lambda: {"name": "nvidia-device-plugin-ds"})
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    exact: bool = True
    boot_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def strategy(self) -> Strategy:
        """The sharing strategy whose device plugin registers the resource."""
        return strategy_of(self.resource)


@dataclass
class NodeReport:
    """The answer for one node. Amounts are units of the resource; ``reason`` is empty when there is nothing to say."""

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
    foreign_plugins: list[str] = field(default_factory=list)
    gpu_operator: bool = False
    container_runtime_version: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class _View:
    """Everything known about one node while its verdict is found."""

    name: str
    node: Object | None
    expected: int | None
    question: Question
    plugin: Object | None
    daemon_sets: Sequence[Object]
    evidence: Evidence

    @property
    def capacity(self) -> int:
        return capacity_of(self.node or {}, self.question.resource)

    @property
    def allocatable(self) -> int:
        return allocatable_of(self.node or {}, self.question.resource)

    @property
    def shortfall(self) -> str:
        wanted = self.capacity if self.expected is None else self.expected
        return f"{self.allocatable} of {wanted} {self.question.resource} allocatable"

    @property
    def plugin_name(self) -> str:
        return f"plugin pod {self.question.namespace}/{name_of(self.plugin or {})}"

    @property
    def count_is_right(self) -> bool:
        if self.expected is None:
            return self.allocatable == self.capacity > 0
        return self.allocatable == self.expected or (self.allocatable > self.expected and not self.question.exact)

    @property
    def is_current(self) -> bool:
        """The plugin pod was made from the configuration asked for (a node that offers nothing needs none)."""
        if not self.question.pod_annotations or self.expected == 0:
            return True
        return self.plugin is not None and selects(self.question.pod_annotations, annotations_of(self.plugin))

    @property
    def has_booted(self) -> bool:
        """Its kubelet has reported since the boot that is asked for, if one is."""
        reported = ((self.node or {}).get("status") or {}).get("nodeInfo") or {}
        return self.question.boot_ids.get(self.name) in (None, reported.get("bootID"))

    @property
    def is_served(self) -> bool:
        """The plugin pod that is asked for is there: for some seconds the kubelet still tells what a former one has offered."""
        return not self.question.pod_annotations or self.expected == 0 or not trouble(self.plugin or {})

    @property
    def ok(self) -> bool:
        ready = self.node is not None and is_ready(self.node)
        return ready and self.has_booted and self.count_is_right and self.is_current and self.is_served


def assess(
    nodes: Iterable[Object],
    pods: Iterable[Object],
    question: Question,
    expected: Mapping[str, int] | None = None,
    *,
    daemon_sets: Sequence[Object] = (),
    evidence: Mapping[str, Evidence] | None = None,
) -> list[NodeReport]:
    """Report on the expected nodes, or without expectation on every node that has to do with the resource.

    Args:
        nodes: all nodes of the cluster.
        pods: all pods, or at least the plugin's; finished ones may be missing.
        question: what is asked.
        expected: node name to number of units; None asks each node to offer all that it has.
        daemon_sets: those of the plugin's namespace, to explain a missing pod.
        evidence: by name of plugin pod.

    Returns:
        Reports sorted by node name.
    """
    by_name = {name_of(node): node for node in nodes}
    placed = pods_by_node(pods)
    names = expected if expected is not None else _concerned(by_name, placed, question)
    reports = []
    for name in sorted(names):
        on_node = placed.get(name, [])
        plugin = newest(pod for pod in on_node if _is_plugin(pod, question))
        view = _View(
            name=name,
            node=by_name.get(name),
            expected=None if expected is None else int(expected[name]),
            question=question,
            plugin=plugin,
            daemon_sets=daemon_sets,
            evidence=(evidence or {}).get(name_of(plugin or {}), Evidence()),
        )
        reports.append(_report(view, on_node))
    return reports


def _report(view: _View, on_node: Sequence[Object]) -> NodeReport:
    node = view.node or {}
    return NodeReport(
        name=view.name,
        known=view.node is not None,
        expected=view.expected,
        capacity=view.capacity,
        allocatable=view.allocatable,
        allocated=count_allocated(on_node, view.question.resource),
        ready=is_ready(node),
        schedulable=view.node is not None and is_schedulable(node),
        ok=view.ok,
        reason=_note(view) if view.ok else _why(view),
        **amounts(node, on_node),
        plugin_pod=name_of(view.plugin or {}),
        foreign_plugins=foreign_plugins(on_node, view.question),
        gpu_operator=labels_of(node).get(OPERATOR_LABEL) == "true",
        container_runtime_version=_runtime_version(node),
        labels=labels_of(node),
        annotations={key: value for key, value in annotations_of(node).items() if key.startswith(OWN_ANNOTATIONS)},
    )


def _runtime_version(node: Object) -> str:
    information = (node.get("status") or {}).get("nodeInfo") or {}
    return str(information.get("containerRuntimeVersion") or "")


def foreign_plugins(on_node: Iterable[Object], question: Question) -> list[str]:
    """Name the other GPU device plugins on a node, as ``namespace/owner``: they would offer the same GPUs again."""
    found = set()
    for pod in on_node:
        if not _is_plugin(pod, question) and _serves_gpus(pod):
            metadata = pod.get("metadata") or {}
            owners = metadata.get("ownerReferences") or [{}]
            found.add(f"{metadata.get('namespace')}/{owners[0].get('name') or name_of(pod)}")
    return sorted(found)


def _serves_gpus(pod: Object) -> bool:
    spec = pod.get("spec") or {}
    folders = [str((volume.get("hostPath") or {}).get("path") or "") for volume in spec.get("volumes") or []]
    images = " ".join(str(container.get("image")) for container in spec.get("containers") or [])
    return (
        any(_PLUGIN_FOLDER.search(folder) for folder in folders)
        and bool(_GPU_PLUGIN.search(images))
        and not _OTHER_VENDOR.search(images)
    )


def _is_plugin(pod: Object, question: Question) -> bool:
    in_namespace = (pod.get("metadata") or {}).get("namespace") == question.namespace
    return in_namespace and bool(question.plugin_labels) and selects(question.plugin_labels, labels_of(pod))


def _concerned(
    by_name: Mapping[str, Object], placed: Mapping[str, Sequence[Object]], question: Question
) -> dict[str, None]:
    return {
        name: None
        for name, node in by_name.items()
        if question.resource in ((node.get("status") or {}).get("capacity") or {})
        or labels_of(node).get(PRESENT_LABEL) == "true"
        or any(_is_plugin(pod, question) for pod in placed.get(name, []))
    }


def _note(view: _View) -> str:
    """A node may be as expected and yet deserve a word."""
    if view.node is not None and not is_schedulable(view.node):
        return "is cordoned, so new pods will not land here; uncordon it when it may take work"
    return ""


def _why(view: _View) -> str:
    for check in _CHECKS:
        clause = check(view)
        if clause:
            return clause
    return f"{view.shortfall}, and nothing in the cluster says why; look at the kubelet's log on the node"


def _unknown_node(view: _View) -> str:
    if view.node is not None:
        return ""
    return "is not in the cluster; join it, or set gpu_node_name if its Kubernetes name differs"


def _not_ready(view: _View) -> str:
    node = view.node or {}
    if is_ready(node):
        return ""
    message = one_line(condition_of(node, "Ready").get("message")) or "its kubelet has not reported"
    return f"is not Ready: {message}; look at the kubelet and the container runtime on the node"


def _not_booted(view: _View) -> str:
    return "" if view.has_booted else "its kubelet has not reported since the host was booted; look at it on the node"


def _no_plugin(view: _View) -> str:
    if view.plugin is not None:
        return ""
    if view.expected == 0:
        return f"offers {view.allocatable} {view.question.resource} though no GPU is expected; see who registered it"
    if not view.question.plugin_labels:
        return f"{view.shortfall}; look at the pod of its device plugin on the node, and at its log"
    labels = ",".join(f"{key}={value}" for key, value in sorted(view.question.plugin_labels.items()))
    for daemon_set in view.daemon_sets:
        template = (daemon_set.get("spec") or {}).get("template") or {}
        if selects(view.question.plugin_labels, labels_of(template)):
            return f"{view.shortfall}: {_kept_away(view, daemon_set, template)}"
    return (
        f"{view.shortfall}: no plugin pod ({labels}) in namespace {view.question.namespace} is on the node; "
        f"deploy it with the role {view.question.strategy.role}"
    )


def _kept_away(view: _View, daemon_set: Object, template: Object) -> str:
    """Say why a DaemonSet makes no pod for the node."""
    node, strategy = view.node or {}, view.question.strategy
    spec = template.get("spec") or {}
    labels = labels_of(node)
    missing = [f"{key}={value}" for key, value in (spec.get("nodeSelector") or {}).items() if labels.get(key) != value]
    who = f"DaemonSet {name_of(daemon_set)} makes no pod here"
    if missing:
        return f"{who}, because the node lacks the label {', '.join(missing)}; set it (role {strategy.labelling_role})"
    taints = untolerated(node, spec.get("tolerations") or [], _DAEMON_TAINTS)
    if taints:
        named = ", ".join(taint_text(taint) for taint in taints)
        return f"{who}, because it does not tolerate the taint {named}; add it to {strategy.tolerations}"
    return f"{who} yet; look at its affinity and at the events of the DaemonSet"


def _plugin_trouble(view: _View) -> str:
    said = trouble(view.plugin or {}, view.evidence)
    return f"{view.shortfall}: {view.plugin_name} {said}" if said else ""


def _outdated(view: _View) -> str:
    if view.is_current:
        return ""
    return f"{view.plugin_name} still runs the previous configuration; the DaemonSet has not replaced it yet"


def _nothing_registered(view: _View) -> str:
    if view.capacity or view.expected == 0:
        return ""
    line, dark = telling_line(view.evidence.log), unread(view.evidence)
    said = f" and says: {line}" if line else f", and {dark}" if dark else "; see its log"
    return with_remedy(f"{view.shortfall}: {view.plugin_name} runs but has offered no GPU to the kubelet{said}")


def _unhealthy(view: _View) -> str:
    if view.allocatable >= view.capacity:
        return ""
    line = telling_line(view.evidence.log)
    said = f" ({line})" if line else ""
    lost = view.capacity - view.allocatable
    return (
        f"{view.shortfall}: {lost} of {view.capacity} unhealthy as {view.plugin_name} reports{said}; "
        "look for Xid errors in the node's kernel log"
    )


def _other_count(view: _View) -> str:
    if view.expected is None or view.allocatable == view.expected:
        return ""
    return (
        f"{view.shortfall}: all that {view.plugin_name} offers is healthy, so compare the node's GPUs with its "
        "sharing configuration and with what was expected"
    )


_CHECKS: Sequence[Callable[[_View], str]] = (
    _unknown_node,
    _not_ready,
    _not_booted,
    _no_plugin,
    _plugin_trouble,
    _outdated,
    _nothing_registered,
    _unhealthy,
    _other_count,
)
