# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a cluster for what the allocation is computed from: one list of nodes and one of pods, each cut down as it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .allocation import Allocation, allocate
from .cut import cut_node, cut_pod

if TYPE_CHECKING:
    from .._kube_api import Cluster

# What the server need not even send.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


def look(cluster: Cluster, node: str = "", unit: str = "", list_pods: bool = True) -> Allocation:
    """Return the allocation of a cluster, or of one of its nodes. Raises ApiError and UnknownNode."""
    nodes = cluster.gather("nodes", cut_node, f"metadata.name={node}" if node else "")
    pods = cluster.gather("pods", cut_pod, f"{UNFINISHED},spec.nodeName={node}" if node else UNFINISHED)
    return allocate(nodes, pods, node, unit, list_pods)
