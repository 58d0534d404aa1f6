# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide how the GPUs of hosts are shared, and what a change of that requires."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Sequence

from .catalogue import EXTENDED, STRATEGIES, Strategy, matching, nvidia_resources

#: What the cordon of a node whose strategy changes is noted for.
REASON = "change of how GPUs are shared"
MAINTENANCE = "gpu-kubernetes/maintenance"
#: The tag of NVIDIA's device plugin, which each change takes: it comes to the node or leaves it.
PLUGIN_TAG = "device_plugin"
BY_NVIDIA = "exclusive, time_slicing, mps or mig"


@dataclass(frozen=True)
class Request:
    """The parameters of one host, and what the host itself has of a strategy."""

    host: str
    # The host's name in Kubernetes.
    node: str
    # The declared strategy; empty where the host keeps the one that it has.
    strategy: str = ""
    # Whether GPU pods may be evicted for a change.
    migrate: bool = False
    # The configuration of NVIDIA's device plugin, and the resource that it registers.
    config: Mapping[str, Any] = field(default_factory=dict)
    resource_name: str = "nvidia.com/gpu"
    # Whether programs of the host are kept because nano-gpu has replaced them.
    programs_kept: bool = False


class NodeState:
    """The state of one host's node: a row of gpu_nodes_info, empty for a node that the cluster does not have."""

    def __init__(self, row: Mapping[str, Any], programs_kept: bool) -> None:
        self.labels: Mapping[str, str] = row.get("labels") or {}
        self.offered: Mapping[str, int] = row.get("gpu_resources") or {}
        self.capacity: Mapping[str, int] = row.get("gpu_capacity") or {}
        self.allocated: Mapping[str, int] = row.get("gpu_allocated") or {}
        self.annotations: Mapping[str, str] = row.get("annotations") or {}
        self.programs_kept = programs_kept

    def is_served_by(self, strategy: Strategy) -> bool:
        """Return whether the node has the strategy's label, or still offers its resources."""
        return strategy.is_labelled(self.labels) or any(
            self.offered.get(name, 0) > 0 for name in strategy.offered_until_removed
        )

    def has(self, strategy: Strategy) -> bool:
        """Return whether the strategy serves the node, or an interrupted removal has left something of it there."""
        return (
            self.is_served_by(strategy)
            or any(self.capacity.get(name, 0) > 0 for name in strategy.in_capacity_until_removed)
            or (strategy.replaces_programs and self.programs_kept)
        )

    def is_changing(self) -> bool:
        """Return whether an earlier run has cordoned the node for a change of its strategy. An annotation that cannot be read counts as none."""
        try:
            noted = json.loads(self.annotations.get(MAINTENANCE) or "{}")
        except ValueError:
            return False
        return isinstance(noted, dict) and noted.get("reason") == REASON


@dataclass(frozen=True)
class Change:
    """What the desired strategy changes on one node."""

    desired: Strategy
    leaves: Sequence[Strategy]
    # Whether the desired strategy has an extender and its label is not on the node yet.
    enters: bool
    # Whether it then takes the place of NVIDIA's device plugin.
    replaces_nvidia: bool
    # Units of GPU resources that pods hold and that the node stops offering; 0 without a change.
    held: int
    # Tags of the playbooks that the change takes and the run does not have.
    missing_tags: Sequence[str]

    @property
    def is_change(self) -> bool:
        """Return whether one device plugin leaves the node and another one comes."""
        return bool(self.leaves) or self.replaces_nvidia


def decide(
    requests: Iterable[Mapping[str, Any]],
    nodes: Iterable[Mapping[str, Any]],
    run_tags: Sequence[str] = (),
    check_allocated: bool = True,
    second_scheduler: str = "",
) -> dict[str, Any]:
    """Decide for all hosts of a play, in their order, how their GPUs are shared.

    ``requests`` are fields of Request, ``nodes`` rows of gpu_nodes_info. ``run_tags`` are the tags of this run, of those that a change takes;
    none stands for a run that has nothing to do with a change. ``check_allocated`` is whether a change is refused while pods hold GPUs.
    ``second_scheduler`` names the strategy that has a kube-scheduler of its own, if one has.

    Returns ``hosts``, a row by host with what the role exports and ``error``, and the ``error`` of the whole run. An error is one sentence with
    host, cause and remedy, or empty. Raises KeyError for an unknown strategy and TypeError for an unknown or missing field.
    """
    states = {row["name"]: row for row in nodes}
    hosts = {}
    for request in (Request(**each) for each in requests):
        node = NodeState(states.get(request.node) or {}, request.programs_kept)
        hosts[request.host] = _decide_host(request, node, run_tags, check_allocated)
    return {"hosts": hosts, "error": "" if second_scheduler else _find_second_extender(hosts)}


