# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the allocatable GPUs of a node with the expected ones and explains a difference in one clause."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Mapping, Sequence, Union

from .._kube_error import shorten
from .._sharing.catalogue import Strategy, strategy_of
from .._vendors import SERVED, Vendor, vendor_of
from .drain.plan import describe_maintenance
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
    is_judged,
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
)

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

    @property
    def vendor(self) -> Vendor:
        """Return the vendor of the GPUs that are the resource."""
        return vendor_of(self.resource)


@dataclass(frozen=True)
class NodeState:
    """One node with its plugin pod, as the checks read it. Amounts are units; ``wanted`` is by resource.

    Without ``wanted``, the capacity of the query's resource is expected.
    """

    name: str
    node: Object | None
    wanted: Mapping[str, int] | None
    query: Query
    plugin: Object | None
    daemon_sets: Sequence[Object]
    evidence: Evidence

    @property
    def resources(self) -> tuple[str, ...]:
        """Return the names of the expected resources, or that of the query."""
        return tuple(self.wanted or [self.query.resource])

    @property
    def expected(self) -> int | None:
        """Return the expected units of all resources; None if the capacity is expected."""
        return None if self.wanted is None else sum(self.wanted.values())

    @property
    def capacity(self) -> int:
        """Return the capacity in units of all resources."""
        return sum(get_capacity(self.node or {}, name) for name in self.resources)

    @property
    def allocatable(self) -> int:
        """Return the allocatable units of all resources."""
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
        """Return how many of the expected units of each resource are allocatable, in words."""
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
    def is_plugin_stale(self) -> bool:
        """Return whether a current plugin pod runs on the Ready node, and has registered other units than expected, healthy or not."""
        node = self.node or {}
        runs = self.plugin is not None and self.is_current and not explain_failure(self.plugin)
        has_others = any(get_capacity(node, name) != units for name, units in self.wrong.items())
        return is_ready(node) and self.has_booted and runs and has_others

    @property
    def ok(self) -> bool:
        """Return whether the node is Ready and has the expected GPUs and plugin."""
        ready = self.node is not None and is_ready(self.node)
        return ready and self.has_booted and self.is_count_right and self.is_current and self.is_served


def find_note(state: NodeState) -> str:
    """Return a remark on a node that is as expected; empty without one."""
    if state.node is not None and not is_schedulable(state.node):
        maintenance = describe_maintenance(state.node)
        if maintenance:
            return str(maintenance["message"])
        return "is cordoned, so that no new pods are scheduled here; uncordon it when it may run pods"
    return ""


def explain_difference(state: NodeState) -> str:
    """Return a clause with the first cause why a node is not as expected, and its remedy."""
    for check in _CHECKS:
        clause = check(state)
        if clause:
            return clause
    return f"{state.shortage}, and the cluster reports no cause; read the kubelet's log on the node"


def _check_exists(state: NodeState) -> str:
    if state.node is not None:
        return ""
    return "is not in the cluster; join it, or set gpu_node_name if its Kubernetes name differs"


def _check_ready(state: NodeState) -> str:
    node = state.node or {}
    if is_ready(node):
        return ""
    message = shorten(get_condition(node, "Ready").get("message")) or "its kubelet has not reported"
    if not is_judged(node):
        return f"is not judged, because its edge framework keeps its pods while it is offline ({message}); run again when it is connected"
    return f"is not Ready: {message}; check the kubelet and the container runtime on the node"


def _check_booted(state: NodeState) -> str:
    return "" if state.has_booted else "its kubelet has not reported since the host was booted; check it on the node"


def _check_plugin_pod(state: NodeState) -> str:
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


def _explain_missing_pod(state: NodeState, daemon_set: Object, template: Object) -> str:
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


def _check_plugin_runs(state: NodeState) -> str:
    failure = explain_failure(state.plugin or {}, state.evidence)
    return f"{state.shortage}: {state.plugin_name} {failure}" if failure else ""


def _check_current(state: NodeState) -> str:
    if state.is_current:
        return ""
    return f"{state.plugin_name} still runs the previous configuration; the DaemonSet has not replaced it yet"


def _check_registered(state: NodeState) -> str:
    if state.capacity or state.expected == 0:
        return ""
    line, unread = find_error_line(state.evidence.log), explain_unread_log(state.evidence)
    detail = f" and logs: {line}" if line else f", and {unread}" if unread else "; read its log"
    return add_remedy(f"{state.shortage}: {state.plugin_name} runs but has registered no GPU with the kubelet{detail}")


def _check_healthy(state: NodeState) -> str:
    if state.allocatable >= state.capacity:
        return ""
    line = find_error_line(state.evidence.log)
    detail = f" ({line})" if line else ""
    lost = state.capacity - state.allocatable
    errors = "Xid errors" if state.query.vendor is SERVED else "errors of their driver"
    return (
        f"{state.shortage}: {lost} of {state.capacity} unhealthy as {state.plugin_name} reports{detail}; "
        f"search the node's kernel log for {errors}"
    )


def _check_count(state: NodeState) -> str:
    if state.is_count_right:
        return ""
    return (
        f"{state.shortage}: all devices of {state.plugin_name} are healthy, so compare the node's GPUs with its "
        "sharing configuration and with what was expected"
    )


_CHECKS: Sequence[Callable[[NodeState], str]] = (
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
