# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the API server, nodes by name, and parallel calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, Collection, Iterable, Mapping, TypeVar

if TYPE_CHECKING:
    from .._kube_api import Cluster
    from .objects import Object

THREADS = 8

Item = TypeVar("Item")
Result = TypeVar("Result")


# The key in ``ApiError.causes`` of a right that the account lacks; the API server sets the other keys.
MISSING_RIGHT = "MissingRight"


# The API server cannot be reached, is busy or starts; a retry may succeed.
_TRANSIENT = frozenset({0, 429, 500, 502, 503, 504})


class ApiError(Exception):
    """A call failed; the text is one sentence with server, cause and remedy, ``status`` the HTTP status or 0.

    ``causes`` has the causes that the API server reports, such as ``DisruptionBudget``, with the message of each.
    """

    def __init__(self, message: str, status: int = 0, causes: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.causes = dict(causes or {})

    @property
    def is_transient(self) -> bool:
        """Return whether a retry of the call may succeed."""
        return self.status in _TRANSIENT


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


def run_parallel(call: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Call for every item in a few threads; return the results in order. The first error is raised after all calls."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        return list(pool.map(call, items))
