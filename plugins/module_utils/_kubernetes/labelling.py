# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labelling nodes: one list for many, a plan for each node, then patches for those that differ and no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from .api import ApiError, in_parallel, read_nodes
from .labels import LabelError, Plan, YieldRule, check_labels, plan
from .objects import Object, name_of

if TYPE_CHECKING:
    from .._kube_api import Cluster

# Somebody else, usually the kubelet, changed the node between our list and our patch.
ATTEMPTS = 5


def label_nodes(
    cluster: Cluster,
    wanted: Mapping[str, Mapping[str, str | None]],
    owner: str,
    yield_to: Sequence[YieldRule] = (),
    check_mode: bool = False,
    adopted: Mapping[str, Mapping[str, str | None]] | None = None,
) -> tuple[list[Plan], list[str]]:
    """Make the owner's labels on each named node exactly the wanted ones; return (plans, warnings).

    What is *adopted* of each node is the owner's if the node has it with that value; see ``plan``.
    All nodes are planned before the first is patched, so a mistake changes nothing. A node that is not in the cluster
    is an error if it is to get labels; otherwise there is nothing to take away and a warning is enough.

    Raises:
        LabelError: invalid labels, unknown nodes, clash of owners, unreadable record.
        ApiError: the server does not answer, or refuses.
    """
    for name, labels in wanted.items():
        check_labels(name, labels)
    nodes = {name_of(node): node for node in read_nodes(cluster, wanted)}
    missing = sorted(name for name in wanted if name not in nodes)
    lost = [name for name in missing if wanted[name]]
    if lost:
        known = nodes if len(wanted) > 1 else map(name_of, cluster.nodes())
        raise LabelError(_unknown(lost, sorted(known), cluster.server))

    def planned(node: Object) -> Plan:
        name = name_of(node)
        return plan(node, wanted[name], owner, yield_to, (adopted or {}).get(name))

    plans = [planned(nodes[name]) for name in sorted(wanted) if name in nodes]
    if not check_mode:
        changing = [item for item in plans if item.changed]
        in_parallel(lambda item: _patch(cluster, item, planned), changing)
    warnings = [f"Node {name} is not in the cluster, so it has no labels to take away." for name in missing]
    return plans, warnings


def _patch(cluster: Cluster, item: Plan, planned: Callable[[Object], Plan]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        patch: Object | None = item.patch
        if patch is None:
            return
        try:
            cluster.patch_node(item.node, patch)
        except ApiError as error:
            if error.status != 409 or attempt == ATTEMPTS:
                raise
            item = planned(cluster.node(item.node))
        else:
            return


def _unknown(lost: Sequence[str], known: Sequence[str], server: str) -> str:
    named = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
    return (
        f"Node {', '.join(lost)} is not in the cluster at {server} (it has {named or 'no nodes'}); join it first, or "
        "set gpu_node_name where the Kubernetes name differs from the host's."
    )


def diff_of(plans: Sequence[Plan]) -> dict[str, Any]:
    """Build Ansible's diff from the labels concerned."""
    changed = [item for item in plans if item.changed]
    return {
        "before": {item.node: item.before for item in changed},
        "after": {item.node: item.after for item in changed},
        "before_header": "labels of nodes",
        "after_header": "labels of nodes",
    }
