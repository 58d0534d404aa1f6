# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan for all hosts which sharing strategy each leaves and enters, what blocks that, and what is first and last in the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence

from .catalogue import DRAINS, OWN_PLUGIN, STRATEGIES, Strategy, matching, nvidia_resources
from .node_state import Cluster, Host, NodeState, read_configured, reason_of

#: The tags that a change requires: one device plugin leaves the node, and another one comes.
REQUIRED_TAGS = ("device_plugin", "sharing")
ACTING_TAGS = (*REQUIRED_TAGS, "scheduler")


def plan_sharing(
    hosts: Iterable[Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]], cluster: Cluster
) -> dict[str, Any]:
    """Plan for all hosts, in their order. An interrupted change is resumed from what is observed.

    ``hosts`` are fields of Host, ``nodes`` rows of read_sharing_state for their nodes.

    Returns ``nodes``, a row for each host, and ``cluster``. A row has ``host``, ``node``, ``from`` (strategies that leave), ``to`` (the strategy
    afterwards, or empty), ``role`` (that deploys its device plugin), ``blockers`` (sentences), ``cordon``, ``reason`` (noted with the cordon), ``drain``
    (of DRAINS), ``node_absent`` and ``node_present`` (the roles whose entry points of these names run for the node) and ``steps`` (for people).
    ``cluster`` has ``present`` (strategies with a device plugin of their own that nodes of this run have afterwards), ``enters`` (those of them that are
    new in the cluster), ``leaves`` (those that leave it), ``kept`` (by strategy, the nodes that keep it), ``extenders`` (strategies whose extenders
    kube-scheduler has afterwards), ``scheduler_changes`` (whether this run sets them), ``nvidia_resources`` (of NVIDIA's device plugin, on nodes that
    share) and ``blockers``. Raises KeyError for an unknown strategy, and TypeError for an unknown or missing field of a host.
    """
    states = {row["name"]: row for row in nodes}
    changes = [
        plan_change(host, NodeState(states.get(host.node) or {}, host.kept), cluster)
        for host in (Host(**each) for each in hosts)
    ]
    rows = [_describe(change, find_on_node(change, cluster)) for change in changes]
    return {"nodes": rows, "cluster": _plan_cluster(changes, cluster)}


def _describe(change: Change, blockers: Sequence[str]) -> dict[str, Any]:
    node, to = change.node, change.to.name if change.to else ""
    present = change.own is not None and (change.shares or node.has(change.own))
    planned = reason_of(change.leaving, to)
    row = {
        "host": change.host.host,
        "node": change.host.node,
        "from": change.leaving,
        "to": to,
        "role": change.to.role if change.to else "",
        "blockers": list(blockers),
        "cordon": change.cordons,
        "reason": "" if not change.cordons else node.maintenance if node.is_changing else planned,
        "drain": change.drain,
        "node_absent": [each.role for each in change.leaves],
        "node_present": change.own.role if change.own and present else "",
    }
    return {**row, "steps": _list_steps(change, row)}


def _list_steps(change: Change, row: Mapping[str, Any]) -> list[str]:
    enters = change.to and (change.leaves or (change.shares and not change.to.is_labelled(change.node.labels)))
    steps = [
        ("cordon", change.cordons),
        (f"drain of {row['drain']} pods", row["drain"] != "none"),
        *((f"leave {name}", True) for name in change.leaving),
        (f"enter {row['to']}", enters),
        ("uncordon", change.cordons),
    ]
    return [step for step, due in steps if due]


def _plan_cluster(changes: Sequence[Change], cluster: Cluster) -> dict[str, Any]:
    leaving = {row.name: {change.host.node for change in changes if row in change.leaves} for row in OWN_PLUGIN}
    kept = {row.name: sorted(set(cluster.labelled.get(row.name, ())) - leaving[row.name]) for row in OWN_PLUGIN}
    present = [row for row in OWN_PLUGIN if any(change.own is row and change.shares for change in changes)]
    leaves = [row for row in OWN_PLUGIN if leaving[row.name] and not kept[row.name] and row not in present]
    scheduler_changes = "scheduler" in cluster.run_tags and any(map(cluster.binds, (*present, *leaves)))
    extenders = [row for row in OWN_PLUGIN if cluster.binds(row) and (row in present or kept[row.name])]
    # With strategies that are present, find_in_cluster names those of other nodes.
    beyond = extenders if scheduler_changes and not present else []
    return {
        "present": [row.name for row in present],
        "enters": [row.name for row in present if not cluster.labelled.get(row.name)],
        "leaves": [row.name for row in leaves],
        "kept": {name: nodes for name, nodes in kept.items() if nodes},
        "extenders": [row.name for row in extenders],
        "scheduler_changes": scheduler_changes,
        "nvidia_resources": _list_nvidia_resources(changes),
        "blockers": [
            *find_in_cluster(changes, present, kept, cluster),
            *(describe_beyond(row, kept[row.name]) for row in beyond),
            *filter(None, [find_in_control_planes(cluster) if scheduler_changes else ""]),
        ],
    }


