# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide for one node which sharing strategy it leaves and enters, and what follows from that."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Sequence

from .catalogue import DRAINS, NVIDIA_ROLE, OWN_PLUGIN, STRATEGIES, WITH_NODE_ROLE, Strategy, matching, nvidia_resources
from .gpu_operator import MIG_DISABLED, MIG_LABEL, OPERATOR_ROLE, GpuOperator, OperatorState
from .node_state import Cluster, Host, NodeState
from .plugin_config import LABEL, NodeConfig, build_config, read_configured, strategy_of_name

#: The tags that a change requires: one device plugin leaves the node, and another one comes.
REQUIRED_TAGS = ("device_plugin", "sharing")
ACTING_TAGS = (*REQUIRED_TAGS, "scheduler")


@dataclass(frozen=True)
class Change:
    """What changes on one node. ``to`` is the strategy afterwards; None if its strategies are removed and no other follows."""

    host: Host
    node: NodeState
    to: Strategy | None
    # Strategies of which a role changes the node, and that leave it.
    leaves: Sequence[Strategy]
    # The strategy of NVIDIA's device plugin that another one replaces, or the same with another configuration.
    replaced: Strategy | None
    # Tags that the change requires and the run does not have.
    missing_tags: Sequence[str]
    # Whether the node's configuration of NVIDIA's device plugin changes, or what its GPUs offer.
    changes: bool = False
    # The node's configuration of NVIDIA's device plugin afterwards, and that of the GPU Operator's MIG manager.
    config: NodeConfig = field(default_factory=NodeConfig)
    mig_config: str = ""
    # Whether the GPU Operator's ConfigMap lacks that configuration, as after a tool has applied the ConfigMap from a repository.
    lacks_key: bool = False

    @property
    def own(self) -> Strategy | None:
        """Return the strategy afterwards if it has a device plugin of its own."""
        return self.to if self.to and not self.to.by_nvidia else None

    @property
    def serves(self) -> bool:
        """Return whether a device plugin serves GPUs of the node afterwards. An unknown number of GPUs counts as some."""
        return self.to is not None and self.host.gpus != 0

    @property
    def shares(self) -> bool:
        """Return whether a device plugin of the strategy's own serves GPUs of the node afterwards."""
        return self.own is not None and self.serves

    @property
    def is_present(self) -> bool:
        """Return whether the strategy's role is applied to the node: also to one that has lost its GPUs."""
        return self.serves or (self.own is not None and self.node.has(self.own))

    @property
    def leaving(self) -> list[str]:
        """Return the names of the strategies that leave the node."""
        return list(dict.fromkeys(row.name for row in (*self.leaves, self.replaced) if row))

    @property
    def by_operator(self) -> bool:
        """Return whether NVIDIA's GPU Operator shares the GPUs, by labels of the node."""
        return self.node.by_operator and (self.to is None or self.to.by_nvidia)

    @property
    def sets_operator_labels(self) -> bool:
        """Return whether the labels for the operator change, also after an interrupted change, or are removed."""
        if self.to is None:
            return OPERATOR_ROLE in self.node.label_owners
        return self.by_operator and (((self.changes or self.lacks_key) and self.serves) or self.node.is_changing)

    @property
    def operator_labels(self) -> dict[str, str]:
        """Return the node's labels for the operator afterwards."""
        if self.to is None or not self.by_operator:
            return {}
        labels = {LABEL: self.config.name, MIG_LABEL: self.mig_config}
        return {label: value for label, value in labels.items() if value}

    @property
    def former_owner(self) -> str:
        """Return the role whose labels leave a node that the operator takes over, or leaves; empty if there are none.

        A configuration that keeps its name keeps the label, which both roles may set to the same value.
        """
        owner = NVIDIA_ROLE if self.by_operator else OPERATOR_ROLE
        is_kept = self.to is not None and self.node.config == self.config.name != ""
        return owner if owner in self.node.label_owners and not is_kept else ""

    @property
    def removes_operator_labels(self) -> bool:
        """Return whether the labels for the operator leave the node, and none follow."""
        return self.former_owner == OPERATOR_ROLE or (self.to is None and self.sets_operator_labels)

    @property
    def awaits_mig(self) -> bool:
        """Return whether the operator's MIG manager changes the MIG devices, also after an interrupted change."""
        if self.to is None or not self.sets_operator_labels or not self.mig_config:
            return False
        return self.mig_config != self.node.mig_config or self.to.mig

    @property
    def uses_host_role(self) -> bool:
        """Return whether a role brings the host to a strategy of NVIDIA's device plugin: MIG devices or a configuration of the node's own."""
        if self.to is None or not self.to.by_nvidia or not self.to.host_role or self.by_operator:
            return False
        return self.host.has_layout if self.to.mig else bool(self.config.name)

    @property
    def enters_host_role(self) -> bool:
        """Return whether a role changes the host before NVIDIA's device plugin may start there."""
        return self.serves and self.uses_host_role and (self.changes or self.node.is_kept_off)

    @property
    def is_change(self) -> bool:
        """Return whether one device plugin leaves the node and another one comes. What an interrupted run has completed on the node is not a change."""
        if self.to is None:
            return False
        return any(map(self.node.has, self.leaves)) or self.replaced is not None or self.enters_host_role

    @property
    def cordons(self) -> bool:
        """Return whether the node is cordoned before and uncordoned afterwards, also if an earlier run has cordoned it."""
        return (self.is_change or self.node.is_changing) and not self.missing_tags

    @property
    def pauses(self) -> bool:
        """Return whether NVIDIA's device plugin leaves the node and comes back with another configuration."""
        if self.to is None or not self.to.by_nvidia or self.by_operator:
            return False
        return self.replaced is not None or self.enters_host_role

    @property
    def keeps_plugin_off(self) -> bool:
        """Return whether NVIDIA's device plugin, which has the GPUs open, is off the node while roles change its host."""
        return self.pauses or (not self.by_operator and any(row.by_nvidia for row in self.leaves))

    @property
    def takes_plugin_off(self) -> bool:
        """Return whether NVIDIA's device plugin leaves the node, or the name of its configuration."""
        return self.keeps_plugin_off or (self.own is not None and bool(self.node.config))

    @property
    def brings_plugin_back(self) -> bool:
        """Return whether NVIDIA's device plugin may start on the node again, also after an interrupted change."""
        if self.by_operator:
            return False
        if self.to is None or not self.to.by_nvidia:
            return self.keeps_plugin_off or self.node.is_kept_off
        return self.pauses or self.node.is_changing

    @property
    def drain(self) -> str:
        """Return which pods are evicted, one of DRAINS."""
        if not (self.is_change and self.host.migrate):
            return DRAINS[0]
        rows = [row for row in (self.to, *self.leaves) if row]
        if self.host.may_reboot and any(row.may_reboot for row in rows):
            return DRAINS[-1]
        return max((row.drain for row in rows), key=DRAINS.index)

    @property
    def held(self) -> int:
        """Return the units of GPU resources that pods hold and that the node stops offering."""
        nvidia = nvidia_resources(self.host.resource_name) if self.replaced or self.pauses else ()
        own = (row for row in self.leaves if not row.by_nvidia)
        return self.node.count_held([*nvidia, *(pattern for row in own for pattern in row.resources)])


