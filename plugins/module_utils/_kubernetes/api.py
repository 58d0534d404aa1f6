# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes by name, kinds that not every cluster has, and parallel calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Collection, Iterable, TypeVar

from .._kube_error import ApiError

if TYPE_CHECKING:
    from .._kube_api import Cluster
    from .objects import Object

THREADS = 8
#: The API versions of dynamic resource allocation: of Kubernetes 1.34, 1.33 and 1.32.
DRA_VERSIONS = ("resource.k8s.io/v1", "resource.k8s.io/v1beta2", "resource.k8s.io/v1beta1")

Item = TypeVar("Item")
Result = TypeVar("Result")


def read_nodes(cluster: Cluster, names: Collection[str] | None = None) -> list[Object]:
    """Return the nodes with these names, or all nodes; unknown names are left out. A single name saves the list of all nodes. Raises ApiError."""
    name = next(iter(names)) if names and len(names) == 1 else ""
    if not name:
        return cluster.nodes()
    try:
        return [cluster.node(name)]
    except ApiError as error:
        if error.status != 404:
            raise
        return []


def list_known(cluster: Cluster, kind: str, *versions: str, **selected: Any) -> list[Object]:
    """Return the objects of a kind, in the first of its API *versions* that the cluster has; none if it has none of them. Raises ApiError.

    *selected* are a namespace, and selectors, as of Cluster.objects.
    """
    for version in versions:
        try:
            return cluster.objects(version, kind, **selected)
        except ApiError as error:
            if error.status != 404:
                raise
    return []


def run_parallel(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call for every item in a few threads; return the results in order. The first error is raised after all calls."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        return list(pool.map(call, items))
