# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until the kubelets of nodes have reported since the wait began, and the nodes are Ready.

A kubelet renews the Lease of its node every ten seconds. A renewal shows that it works and that the reported state is current.
Each round lists Leases and, once all are renewed, nodes; of each page only the awaited nodes are kept.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Collection, Mapping

from .._kube_error import ApiError, shorten
from .objects import Object, get_condition, get_name
from .retries import Timing, Wait

if TYPE_CHECKING:
    from .._kube_api import Cluster


@dataclass(frozen=True)
class Heartbeat:
    """A node: whether it has a Lease, whether its kubelet has renewed it, and whether the node is Ready, else the reason as a clause."""

    name: str
    known: bool = False
    renewed: bool = False
    ready: bool = False
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def wait_for_nodes(
    cluster: Cluster, names: Collection[str], timeout: float, interval: float = 2, timing: Timing | None = None
) -> list[Heartbeat]:
    """Return the nodes, sorted by name, once each with a Lease has renewed it and is Ready, or after *timeout* seconds.

    A node without a Lease has not joined the cluster, and is not waited for. Raises ApiError; a server that cannot be reached is
    retried until the time is over.
    """
    wait = Wait(timing or Timing(), timeout, interval, interval)
    first: Mapping[str, str] | None = None
    while True:
        late = wait.over
        try:
            if first is None:
                first = _read_renewals(cluster, names)
            found = _read_heartbeats(cluster, names, first, late)
            if late or all(each.ready for each in found if each.known):
                return found
        except ApiError as error:
            if late or not error.is_transient:
                raise
        wait.pause()


def _read_renewals(cluster: Cluster, names: Collection[str]) -> dict[str, str]:
    """Return when each node's Lease was renewed."""

    def keep(lease: Object) -> tuple[str, str] | None:
        name = get_name(lease)
        return (name, str((lease.get("spec") or {}).get("renewTime"))) if name in names else None

    return dict(cluster.gather_leases(keep))


def _read_heartbeats(cluster: Cluster, names: Collection[str], first: Mapping[str, str], late: bool) -> list[Heartbeat]:
    """Return the nodes. Their state counts only after the renewals, so it is read once all Leases are renewed, or at the end."""
    now = _read_renewals(cluster, first) if first else {}
    renewed = {name for name in first if now.get(name) != first[name]}

    def keep(node: Object) -> tuple[str, Object] | None:
        return (get_name(node), get_condition(node, "Ready")) if get_name(node) in renewed else None

    conditions = dict(cluster.gather("nodes", keep)) if renewed and (late or len(renewed) == len(first)) else {}
    return [_describe(name, name in first, name in renewed, conditions.get(name, {})) for name in sorted(names)]


def _describe(name: str, known: bool, renewed: bool, condition: Object) -> Heartbeat:
    if not known:
        return Heartbeat(name, reason="has no Lease, so it has not joined the cluster")
    if not renewed:
        return Heartbeat(name, known, reason="its kubelet has not reported")
    ready = condition.get("status") == "True"
    reason = "" if ready else f"is not Ready ({shorten(condition.get('message')) or 'no reason given'})"
    return Heartbeat(name, known, renewed, ready, reason)