def plan_change(host: Host, node: NodeState, cluster: Cluster) -> Change:
    """Decide the change of one node; it follows from its parameters and its state alone. Raises KeyError for an unknown strategy."""
    declared = STRATEGIES[host.strategy] if host.strategy else None
    if cluster.absent:
        return _plan_removal(host, node, declared)
    served = next((row for row in OWN_PLUGIN if node.is_served_by(row)), None) or strategy_of_name(node.config)
    to = declared or served or _observe(host, node)
    if node.by_operator and to.by_nvidia and cluster.operator:
        changes, config, mig_config, lacks_key = _compare_with_operator(host, node, to, cluster.operator)
    else:
        changes, config = _compare_config(host, node, to)
        mig_config, lacks_key = node.mig_config, False
    leaves = [row for row in WITH_NODE_ROLE if row is not to and (node.has(row) or row in node.changing)]
    leaves += [to] if to.restarts and changes and (node.has(to) or to in node.changing) else []
    leaves = _list_leaving(host, node, leaves)
    replaced = None if host.gpus == 0 else _find_replaced(host, node, to, changes)
    acts = bool(set(ACTING_TAGS).intersection(cluster.run_tags))
    missing = sorted(set(REQUIRED_TAGS).difference(cluster.run_tags)) if acts else []
    return Change(host, node, to, leaves, replaced, missing, changes, config, mig_config, lacks_key)


