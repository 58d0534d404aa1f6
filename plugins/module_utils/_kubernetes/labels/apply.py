# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels nodes: one list of nodes, a plan for each, then a patch for each that differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..._kube_error import ApiError
from ..api import read_nodes, run_parallel
from ..objects import Object, get_name
from .plan import LabelError, Plan, YieldRule, check_labels, plan_labels

if TYPE_CHECKING:
    from ..._kube_api import Cluster

# Others, usually the kubelet, change the node between the list and the patch.
ATTEMPTS = 5


def label_nodes(
    cluster: Cluster,
    desired: Mapping[str, Mapping[str, str | None]],
    owner: str,
    yield_to: Sequence[YieldRule] = (),
    check_mode: bool = False,
    adopted: Mapping[str, Mapping[str, str | None]] | None = None,
) -> tuple[list[Plan], list[str]]:
    """Set the owner's labels on each named node to exactly the desired ones; return (plans, warnings).

    *adopted* is as in ``plan_labels``, by node. All nodes are planned before the first patch, so that a mistake changes nothing.
    A node that is not in the cluster is an error if labels are desired for it, else a warning.

    Raises:
        LabelError: invalid labels, unknown nodes, conflict of owners, unreadable record.
        ApiError: the server does not answer, or rejects a request.
    """
    for name, labels in desired.items():
        check_labels(name, labels)
    nodes = {get_name(node): node for node in read_nodes(cluster, desired)}
    missing = sorted(name for name in desired if name not in nodes)
    unknown = [name for name in missing if desired[name]]
    if unknown:
        known = nodes if len(desired) > 1 else map(get_name, cluster.nodes())
        raise LabelError(_explain_unknown(unknown, sorted(known), cluster.server))

    def plan_node(node: Object) -> Plan:
        name = get_name(node)
        return plan_labels(node, desired[name], owner, yield_to, (adopted or {}).get(name))

    plans = [plan_node(nodes[name]) for name in sorted(desired) if name in nodes]
    if not check_mode:
        changing = [item for item in plans if item.changed]
        run_parallel(lambda item: _patch(cluster, item, plan_node), changing)
    warnings = [f"Node {name} is not in the cluster, so it has no labels to remove." for name in missing]
    return plans, warnings


def _patch(cluster: Cluster, item: Plan, plan_node: Callable[[Object], Plan]) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        patch: Object | None = item.patch
        if patch is None:
            return
        try:
            cluster.patch_node(item.node, patch)
        except ApiError as error:
            if error.status != 409 or attempt == ATTEMPTS:
                raise
            item = plan_node(cluster.node(item.node))
        else:
            return


def _explain_unknown(unknown: Sequence[str], known: Sequence[str], server: str) -> str:
    named = ", ".join(known[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
    return (
        f"Node {', '.join(unknown)} is not in the cluster at {server} (it has {named or 'no nodes'}); join it first, or "
        "set gpu_node_name where the Kubernetes name differs from the host's."
    )


def build_diff(plans: Sequence[Plan]) -> dict[str, Any]:
    """Return Ansible's diff of the changed labels."""
    changed = [item for item in plans if item.changed]
    return {
        "before": {item.node: item.before for item in changed},
        "after": {item.node: item.after for item in changed},
        "before_header": "labels of nodes",
        "after_header": "labels of nodes",
    }
