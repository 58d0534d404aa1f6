# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plan is made from: the parameters of a host, the state of its node, and the state of the cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Collection, Iterable, Mapping, Sequence

from .._vendors import SERVED
from .catalogue import NVIDIA_ROLE, WITH_NODE_ROLE, Strategy, matching
from .gpu_operator import MIG_DISABLED, MIG_LABEL, MIG_STATE_LABEL, OPERATOR_ROLE, OperatorState
from .plugin_config import LABEL, Request, strategy_of_name

#: How the reason begins that is noted with the cordon of a node whose strategy changes.
REASON = "change of the sharing strategy"
#: The label that keeps NVIDIA's device plugin off a node while the node changes.
CHANGE_LABEL = "gpu-kubernetes/sharing-change"
#: Tags of the playbooks: checks before any change, NVIDIA's device plugin, the other strategies, kube-scheduler.
TAGS = ("preflight", "device_plugin", "sharing", "scheduler")
#: The record of managed labels, which names the owner of each.
LABEL_RECORD = "gpu-kubernetes/managed-labels"


@dataclass(frozen=True)
class Host:
    """The parameters of one host, and what was found on the host itself."""

    host: str
    # The host's name in Kubernetes.
    node: str
    # The declared strategy; empty where the host keeps the one that it has.
    strategy: str = ""
    # Whether GPU pods may be evicted for a change.
    migrate: bool = False
    # Whether the host may be rebooted for a change.
    may_reboot: bool = False
    # The configuration of NVIDIA's device plugin on all nodes, what the host declares for its own, and the resource that the plugin registers.
    config: Mapping[str, Any] = field(default_factory=dict)
    request: Request = field(default_factory=Request)
    resource_name: str = "nvidia.com/gpu"
    # The number of working GPUs; None if it is unknown.
    gpus: int | None = None
    # Whether the host declares MIG devices, and whether its GPUs differ from these. Without, those that users have made stay as they are.
    has_layout: bool = False
    differs: bool = False
    # Whether that leaves GPUs without MIG.
    has_whole: bool = True
    # The configuration of the GPU Operator's MIG manager that the host declares.
    mig_config: str = ""
    # Strategies that keep files of this host, and those that may be removed while pods hold their resources.
    kept: Sequence[str] = ()
    remove_used: Sequence[str] = ()
    # The vendors of the host's GPUs, by name.
    vendors: Sequence[str] = (SERVED.name,)

    @property
    def where(self) -> str:
        """Return host and node for a sentence."""
        return f"Host {self.host} (node {self.node})"


def is_labelled(labels: Mapping[str, str], strategy: Strategy) -> bool:
    """Return whether a node has the strategy's label, or names a configuration of it for NVIDIA's device plugin."""
    return strategy.is_labelled(labels) or strategy_of_name(labels.get(LABEL, "")) is strategy