def _plan_removal(host: Host, node: NodeState, declared: Strategy | None) -> Change:
    # Declared ones too: an interrupted first deployment has left objects in the cluster, and nothing on nodes.
    present = [row for row in WITH_NODE_ROLE if node.has(row) or row in (declared, *node.changing)]
    removed = _observe(host, node) if node.by_operator and OPERATOR_ROLE in node.label_owners else None
    return Change(host, node, None, _list_leaving(host, node, present), removed, ())


def _compare_config(host: Host, node: NodeState, to: Strategy) -> tuple[bool, NodeConfig]:
    """Return whether the configuration of NVIDIA's device plugin or the MIG devices change, and the configuration. That of an undeclared strategy stays."""
    config = NodeConfig(node.config)
    if host.strategy or not node.config:
        config = build_config(host.config, to, host.request, host.resource_name)
    return node.config != config.name or (to.mig and host.has_layout and host.differs), config


def _compare_with_operator(
    host: Host, node: NodeState, to: Strategy, operator: OperatorState
) -> tuple[bool, NodeConfig, str, bool]:
    """Return whether the operator's configurations change, those of its device plugin and MIG manager, and whether the ConfigMap lacks the first one."""
    config, mig_config = _choose_for_operator(host, node, to, operator.policy)
    is_waiting = to.mig and node.has_operator_mig and node.mig_state != "success"
    lacks_key = bool(config.name and config.document) and config.name not in (operator.configs or ())
    differs = (node.config, node.mig_config) != (config.name, mig_config)
    return bool(host.strategy) and (differs or is_waiting), config, mig_config, lacks_key


def _find_replaced(host: Host, node: NodeState, to: Strategy, changes: bool) -> Strategy | None:
    """Return the strategy of NVIDIA's device plugin if the node has that plugin's resources, or pods still hold some."""
    if to.by_nvidia and not changes:
        return None
    nvidia = nvidia_resources(host.resource_name)
    # The label of a strategy keeps NVIDIA's device plugin off; a kubelet has its amounts in the capacity for a while.
    is_labelled = any(row.is_labelled(node.labels) for row in OWN_PLUGIN)
    offers = not is_labelled and sum(matching(node.capacity, nvidia).values()) > 0
    if not offers and (to.by_nvidia or not node.count_held(nvidia)):
        return None
    return _observe(host, node)


def _observe(host: Host, node: NodeState) -> Strategy:
    """Return the strategy of NVIDIA's device plugin on the node."""
    mig = next(row for row in STRATEGIES.values() if row.mig) if node.has_operator_mig and node.by_operator else None
    return strategy_of_name(node.config) or mig or read_configured(host.config)


def _list_leaving(host: Host, node: NodeState, rows: Sequence[Strategy]) -> list[Strategy]:
    """Return those of the strategies of which a role changes the node. The operator does what NVIDIA's device plugin needs there."""
    if not node.by_operator:
        return list(rows)
    # What a host role has left before the operator came.
    kept = [row for row in WITH_NODE_ROLE if row.by_nvidia and row.name in host.kept]
    return [*(row for row in rows if not row.by_nvidia), *kept]


def _choose_for_operator(host: Host, node: NodeState, to: Strategy, policy: GpuOperator) -> tuple[NodeConfig, str]:
    """Return the node's configurations of the operator's device plugin and MIG manager. Those of undeclared strategies stay.

    Where the operator has a configuration for all nodes, which is not known here, each declared strategy has one of its own.
    """
    is_declared = bool(host.strategy)
    is_named = bool(policy.default_config)
    if to.mig and not is_named and (is_declared or not node.config):
        document = {"version": "v1", "flags": {"migStrategy": policy.mig_strategy}}
        return NodeConfig("", document), (host.mig_config if is_declared else "") or node.mig_config
    if not is_declared:
        return NodeConfig(node.config), node.mig_config
    request = replace(host.request, mig_strategy=policy.mig_strategy) if to.mig else host.request
    config = build_config(host.config, to, request, host.resource_name, named=is_named)
    if to.mig:
        return config, host.mig_config or node.mig_config
    return config, MIG_DISABLED if node.has_operator_mig else node.mig_config