def _decide_host(request: Request, node: NodeState, run_tags: Sequence[str], check_allocated: bool) -> dict[str, Any]:
    configured = read_configured(request.config)
    served = (row.name for row in EXTENDED if node.is_served_by(row))
    change = _plan(STRATEGIES[request.strategy or next(served, configured)], request, node, run_tags)
    extended_by = [change.desired, *change.leaves] if change.enters else change.leaves
    row: dict[str, Any] = {
        "decided": change.desired.name,
        "empties": change.is_change and request.migrate,
        # Also where an interrupted run has cordoned the node, and not in a run that does half of a change.
        "returns": (change.is_change or node.is_changing()) and not change.missing_tags,
        "reason": REASON,
        "extended_by": [each.name for each in extended_by],
        "error": _find_error(request, configured, change, check_allocated),
    }
    for each in EXTENDED:
        row[f"has_{each.name}"] = node.has(each)
        row[f"leaves_{each.name}"] = each in change.leaves
    return row


def read_configured(config: Mapping[str, Any]) -> str:
    """Return the strategy that NVIDIA's device plugin is configured for; it has one configuration for all of its nodes."""
    sharing, flags = _section(config, "sharing"), _section(config, "flags")
    if sharing.get("mps"):
        return "mps"
    if sharing.get("timeSlicing"):
        return "time_slicing"
    return "exclusive" if (flags.get("migStrategy") or "none") == "none" else "mig"


def _section(config: Any, name: str) -> Mapping[str, Any]:
    """A section of the configuration; a section of another form counts as left out, as the role that deploys the plugin rejects it."""
    section = config.get(name) if isinstance(config, Mapping) else None
    return section if isinstance(section, Mapping) else {}


def _plan(desired: Strategy, request: Request, node: NodeState, run_tags: Sequence[str]) -> Change:
    # On the way to NVIDIA's device plugin, a strategy whose label goes first may be half removed with nothing left to see of it.
    resumes = desired.by_nvidia and node.is_changing()
    leaves = [
        row for row in EXTENDED if row is not desired and (node.has(row) or (resumes and not row.label_removed_last))
    ]
    nvidia = nvidia_resources(request.resource_name)
    enters = not desired.by_nvidia and not desired.is_labelled(node.labels)
    replaces_nvidia = enters and sum(matching(node.capacity, nvidia).values()) > 0
    # Of each strategy that leaves: an interrupted change may have let several in.
    left = [pattern for row in leaves for pattern in row.resources] + list(nvidia if replaces_nvidia else ())
    takes = {PLUGIN_TAG, *(row.tag for row in (desired, *leaves))}
    return Change(
        desired,
        leaves,
        enters,
        replaces_nvidia,
        held=sum(matching(node.allocated, left).values()),
        missing_tags=sorted(takes.difference(run_tags)) if run_tags else [],
    )


def _find_error(request: Request, configured: str, change: Change, check_allocated: bool) -> str:
    desired = change.desired.name
    if change.desired.by_nvidia and desired != configured:
        return (
            f"Host {request.host}: gpu_sharing_strategy is {desired}, and k8s_device_plugin_config shares GPUs as {configured}; NVIDIA's device "
            "plugin does the same on all of its nodes, so make both agree (sharing.timeSlicing for time_slicing, sharing.mps for mps, "
            "flags.migStrategy for mig, none of them for exclusive)."
        )
    where = f"Host {request.host} (node {request.node})"
    if change.held and check_allocated and not request.migrate:
        shared = change.leaves[0].name if change.leaves else BY_NVIDIA
        return (
            f"{where}: its GPUs are shared as {shared}, {desired} is asked for, and pods hold GPUs; end them first, or set gpu_sharing_migrate "
            "to true to have the node drained of GPU pods."
        )
    if change.is_change and change.missing_tags:
        return (
            f"{where}: its sharing strategy changes to {desired}, which takes one device plugin off the node and brings another one, and this "
            f"run leaves out {', '.join(change.missing_tags)}; run with all of these tags, or without tags."
        )
    return ""


def _find_second_extender(hosts: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the error of a run whose hosts have several strategies that bind pods with one kube-scheduler. Refused hosts do not count."""
    users = {
        row.name: [host for host, each in hosts.items() if each["decided"] == row.name and not each["error"]]
        for row in EXTENDED
    }
    named = [f"{name}, which {', '.join(users[name])} would have," for name in users if users[name]]
    if len(named) < 2:
        return ""
    return (
        f"{' and '.join(named)} each need an extender that binds pods, and a kube-scheduler takes only one; set one gpu_sharing_strategy for all of "
        "these hosts, or, with a second scheduler of your own for one of the two, name that one in gpu_sharing_second_scheduler."
    )
