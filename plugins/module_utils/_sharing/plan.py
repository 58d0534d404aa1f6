# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan for all hosts which sharing strategy each leaves and enters, what blocks that, and what is first and last in the cluster."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

from .._vendors import OTHERS
from .blockers import describe_beyond, find_in_cluster, find_in_control_planes, find_on_node
from .catalogue import IN_CLUSTER, NVIDIA_ROLE, Strategy, matching, nvidia_resources
from .change import Change, plan_change
from .gpu_operator import CONFIGURED_PODS, OPERATOR_ROLE, PLUGIN_LABELS
from .node_state import Cluster, Host, NodeState, reason_of
from .plugin_config import LABEL, is_limited_to_one, list_offered, name_resource

#: Its JSON Schema is docs/schemas/gpu-plan-v1.json.
SCHEMA = "gpu.kubernetes/plan/v1"


def plan_sharing(
    hosts: Iterable[Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]], cluster: Cluster
) -> dict[str, Any]:
    """Plan for all hosts, in their order. An interrupted change is resumed from what is observed.

    ``hosts`` are fields of Host, ``nodes`` rows of read_sharing_state for their nodes.

    Returns ``schema``, ``nodes``, a row for each host, and ``cluster``. A row has ``host``, ``node``, ``from`` (strategies that leave), ``to`` (the strategy
    afterwards, or empty), ``role`` (that deploys its device plugin), ``config_name`` and ``config`` (the node's own configuration of NVIDIA's device
    plugin), ``resource`` (by which pods get GPUs with it), ``offered`` (shell patterns of the resources that the node offers afterwards), ``most`` (how
    many of them a container may request, 0 without a limit), ``pause`` (whether that plugin is off the node during the change), ``blockers`` (sentences),
    ``cordon``, ``reason`` (noted with the cordon), ``drain`` (of DRAINS), ``preflight``, ``preflight_absent``, ``node_absent`` and ``node_present`` (the
    roles whose entry points of these names run for the node), ``cluster_present`` (the same, of one role or empty) and ``steps`` (for people). With
    NVIDIA's GPU Operator, ``operated`` are the parts that it runs on the node, ``labels`` the node's labels for it, and ``mig_config`` the configuration of its
    MIG manager that the run waits for, or empty, and ``mig_changes`` whether that is another one than before. ``vendors`` are those of the host's GPUs.
    ``cluster`` has ``present`` (strategies with objects in the cluster that nodes of this run have afterwards), ``enters`` (those of them that are new
    there), ``leaves`` (those that leave it), ``kept`` (by strategy, the nodes that keep it), ``extenders`` (strategies whose extenders kube-scheduler
    has afterwards), ``scheduler_changes`` (whether this run sets them), ``plugin_configs`` (the nodes' own configurations, by name),
    ``nvidia_resources`` (of NVIDIA's device plugin, on nodes that share), ``operator`` and ``blockers``. ``operator`` is empty unless NVIDIA's GPU
    Operator deploys device plugins; it has ``namespace``, ``config_map``, ``default_config`` (the key for nodes without a label, or empty),
    ``plugin_labels``, ``configured`` (the label app of pods that read the ConfigMap) and ``unused`` (keys of this collection that no node names
    afterwards). Raises KeyError for an unknown strategy, and TypeError for an unknown or missing field of a host.
    """
    states = {row["name"]: row for row in nodes}
    changes = [
        plan_change(host, NodeState(states.get(host.node) or {}, host.kept), cluster)
        for host in (Host(**each) for each in hosts)
    ]
    rows = [_describe(change, find_on_node(change, cluster), cluster) for change in changes]
    return {"schema": SCHEMA, "nodes": rows, "cluster": _plan_cluster(changes, cluster)}