def _list_nvidia_resources(changes: Sequence[Change]) -> list[str]:
    """Return the resources of NVIDIA's device plugin on nodes that share; at least the configured ones."""
    sharers = [change for change in changes if change.shares]
    found: set[str] = set()
    for change in sharers:
        # A kubelet reports a resource that the node had once for as long as it runs, with 0.
        amounts = matching(change.node.capacity, nvidia_resources(change.host.resource_name))
        found.update(name for name, units in amounts.items() if units)
    return sorted(found) or sorted({change.host.resource_name for change in sharers})


def list_blockers(plan: Mapping[str, Any]) -> list[str]:
    """Return all blockers of a plan, those of nodes first."""
    return [*(sentence for row in plan["nodes"] for sentence in row["blockers"]), *plan["cluster"]["blockers"]]


def render_plan(plan: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table for people: who goes from where to where, by which steps, and why a node is blocked."""
    head = ("HOST", "NODE", "FROM", "TO", "STEPS")
    rows = [
        (row["host"], row["node"], " ".join(row["from"]) or "-", row["to"] or "-", ", ".join(row["steps"]) or "none")
        for row in plan["nodes"]
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in (head, *rows)]
    cluster = plan["cluster"]
    changes = [("new in the cluster", cluster["enters"]), ("leave the cluster", cluster["leaves"])]
    changes += (
        [("extenders of kube-scheduler afterwards", cluster["extenders"])] if cluster["scheduler_changes"] else []
    )
    lines += [f"{title}: {', '.join(names) or 'none'}" for title, names in changes if names or title.startswith("ext")]
    return [*lines, *(f"BLOCKED: {sentence}" for sentence in list_blockers(plan))]


# -- the change of one node


@dataclass(frozen=True)
class Change:
    """What changes on one node. ``to`` is the strategy afterwards; None if its strategies are removed and no other follows."""

    host: Host
    node: NodeState
    to: Strategy | None
    # Strategies with a device plugin of their own that leave the node.
    leaves: Sequence[Strategy]
    # The strategy of NVIDIA's device plugin that another one replaces.
    replaced: Strategy | None
    # Tags that the change requires and the run does not have.
    missing_tags: Sequence[str]

    @property
    def own(self) -> Strategy | None:
        """Return the strategy afterwards if it has a device plugin of its own."""
        return self.to if self.to and not self.to.by_nvidia else None

    @property
    def shares(self) -> bool:
        """Return whether a device plugin of the strategy's own serves GPUs of the node afterwards. An unknown number of GPUs counts as some."""
        return self.own is not None and self.host.gpus != 0

    @property
    def leaving(self) -> list[str]:
        """Return the names of the strategies that leave the node."""
        return [row.name for row in (*self.leaves, *([self.replaced] if self.replaced else []))]

    @property
    def is_change(self) -> bool:
        """Return whether one device plugin leaves the node and another one comes. What an interrupted run has completed on the node is not a change."""
        return self.to is not None and (any(map(self.node.has, self.leaves)) or self.replaced is not None)

    @property
    def cordons(self) -> bool:
        """Return whether the node is cordoned before and uncordoned afterwards, also if an earlier run has cordoned it."""
        return (self.is_change or self.node.is_changing) and not self.missing_tags

    @property
    def drain(self) -> str:
        """Return which pods are evicted, one of DRAINS."""
        if not (self.is_change and self.host.migrate):
            return DRAINS[0]
        return max((row.drain for row in (self.to, *self.leaves) if row), key=DRAINS.index)

    @property
    def held(self) -> int:
        """Return the units of GPU resources that pods hold and that the node stops offering."""
        nvidia = nvidia_resources(self.host.resource_name) if self.replaced else ()
        return self.node.count_held([*nvidia, *(pattern for row in self.leaves for pattern in row.resources)])


def plan_change(host: Host, node: NodeState, cluster: Cluster) -> Change:
    """Decide the change of one node; it follows from its parameters and its state alone. Raises KeyError for an unknown strategy."""
    declared = STRATEGIES[host.strategy] if host.strategy else None
    if cluster.absent:
        # Declared ones too: an interrupted first deployment has left objects in the cluster, and nothing on nodes.
        present = [row for row in OWN_PLUGIN if node.has(row) or row in (declared, *node.changing)]
        return Change(host, node, None, present, None, ())
    served = next((row for row in OWN_PLUGIN if node.is_served_by(row)), None)
    to = declared or served or read_configured(host.config)
    leaves = [row for row in OWN_PLUGIN if row is not to and (node.has(row) or row in node.changing)]
    replaced = None if to.by_nvidia or host.gpus == 0 else _find_replaced(host, node)
    acts = bool(set(ACTING_TAGS).intersection(cluster.run_tags))
    missing = sorted(set(REQUIRED_TAGS).difference(cluster.run_tags)) if acts else []
    return Change(host, node, to, leaves, replaced, missing)


def _find_replaced(host: Host, node: NodeState) -> Strategy | None:
    """Return the strategy of NVIDIA's device plugin if the node has that plugin's resources, or pods still hold some."""
    nvidia = nvidia_resources(host.resource_name)
    # The label of a strategy keeps NVIDIA's device plugin off; a kubelet has its amounts in the capacity for a while.
    is_labelled = any(row.is_labelled(node.labels) for row in OWN_PLUGIN)
    offers = not is_labelled and sum(matching(node.capacity, nvidia).values()) > 0
    return read_configured(host.config) if offers or node.count_held(nvidia) else None


# -- blockers: each is one sentence with host or node, cause and remedy


def find_on_node(change: Change, cluster: Cluster) -> list[str]:
    """Return the blockers of one node. Without tags of the plan, only contradictory parameters block a run."""
    if cluster.absent:
        return _find_used(change) if "sharing" in cluster.run_tags else []
    found = [_find_contradiction(change)]
    if cluster.run_tags:
        found += [_find_unknown(change), _find_held(change), _find_missing_tags(change)]
        found += [_find_operator(change), _find_claimed(change, cluster), _find_plugins(change, cluster)]
    return [sentence for sentence in found if sentence]


def _find_contradiction(change: Change) -> str:
    configured = read_configured(change.host.config)
    if change.to is None or not change.to.by_nvidia or change.to is configured:
        return ""
    return (
        f"Host {change.host.host}: gpu_sharing_strategy is {change.to.name}, and k8s_device_plugin_config shares GPUs as {configured.name}; NVIDIA's "
        "device plugin has one configuration for all of its nodes, so make both agree (sharing.timeSlicing for time_slicing, sharing.mps for mps, "
        "flags.migStrategy for mig, none of them for exclusive)."
    )


def _find_unknown(change: Change) -> str:
    if change.node.known:
        return ""
    host = change.host
    return f"Host {host.host}: the cluster has no node {host.node}; join the host to the cluster, or set gpu_node_name to the name of its node."


def _find_held(change: Change) -> str:
    if not change.held or change.host.migrate or not change.to:
        return ""
    return (
        f"{change.host.where}: its GPUs are shared as {' and '.join(change.leaving)}, {change.to.name} is requested, and pods hold GPUs; end these pods "
        f"first ({_list_pods(change)}), or set gpu_sharing_migrate to true to have the node drained of GPU pods."
    )


def _list_pods(change: Change) -> str:
    return f"kubectl get pods -A --field-selector spec.nodeName={change.host.node}"


def _find_missing_tags(change: Change) -> str:
    if not change.is_change or not change.missing_tags or not change.to:
        return ""
    return (
        f"{change.host.where}: its sharing strategy changes to {change.to.name}, one device plugin leaves the node and another one comes, and this run "
        f"leaves out {', '.join(change.missing_tags)}; run with all of these tags, or without tags."
    )


def _find_operator(change: Change) -> str:
    if not change.shares or not change.node.gpu_operator:
        return ""
    return (
        f"{change.host.where}: NVIDIA's GPU Operator deploys the device plugin here; set the node's label nvidia.com/gpu.deploy.device-plugin to false "
        "first."
    )


def _find_claimed(change: Change, cluster: Cluster) -> str:
    if not change.shares or not change.own or change.host.node not in cluster.claimed:
        return ""
    return (
        f"{change.host.where}: NVIDIA's DRA driver allocates the same GPUs (kubectl get resourceslices), and {change.own.name} does not see these "
        "allocations; keep the driver's kubelet plugin off the node, or configure it to leave GPUs out."
    )


def _find_plugins(change: Change, cluster: Cluster) -> str:
    """Return the blocker of device plugins that stay on a node with the strategy's label. Those of strategies that leave the node do not stay."""
    if not change.shares or not change.own:
        return ""
    expected = {cluster.plugin_of(row) for row in (change.own, *change.leaves)}
    found = sorted(set(change.node.staying_plugins.get(change.own.name, ())) - expected)
    if not found:
        return ""
    label = ", ".join("=".join(pair) for pair in change.own.label.items())
    return (
        f"{change.host.where}: {', '.join(found)} registers the same GPUs and does not leave a node with the label {label}; if it is NVIDIA's static one "
        "(kube-system/nvidia-device-plugin-daemonset), adopt it with the playbooks label_gpu_nodes and deploy_device_plugin, the second with "
        f"-e k8s_device_plugin_adopt=true -e gpu_sharing_strategy=exclusive, because it skips hosts that declare {change.own.name}; or give it a node "
        "affinity that keeps it off such nodes, or remove it."
    )


def _find_used(change: Change) -> list[str]:
    """Return the blockers of strategies that are removed while pods hold their resources."""
    found = []
    for row in change.leaves:
        held = [name for name, units in sorted(matching(change.node.allocated, row.resources).items()) if units > 0]
        if held and row.name not in change.host.remove_used:
            found.append(
                f"{change.host.where}: pods hold {' and '.join(held)}, and would keep GPUs that other pods get; end these pods first "
                f"({_list_pods(change)}), or set {row.role}_remove_used to true."
            )
    return found


def find_in_cluster(
    changes: Sequence[Change], present: Sequence[Strategy], kept: Mapping[str, Sequence[str]], cluster: Cluster
) -> list[str]:
    """Return the blockers of strategies that one kube-scheduler cannot serve together: in this run, and with nodes beyond it."""
    binding = [row for row in OWN_PLUGIN if cluster.binds(row)]
    users = {
        row.name: [change.host.host for change in changes if change.own is row and change.shares] for row in binding
    }
    named = [f"{name}, for {', '.join(hosts)}," for name, hosts in users.items() if hosts]
    found = []
    if len(named) > 1:
        found.append(
            f"{' and '.join(named)} each need an extender that binds pods, and kube-scheduler accepts only one; set one gpu_sharing_strategy for all of "
            f"these hosts, or, with a second scheduler of your own, {_ADVICE}."
        )
    own_nodes = {change.host.node for change in changes if change.shares}
    for row in (row for row in present if row in binding and cluster.run_tags):
        others = ((other.name, sorted(set(kept[other.name]) - own_nodes)) for other in binding if other is not row)
        found += [_describe_other(row.name, other, nodes) for other, nodes in others if nodes]
    return found


_ADVICE = "name the strategy that it serves in gpu_sharing_second_scheduler"


def _describe_other(name: str, other: str, nodes: Sequence[str]) -> str:
    return (
        f"Node {', '.join(nodes)}: uses {other}, and kube-scheduler accepts only one extender that binds pods, that of {other} or that of {name}; remove "
        f"{other} first (the playbook remove_gpu_nodes with the tags sharing and scheduler, or share_gpus with another strategy), or, with a second "
        f"scheduler of your own, {_ADVICE}."
    )


def describe_beyond(row: Strategy, nodes: Sequence[str]) -> str:
    """Return the blocker of a run that sets the extenders of kube-scheduler without the hosts of a strategy that has one."""
    return (
        f"Node {', '.join(nodes)}: uses {row.name}, whose extender stays in kube-scheduler, and this run has no host with {row.name}; add these nodes to "
        "the run."
    )


def find_in_control_planes(cluster: Cluster) -> str:
    """Return the blocker of a change of kube-scheduler, which takes place on all control planes or on none."""
    hosts, group = cluster.control_planes, cluster.control_plane_group
    if hosts is None:
        return ""
    if cluster.left_out:
        cause = f"This run leaves out {', '.join(cluster.left_out)}, and kube-scheduler has to be changed there; add them to --limit"
    elif not hosts:
        cause = (
            f"The inventory has no host in {group}, and kube-scheduler has to be changed there; put the control planes into a group of that name, or set "
            "their group with -e kube_control_plane_group=NAME"
        )
    # An unchanged kube-scheduler that becomes the leader binds pods without the extender.
    elif len(cluster.schedulers) > len(hosts):
        cause = (
            f"kube-scheduler runs on {', '.join(sorted(cluster.schedulers))}, and the group {group} of the inventory has only {', '.join(hosts)}; add the "
            "others, because each kube-scheduler has to be changed"
        )
    else:
        return ""
    return f"{cause}, or leave kube-scheduler unchanged with --skip-tags scheduler."
