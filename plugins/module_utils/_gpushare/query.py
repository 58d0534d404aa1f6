# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads nodes and pods from the API server, one list each, and computes the allocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .allocation import Allocation, allocate
from .extract import extract_node, extract_pod

if TYPE_CHECKING:
    from .._kube_api import Cluster

# Finished pods hold nothing, so that the server need not send them.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


def query_allocation(cluster: Cluster, node: str = "", unit: str = "", list_pods: bool = True) -> Allocation:
    """Return the allocation of a cluster, or of one of its nodes. Raises ApiError and UnknownNode."""
    nodes = cluster.gather("nodes", extract_node, f"metadata.name={node}" if node else "")
    pods = cluster.gather("pods", extract_pod, f"{UNFINISHED},spec.nodeName={node}" if node else UNFINISHED)
    return allocate(nodes, pods, node, unit, list_pods)