def _describe(change: Change, blockers: Sequence[str], cluster: Cluster) -> dict[str, Any]:
    node, to = change.node, change.to.name if change.to else ""
    role = change.to.node_role if change.to and change.is_present and (change.own or change.uses_host_role) else ""
    planned = reason_of(change.leaving, to)
    config = change.config.document or cluster.configs.get(change.config.name, {})
    row = {
        "host": change.host.host,
        "node": change.host.node,
        "from": change.leaving,
        "to": to,
        "role": "" if not change.to else OPERATOR_ROLE if change.by_operator else change.to.role,
        "config_name": change.config.name,
        "config": config,
        "resource": name_resource(config, change.host.resource_name) if config else "",
        "offered": _list_offered(change, config),
        "most": int(bool(change.to and change.to.by_nvidia) and is_limited_to_one(config or change.host.config)),
        "pause": change.keeps_plugin_off,
        "blockers": list(blockers),
        "cordon": change.cordons,
        "reason": "" if not change.cordons else node.maintenance if node.is_changing else planned,
        "drain": change.drain,
        "preflight": [role] if role else [],
        "preflight_absent": [each.node_role for each in change.leaves if each.checks_leaving],
        "node_absent": _list_absent_roles(change),
        "node_present": _list_present_roles(change, role),
        "cluster_present": role if change.own and change.own.in_cluster else "",
        "operated": list(node.operated),
        "labels": change.operator_labels,
        "mig_config": change.mig_config if change.awaits_mig else "",
        "mig_changes": change.awaits_mig and change.mig_config != node.mig_config,
        "vendors": list(change.host.vendors),
    }
    return {**row, "steps": _list_steps(change, row)}


def _list_absent_roles(change: Change) -> list[str]:
    """Return the roles that take something off the node, in their order."""
    roles = [NVIDIA_ROLE] if change.takes_plugin_off or change.former_owner == NVIDIA_ROLE else []
    roles += [each.node_role for each in change.leaves]
    return [*roles, OPERATOR_ROLE] if change.removes_operator_labels else roles


def _list_present_roles(change: Change, role: str) -> list[str]:
    """Return the roles that bring the node to its strategy, in their order; *role* is that of the strategy, or empty."""
    roles: list[tuple[str, object]] = [
        (role, role),
        (NVIDIA_ROLE, change.brings_plugin_back),
        (OPERATOR_ROLE, change.sets_operator_labels and change.to),
    ]
    return [name for name, due in roles if due]


def _list_offered(change: Change, config: Mapping[str, Any]) -> list[str]:
    if not change.to or not change.serves:
        return []
    if not change.to.by_nvidia:
        return list(change.to.resources)
    return list_offered(config or change.host.config, change.host.resource_name, change.host.has_whole)


def _list_steps(change: Change, row: Mapping[str, Any]) -> list[str]:
    enters = change.to and (
        change.leaves
        or change.pauses
        or change.sets_operator_labels
        or (change.shares and not change.to.is_labelled(change.node.labels))
    )
    name = (change.by_operator and change.to and change.to.mig and change.mig_config) or change.config.name
    name = f" ({name})" if name else ""
    steps = [
        ("cordon", change.cordons),
        (f"drain of {row['drain']} pods", row["drain"] != "none"),
        *((f"leave {name}", True) for name in change.leaving),
        (f"remove labels of {change.former_owner}", change.former_owner and change.to),
        (f"enter {row['to']}{name}", enters),
        ("uncordon", change.cordons),
    ]
    return [step for step, due in steps if due]


def _plan_cluster(changes: Sequence[Change], cluster: Cluster) -> dict[str, Any]:
    leaving = {row.name: {change.host.node for change in changes if row in change.leaves} for row in IN_CLUSTER}
    kept = {row.name: sorted(set(cluster.labelled.get(row.name, ())) - leaving[row.name]) for row in IN_CLUSTER}
    entered = [change.to for change in changes if change.serves and not change.by_operator]
    present = [row for row in IN_CLUSTER if row in entered]
    leaves = [row for row in IN_CLUSTER if leaving[row.name] and not kept[row.name] and row not in present]
    scheduler_changes = "scheduler" in cluster.run_tags and any(map(cluster.binds, (*present, *leaves)))
    extenders = [row for row in IN_CLUSTER if cluster.binds(row) and (row in present or kept[row.name])]
    return {
        "present": [row.name for row in present],
        "enters": [row.name for row in present if not cluster.labelled.get(row.name)],
        "leaves": [row.name for row in leaves],
        "kept": {name: nodes for name, nodes in kept.items() if nodes},
        "extenders": [row.name for row in extenders],
        "scheduler_changes": scheduler_changes,
        "plugin_configs": _collect_configs(changes, cluster),
        "nvidia_resources": _list_nvidia_resources(changes),
        "operator": _plan_operator(changes, cluster),
        "blockers": [
            *find_in_cluster(changes, present, kept, cluster),
            *(_find_scheduler_blockers(present, extenders, kept, cluster) if scheduler_changes else []),
        ],
    }


