# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels nodes: one list of nodes, a plan for each, then a patch for each that differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Mapping, Sequence

from ..._kube_error import ApiError, SentenceError
from ..api import read_nodes, run_parallel
from ..objects import Object, get_name
from ..retries import Timing, Wait, retry, share_limit
from .ladder import YieldRule
from .plan import Plan, check_labels, plan_labels
from .record import LabelError, Ownership

if TYPE_CHECKING:
    from ..._kube_api import Cluster

# Others, usually the kubelet, change the node between the list and the patch.
ATTEMPTS = 5
# A message has the reasons of at most this many nodes.
MAX_SHOWN = 3


@dataclass(frozen=True)
class LabelRun:
    """The parameters. *adopted* is as in ``plan_labels``, by node; *owner_labels* are shell patterns of what the owner sets."""

    desired: Mapping[str, Mapping[str, str | None]]
    owner: str
    yield_to: Sequence[YieldRule] = ()
    adopted: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    owner_labels: Sequence[str] = ("*",)
    # Labels by node that the administrator has named without desiring them.
    named: Mapping[str, Sequence[str]] = field(default_factory=dict)
    yield_to_nfd: bool = False

    def plan(self, node: Object) -> Plan:
        """Return the plan of one node. Raises LabelError."""
        name = get_name(node)
        desired, named = self.desired[name], self.named.get(name, ())
        ownership = Ownership(self.owner_labels, frozenset((*desired, *named)))
        return plan_labels(
            node, desired, self.owner, self.yield_to, self.adopted.get(name), ownership, self.yield_to_nfd
        )


@dataclass
class Outcome:
    """The plans of the nodes that have the desired labels, warnings, and by node why it does not have them."""

    plans: list[Plan] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)


def label_nodes(cluster: Cluster, run: LabelRun, check_mode: bool = False, timing: Timing | None = None) -> Outcome:
    """Set the owner's labels on each named node to exactly the desired ones.

    The desired labels of all nodes are checked before the first patch, so that a mistake changes nothing. A node whose record or whose
    patch fails is a failure of its own; the others are labelled. A node that is not in the cluster is an error if labels are desired
    for it, else a warning.

    Raises:
        LabelError: invalid desired labels, unknown nodes.
        ApiError: the server does not answer, or rejects the list of nodes.
    """
    for name, labels in run.desired.items():
        check_labels(name, labels)
    nodes = {get_name(node): node for node in read_nodes(cluster, run.desired)}
    missing = sorted(name for name in run.desired if name not in nodes)
    unknown = [name for name in missing if run.desired[name]]
    if unknown:
        known = nodes if len(run.desired) > 1 else map(get_name, cluster.nodes())
        raise LabelError(_explain_unknown(unknown, sorted(known), cluster.server))
    outcome = Outcome(
        warnings=[f"Node {name} is not in the cluster, so it has no labels to remove." for name in missing]
    )
    # One limit for all nodes: an API server that stays busy ends the run.
    label_node = partial(_label_node, cluster, run, check_mode, share_limit(timing or Timing()))
    names = sorted(name for name in run.desired if name in nodes)
    for name, (plan, failure) in zip(names, run_parallel(lambda name: label_node(nodes[name]), names)):
        if plan is None:
            outcome.failures[name] = failure
        else:
            outcome.plans.append(plan)
            outcome.warnings.extend(plan.warnings)
    return outcome


def _label_node(
    cluster: Cluster, run: LabelRun, check_mode: bool, start_wait: Callable[[], Wait], node: Object
) -> tuple[Plan | None, str]:
    """Plan and patch one node; return (plan, ""), or (None, the reason why the node could not be labelled)."""
    try:
        plan = run.plan(node)
        if plan.changed and not check_mode:
            _patch(cluster, plan, run.plan, start_wait())
    except SentenceError as error:
        return None, str(error)
    return plan, ""


def _patch(cluster: Cluster, item: Plan, plan_node: Callable[[Object], Plan], wait: Wait) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        patch: Object | None = item.patch
        if patch is None:
            return
        try:
            retry(partial(cluster.patch_node, item.node, patch), wait)
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


def explain_failures(failures: Mapping[str, str]) -> str:
    """Return the reasons of the first nodes that could not be labelled, each once, and how many more nodes there are."""
    shown = list(failures.values())[:MAX_SHOWN]
    more = len(failures) - len(shown)
    return " ".join([*dict.fromkeys(shown), *([f"{more} more nodes could not be labelled."] if more else [])])


def build_diff(plans: Sequence[Plan]) -> dict[str, Any]:
    """Return Ansible's diff of the changed labels."""
    changed = [item for item in plans if item.changed]
    return {
        "before": {item.node: item.before for item in changed},
        "after": {item.node: item.after for item in changed},
        "before_header": "labels of nodes",
        "after_header": "labels of nodes",
    }
