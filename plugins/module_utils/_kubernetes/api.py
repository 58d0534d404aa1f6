# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the acting parts need of an API server: an interface to fake in tests, and a few threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, Collection, Iterable, Mapping, Protocol, TypeVar

if TYPE_CHECKING:
    from .objects import Object

THREADS = 8

Item = TypeVar("Item")
Answer = TypeVar("Answer")
Kept = TypeVar("Kept")


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


class Cluster(Protocol):
    """The calls that are made; each raises ApiError and may be used by several threads at once."""

    server: str

    def nodes(self) -> list[Object]:
        """List all nodes."""

    def node(self, name: str) -> Object:
        """Read one node."""

    def pods(self, namespace: str = "", labels: Mapping[str, str] | None = None, fields: str = "") -> list[Object]:
        """List pods, of all namespaces if none is named."""

    def gather(self, resource: str, keep: Callable[[Object], Kept | None], fields: str = "") -> list[Kept]:
        """List all ``nodes`` or ``pods`` and keep of each what *keep* makes of it; None is dropped."""

    def daemon_sets(self, namespace: str) -> list[Object]:
        """List the DaemonSets of a namespace."""

    def warning_events(self, namespace: str) -> list[Object]:
        """List the warnings about pods of a namespace."""

    def patch_node(self, name: str, patch: Object) -> Object:
        """Apply a merge patch to a node; status 409 if it carries a resourceVersion that is no longer current."""

    def patch_node_status(self, name: str, patch: Object) -> Object:
        """Apply a merge patch to the status of a node."""

    def create_pod(self, namespace: str, manifest: Object) -> Object:
        """Create a pod and return it with its name."""

    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod; one that is gone already is no error."""

    def evict_pod(
        self, namespace: str, name: str, uid: str, grace_period: int | None = None, dry_run: bool = False
    ) -> None:
        """Evict the pod of this UID, if no disruption budget forbids it (429), with its own grace period if none is given.

        As a dry run the server only says whether it would.
        """

    def pod_log(self, namespace: str, name: str, lines: int, previous: bool = False) -> str:
        """Return the last lines of a pod's log; status 400 where there is none yet."""


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