def _find_scheduler_blockers(
    present: Sequence[Strategy], extenders: Sequence[Strategy], kept: Mapping[str, Sequence[str]], cluster: Cluster
) -> list[str]:
    """Return what blocks a change of kube-scheduler: strategies of nodes beyond this run alone, and its control planes."""
    # With strategies that are present, find_in_cluster names those of other nodes.
    beyond = [] if present else [describe_beyond(row, kept[row.name]) for row in extenders]
    problem = find_in_control_planes(cluster)
    return [*beyond, problem] if problem else beyond


def _collect_configs(changes: Sequence[Change], cluster: Cluster) -> dict[str, Any]:
    """Return the configurations that nodes name afterwards; those of nodes beyond this run stay as they are."""
    planned = {change.host.node for change in changes}
    own = [change for change in changes if not change.by_operator]
    kept = {name for node, name in cluster.config_names.items() if node not in planned}
    kept.update(change.config.name for change in own)
    found = {name: document for name, document in cluster.configs.items() if name in kept}
    found.update({change.config.name: change.config.document for change in own if change.config.document})
    return dict(sorted(found.items()))


def _plan_operator(changes: Sequence[Change], cluster: Cluster) -> dict[str, Any]:
    """Return what is the same for all nodes whose device plugin the operator deploys; empty without such nodes."""
    if not cluster.operator or "device_plugin" not in cluster.operator.policy.enabled:
        return {}
    names = dict(cluster.operator.config_names)
    setting = [change for change in changes if change.sets_operator_labels]
    names.update({change.host.node: change.operator_labels.get(LABEL, "") for change in setting})
    names.update({change.host.node: change.config.name for change in changes if change.removes_operator_labels})
    used = {*names.values(), cluster.operator.policy.default_config}
    return {
        "namespace": cluster.operator.policy.namespace,
        "config_map": cluster.operator.policy.config_map,
        "plugin_labels": PLUGIN_LABELS,
        "default_config": cluster.operator.policy.default_config,
        "configured": list(CONFIGURED_PODS),
        "unused": [key for key in sorted(cluster.operator.configs or ()) if key not in used],
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


def render_plan(plan: Mapping[str, Any], notes: Iterable[str] = ()) -> list[str]:
    """Return the lines of a table for people: who goes from where to where, by which steps, *notes*, and why a node is blocked."""
    head = ("HOST", "NODE", "FROM", "TO", "STEPS")
    rows = [
        (row["host"], row["node"], " ".join(row["from"]) or "-", row["to"] or "-", ", ".join(row["steps"]) or "none")
        for row in plan["nodes"]
    ]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in (head, *rows)]
    cluster = plan["cluster"]
    operated = [row["node"] for row in plan["nodes"] if row["role"] == OPERATOR_ROLE]
    changes = [("shared by NVIDIA's GPU Operator", operated)]
    changes += [("new in the cluster", cluster["enters"]), ("leave the cluster", cluster["leaves"])]
    changes += (
        [("extenders of kube-scheduler afterwards", cluster["extenders"])] if cluster["scheduler_changes"] else []
    )
    lines += [f"{title}: {', '.join(names) or 'none'}" for title, names in changes if names or title.startswith("ext")]
    for vendor in OTHERS:
        names = [row["node"] for row in plan["nodes"] if vendor.name in row["vendors"]]
        lines += [f"GPUs of {vendor.title}, which its device plugin offers: {', '.join(names)}"] if names else []
    return [*lines, *notes, *(f"BLOCKED: {sentence}" for sentence in list_blockers(plan))]
