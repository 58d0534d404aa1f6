# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the API server, reading nodes by name, and calls in parallel."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, Collection, Iterable, Mapping, TypeVar

if TYPE_CHECKING:
    from .._kube_api import Cluster
    from .objects import Object

THREADS = 8

Item = TypeVar("Item")
Answer = TypeVar("Answer")


# The key in ``ApiError.causes`` of a right that the account lacks; the others are the API server's own.
MISSING_RIGHT = "MissingRight"


# The API server is away, busy or starting; asked again later it may answer.
_PASSING = frozenset({0, 429, 500, 502, 503, 504})


class ApiError(Exception):
    """A call failed; the text is one sentence with server, cause and remedy, ``status`` the HTTP status or 0.

    ``causes`` are the causes that the API server names, such as ``DisruptionBudget``, with its words on each.
    """

    def __init__(self, message: str, status: int = 0, causes: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.causes = dict(causes or {})

    @property
    def passing(self) -> bool:
        """Whether the call may succeed if it is made again."""
        return self.status in _PASSING


def read_nodes(cluster: Cluster, names: Collection[str] | None = None) -> list[Object]:
    """Read one node by its name, for the list of all may be long; more of them, or all, by that list. Unknown ones are left out."""
    name = next(iter(names)) if names and len(names) == 1 else ""
    if not name:
        return cluster.nodes()
    try:
        return [cluster.node(name)]
    except ApiError as error:
        if error.status != 404:
            raise
        return []


def in_parallel(call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """Call for every item on a few threads; return answers in order. All are tried, then the first error raised."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        return list(pool.map(call, items))
