# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Extended resources in the status of nodes: the GPU resources of all device plugins, and those that no program removes."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Callable, Mapping, Sequence

from .api import run_parallel
from .drain.plan import GPU_RESOURCES
from .objects import Object, get_allocatable, get_capacity, get_name
from .requests import count_allocated, list_resources
from .retries import Timing, retry, share_limit

if TYPE_CHECKING:
    from .._kube_api import Cluster

# The kubelet copies capacity to allocatable.
FIELDS = ("capacity", "allocatable")


def count_gpu_resources(node: Object, pods: Sequence[Object]) -> dict[str, dict[str, int]]:
    """Return units by resource: ``gpu_resources`` has the allocatable, ``gpu_capacity`` the existing, ``gpu_allocated`` the allocated ones."""
    status = node.get("status") or {}
    # Pods may hold a resource that the node no longer reports.
    known = {*(status.get("allocatable") or {}), *(status.get("capacity") or {})}.union(*map(list_resources, pods))
    names = sorted(name for name in known if any(fnmatchcase(name, pattern) for pattern in GPU_RESOURCES))

    def each(amount: Callable[[str], int]) -> dict[str, int]:
        return {name: amount(name) for name in names}

    return {
        "gpu_resources": each(lambda name: get_allocatable(node, name)),
        "gpu_capacity": each(lambda name: get_capacity(node, name)),
        "gpu_allocated": each(lambda name: count_allocated(pods, name)),
    }


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
    cluster: Cluster,
    resources: Sequence[str],
    names: Sequence[str] | None = None,
    check_mode: bool = False,
    timing: Timing | None = None,
) -> dict[str, dict[str, str]]:
    """Remove the resources from the named nodes, or from all nodes; return {node: {resource: former amount}} of the changed ones.

    Raises ApiError; an API server that is busy is retried.
    """
    nodes = [node for node in cluster.nodes() if names is None or get_name(node) in names]
    before = {get_name(node): find_resources(node, resources) for node in nodes}
    before = {name: found for name, found in sorted(before.items()) if found}
    if not check_mode:
        start_wait = share_limit(timing or Timing())
        patches = {
            name: partial(cluster.patch_node_status, name, _build_patch(found)) for name, found in before.items()
        }
        run_parallel(lambda name: retry(patches[name], start_wait()), patches)
    return before


def _build_patch(resources: Mapping[str, str]) -> Object:
    """Return a merge patch, in which null removes a key."""
    return {"status": {field: dict.fromkeys(resources) for field in FIELDS}}
