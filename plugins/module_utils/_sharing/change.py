# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which sharing strategies one node leaves, and which one it has afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

from .catalogue import DRAINS, OWN_PLUGIN, STRATEGIES, Strategy, matching, nvidia_resources
from .node_state import Cluster, Host, NodeState, read_configured

#: The tags that a change requires: one device plugin leaves the node, and another one comes.
REQUIRED_TAGS = ("device_plugin", "sharing")
ACTING_TAGS = (*REQUIRED_TAGS, "scheduler")


@dataclass(frozen=True)
class Change:
    """What changes on one node. ``to`` is the strategy afterwards; None if its strategies are removed and no other follows."""

    host: Host
    node: NodeState
    to: Strategy | None
    # Strategies with a device plugin of their own that leave the node.
    leaves: Sequence[Strategy]
    # The strategy of NVIDIA's device plugin that another one replaces.
    replaced: Strategy | None
    # Tags that the change requires and the run does not have.
    missing_tags: Sequence[str]

    @property
    def own(self) -> Strategy | None:
        """Return the strategy afterwards if it has a device plugin of its own."""
        return self.to if self.to and not self.to.by_nvidia else None

    @property
    def shares(self) -> bool:
        """Return whether a device plugin of the strategy's own serves GPUs of the node afterwards. An unknown number of GPUs counts as some."""
        return self.own is not None and self.host.gpus != 0

    @property
    def leaving(self) -> list[str]:
        """Return the names of the strategies that leave the node."""
        return [row.name for row in (*self.leaves, *([self.replaced] if self.replaced else []))]

    @property
    def is_change(self) -> bool:
        """Return whether one device plugin leaves the node and another one comes. What an interrupted run has completed on the node is not a change."""
        return self.to is not None and (any(map(self.node.has, self.leaves)) or self.replaced is not None)

    @property
    def cordons(self) -> bool:
        """Return whether the node is cordoned before and uncordoned afterwards, also if an earlier run has cordoned it."""
        return self.to is not None and (self.is_change or self.node.is_changing) and not self.missing_tags

    @property
    def drain(self) -> str:
        """Return which pods are evicted, one of DRAINS."""
        if not (self.is_change and self.host.migrate):
            return DRAINS[0]
        return max((row.drain for row in (self.to, *self.leaves) if row), key=DRAINS.index)

    @property
    def held(self) -> int:
        """Return the units of GPU resources that pods hold and that the node stops offering."""
        nvidia = nvidia_resources(self.host.resource_name) if self.replaced else ()
        return self.node.count_held([*nvidia, *(pattern for row in self.leaves for pattern in row.resources)])


def plan_change(host: Host, node: NodeState, cluster: Cluster) -> Change:
    """Decide the change of one node; it follows from its parameters and its state alone. Raises KeyError for an unknown strategy."""
    declared = STRATEGIES[host.strategy] if host.strategy else None
    if cluster.absent:
        # Declared ones too: an interrupted first deployment has left objects in the cluster, and nothing on nodes.
        present = [row for row in OWN_PLUGIN if node.has(row) or row in (declared, *node.changing)]
        return Change(host, node, None, present, None, ())
    served = next((row for row in OWN_PLUGIN if node.is_served_by(row)), None)
    to = declared or served or read_configured(host.config)
    leaves = [row for row in OWN_PLUGIN if row is not to and (node.has(row) or row in node.changing)]
    replaced = None if to.by_nvidia or host.gpus == 0 else _find_replaced(host, node, to)
    acts = bool(set(ACTING_TAGS).intersection(cluster.run_tags))
    missing = sorted(set(REQUIRED_TAGS).difference(cluster.run_tags)) if acts else []
    return Change(host, node, to, leaves, replaced, missing)


def _find_replaced(host: Host, node: NodeState, to: Strategy) -> Strategy | None:
    """Return the strategy of NVIDIA's device plugin if the node has that plugin's resources, or pods still hold some."""
    nvidia = nvidia_resources(host.resource_name)
    offers = not to.is_labelled(node.labels) and sum(matching(node.capacity, nvidia).values()) > 0
    return read_configured(host.config) if offers or node.count_held(nvidia) else None