class NodeState:
    """The state of one host's node: a row of read_sharing_state, empty for a node that the cluster does not have."""

    def __init__(self, row: Mapping[str, Any], kept: Iterable[str] = ()) -> None:
        self.known: bool = row.get("known", bool(row))
        self.labels: Mapping[str, str] = row.get("labels") or {}
        self.offered: Mapping[str, int] = row.get("gpu_resources") or {}
        self.capacity: Mapping[str, int] = row.get("gpu_capacity") or {}
        self.allocated: Mapping[str, int] = row.get("gpu_allocated") or {}
        # The parts that NVIDIA's GPU Operator runs on the node, and whether the device plugin is one of them.
        self.operated: Sequence[str] = row.get("gpu_operator") or ()
        self.by_operator: bool = "device_plugin" in self.operated
        # The configuration that the MIG manager is to apply, and how far it is.
        self.mig_config: str = self.labels.get(MIG_LABEL, "")
        self.mig_state: str = self.labels.get(MIG_STATE_LABEL, "")
        # The roles by which earlier runs have set labels that device plugins read.
        record: str = (row.get("annotations") or {}).get(LABEL_RECORD, "")
        owners = _list_owners(record)
        self.label_owners: Sequence[str] = [role for role in (OPERATOR_ROLE, NVIDIA_ROLE) if role in owners]
        # The device plugins on the node, as namespace/owner; and by strategy, those that do not leave a node with its label.
        self.plugins: Sequence[str] = row.get("unmanaged_plugins") or ()
        self.staying_plugins: Mapping[str, Sequence[str]] = row.get("staying_plugins") or {}
        # The names of the labels that tools publish by node feature discovery, which overwrites them.
        self.published_labels: Collection[str] = row.get("published_labels") or ()
        # The reason of the node's maintenance; empty if it is in none.
        self.maintenance: str = (row.get("maintenance") or {}).get("reason") or ""
        # The name of the node's configuration of NVIDIA's device plugin; empty for that of all nodes. Others than this collection may have named it.
        self.config: str = self.labels.get(LABEL, "")
        # What keeps files of the host, or a label that its role has set there: an interrupted removal has removed the rest.
        self._kept = frozenset([*kept, *(row.name for row in WITH_NODE_ROLE if row.host_role in owners)])

    def is_served_by(self, strategy: Strategy) -> bool:
        """Return whether the node has the strategy's label, or still offers its resources."""
        return is_labelled(self.labels, strategy) or any(
            self.offered.get(name, 0) > 0 for name in strategy.offered_until_removed
        )

    def has(self, strategy: Strategy) -> bool:
        """Return whether the strategy serves the node, or an interrupted removal has left something of it there."""
        return (
            self.is_served_by(strategy)
            or any(self.capacity.get(name, 0) > 0 for name in strategy.in_capacity_until_removed)
            or strategy.name in self._kept
        )

    @property
    def has_operator_mig(self) -> bool:
        """Return whether the operator's MIG manager is to make MIG devices on the node."""
        return "mig_manager" in self.operated and self.mig_config not in ("", MIG_DISABLED)

    def count_held(self, patterns: Iterable[str]) -> int:
        """Return how many units of the resources pods on the node hold."""
        return sum(matching(self.allocated, patterns).values())

    @property
    def is_changing(self) -> bool:
        """Return whether an earlier run has cordoned the node for a change of its strategy."""
        return self.maintenance.startswith(REASON)

    @property
    def is_kept_off(self) -> bool:
        """Return whether an interrupted change keeps NVIDIA's device plugin off the node."""
        return CHANGE_LABEL in self.labels

    @property
    def changing(self) -> list[Strategy]:
        """Return the strategies of which a role changes the node that the interrupted change is about."""
        words = self.maintenance[len(REASON) :].replace(":", " ").split() if self.is_changing else []
        return [row for row in WITH_NODE_ROLE if row.name in words]


def _list_owners(record: str) -> list[str]:
    """Return the roles that have labels in a record of managed labels, which the node's kubelet can write; none if it cannot be read."""
    try:
        return list(json.loads(record or "{}").keys())
    except (ValueError, AttributeError, RecursionError):
        return []


def reason_of(leaves: Sequence[str], to: str) -> str:
    """Return the reason to note with a cordon, which ``NodeState.changing`` reads again."""
    return f"{REASON}: {' '.join(leaves)} to {to}" if leaves else f"{REASON}: to {to}"


@dataclass(frozen=True)
class Cluster:
    """The state of the cluster, and what this run does in it."""

    # By strategy, the nodes that have its label.
    labelled: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # The nodes with ResourceSlices of NVIDIA's DRA driver.
    claimed: Sequence[str] = ()
    # The nodes with a kube-scheduler that is a static pod.
    schedulers: Sequence[str] = ()
    # The control planes of the inventory, those that this run leaves out, and the name of their group; None for control planes are not checked.
    control_planes: Sequence[str] | None = None
    left_out: Sequence[str] = ()
    control_plane_group: str = "kube_control_plane"
    # The strategy that has a kube-scheduler of its own; empty if none has.
    second_scheduler: str = ""
    # The namespace of the device plugin, by strategy.
    namespaces: Mapping[str, str] = field(default_factory=dict)
    # By node, the name of its own configuration of NVIDIA's device plugin; and the configurations by their names.
    config_names: Mapping[str, str] = field(default_factory=dict)
    configs: Mapping[str, Any] = field(default_factory=dict)
    # Those of TAGS that this run has. A run with none of them changes no strategy.
    run_tags: Sequence[str] = TAGS
    # NVIDIA's GPU Operator; None if the cluster has none.
    operator: OperatorState | None = None
    # Whether the strategies are removed.
    absent: bool = False

    def binds(self, strategy: Strategy) -> bool:
        """Return whether an extender of the managed kube-scheduler binds the strategy's pods."""
        return strategy.scheduler == "extender" and strategy.name != self.second_scheduler

    def plugin_of(self, strategy: Strategy) -> str:
        """Return the DaemonSet of the strategy's device plugin, as ``namespace/name``."""
        return f"{self.namespaces.get(strategy.name, 'kube-system')}/{strategy.daemon_set}"
