# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Extended resources that a program wrote into the status of nodes, and that nobody but an administrator takes out again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Sequence

from .api import in_parallel
from .objects import Object, name_of

if TYPE_CHECKING:
    from .._kube_api import Cluster

# Where a resource is written: the kubelet copies the one to the other.
FIELDS = ("capacity", "allocatable")


def found_on(node: Object, resources: Sequence[str]) -> dict[str, str]:
    """Return {resource: amount as written} of those that the status of a node has."""
    status = node.get("status") or {}
    return {
        resource: str((status.get(field) or {})[resource])
        for field in reversed(FIELDS)
        for resource in resources
        if resource in (status.get(field) or {})
    }


def remove(
    cluster: Cluster, resources: Sequence[str], names: Sequence[str] | None = None, check_mode: bool = False
) -> dict[str, dict[str, str]]:
    """Take the resources out of the named nodes, or of all; return {node: {resource: amount before}} of those that had some.

    One list of nodes, and one patch for each node concerned. Raises ApiError.
    """
    nodes = [node for node in cluster.nodes() if names is None or name_of(node) in names]
    before = {name_of(node): found_on(node, resources) for node in nodes}
    before = {name: found for name, found in sorted(before.items()) if found}
    if not check_mode:
        in_parallel(lambda name: cluster.patch_node_status(name, _without(before[name])), before)
    return before


def _without(resources: Mapping[str, str]) -> Object:
    """A merge patch: null takes a key out, and is nothing where there is none."""
    return {"status": {field: dict.fromkeys(resources) for field in FIELDS}}
