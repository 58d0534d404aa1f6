# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes extended resources from the status of nodes, which neither their program nor the kubelet removes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Sequence

from .api import run_parallel
from .objects import Object, get_name

if TYPE_CHECKING:
    from .._kube_api import Cluster

# The kubelet copies capacity to allocatable.
FIELDS = ("capacity", "allocatable")


def find_resources(node: Object, resources: Sequence[str]) -> dict[str, str]:
    """Return {resource: amount as written} of the *resources* in the status of the node."""
    status = node.get("status") or {}
    return {
        resource: str((status.get(field) or {})[resource])
        for field in reversed(FIELDS)
        for resource in resources
        if resource in (status.get(field) or {})
    }


def remove_resources(
    cluster: Cluster, resources: Sequence[str], names: Sequence[str] | None = None, check_mode: bool = False
) -> dict[str, dict[str, str]]:
    """Remove the resources from the named nodes, or from all nodes; return {node: {resource: former amount}} of the changed ones.

    Raises ApiError.
    """
    nodes = [node for node in cluster.nodes() if names is None or get_name(node) in names]
    before = {get_name(node): find_resources(node, resources) for node in nodes}
    before = {name: found for name, found in sorted(before.items()) if found}
    if not check_mode:
        run_parallel(lambda name: cluster.patch_node_status(name, _build_patch(before[name])), before)
    return before


def _build_patch(resources: Mapping[str, str]) -> Object:
    """Return a merge patch, in which null removes a key."""
    return {"status": {field: dict.fromkeys(resources) for field in FIELDS}}
