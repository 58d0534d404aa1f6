# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what keeps nodes from entering a sharing strategy that has a device plugin and an extender of its own."""

from __future__ import annotations

from typing import AbstractSet, Any, Iterable, Mapping, Sequence

from .catalogue import EXTENDED, STRATEGIES, Strategy, matching, nvidia_resources

Rows = Sequence[Mapping[str, Any]]


def find_conflicts(
    joining: Rows,
    strategy: str,
    nodes: Rows,
    labelled: Iterable[str] = (),
    claimed: Iterable[str] = (),
    leaving: Iterable[str] = (),
    emptied: Iterable[str] = (),
    second_scheduler: str = "",
    resource_name: str = "nvidia.com/gpu",
) -> dict[str, Any]:
    """Find the first conflict of the hosts that enter a strategy, and the resources that NVIDIA's device plugin has on their nodes.

    ``joining`` are the hosts with ``host``, ``node`` and ``expected``, the units that the node is going to offer; with 0 it only has to exist.
    ``nodes`` are rows of gpu_nodes_info for them. All others are names of nodes: ``labelled`` have the label of the other strategy, ``claimed``
    the ResourceSlices of NVIDIA's DRA driver, ``leaving`` are those that leave the other strategy in this run, and ``emptied`` those that the run
    drains of GPU pods before. ``second_scheduler`` names the strategy that has a kube-scheduler of its own, if one has.

    Returns ``error``, one sentence with host or node, cause and remedy, or empty, and ``whole_resources``, a sorted list with at least
    *resource_name*'s. Raises KeyError for an unknown strategy, and ValueError for one of NVIDIA's device plugin.
    """
    mine = STRATEGIES[strategy]
    if mine.by_nvidia:
        raise ValueError(f"{strategy} has no device plugin of its own")
    # The sentences name one other strategy; who adds a third one to the catalogue has to change them.
    (other,) = (row for row in EXTENDED if row is not mine)
    patterns = nvidia_resources(resource_name)
    sharers = {row["node"] for row in joining if row["expected"]}
    concerned = [row for row in nodes if row["name"] in sharers]
    # A kubelet reports a resource that the node had once for as long as it runs, with 0.
    whole = {name for row in concerned for name, units in matching(row["gpu_capacity"], patterns).items() if units}
    leavers, drained = set(leaving), set(emptied)
    elsewhere = set(labelled) - leavers
    # Two owners of the GPUs of one node are a conflict with any number of schedulers; of other nodes, with one kube-scheduler.
    others = elsewhere & sharers if second_scheduler or not sharers else elsewhere
    errors = (
        _find_unknown(joining, nodes),
        _find_operated(concerned),
        _find_others(sorted(others), mine, other),
        _find_claimed(sorted(sharers.intersection(claimed)), mine),
        _find_other_plugins(concerned, mine, other, leavers),
        _find_held([row for row in concerned if row["name"] not in drained], patterns),
    )
    return {"error": next(filter(None, errors), ""), "whole_resources": sorted(whole) or [resource_name]}


def _find_unknown(joining: Rows, nodes: Rows) -> str:
    known = {row["name"] for row in nodes if row["known"]}
    unknown = [row for row in joining if row["node"] not in known]
    if not unknown:
        return ""
    hosts, names = (", ".join(row[key] for row in unknown) for key in ("host", "node"))
    return f"Host {hosts}: the cluster has no node {names}, so join the host first or set gpu_node_name to its Kubernetes name."


def _find_operated(concerned: Rows) -> str:
    names = [row["name"] for row in concerned if row["gpu_operator"]]
    if not names:
        return ""
    return (
        f"Node {', '.join(names)}: NVIDIA's GPU Operator deploys the device plugin here; set the node's label "
        "nvidia.com/gpu.deploy.device-plugin to false first."
    )


def _find_others(names: Sequence[str], mine: Strategy, other: Strategy) -> str:
    if not names:
        return ""
    return (
        f"Node {', '.join(names)}: shares its GPUs by {other.name}, and a kube-scheduler takes only one extender that binds pods, {other.name}'s or "
        f"{mine.name}'s; take {other.name} off first (the playbook remove_{other.name}, or site, which changes hosts over), or, for other nodes and "
        "with a second scheduler of your own for one of the two, name that one in gpu_sharing_second_scheduler."
    )


def _find_claimed(names: Sequence[str], mine: Strategy) -> str:
    if not names:
        return ""
    return (
        f"Node {', '.join(names)}: NVIDIA's DRA driver hands out the same GPUs (kubectl get resourceslices), of which {mine.name} knows nothing; keep "
        "its kubelet plugin off the node, or configure it to leave GPUs out."
    )


def _find_other_plugins(concerned: Rows, mine: Strategy, other: Strategy, leaving: AbstractSet[str]) -> str:
    """Return the error of plugins that stay on nodes with the strategy's label; the other strategy's goes from nodes that leave it."""
    found = {
        plugin
        for row in concerned
        for plugin in row["foreign_plugins"]
        if row["name"] not in leaving or not plugin.endswith(f"/{other.daemon_set}")
    }
    if not found:
        return ""
    label = next(iter(mine.label))
    return (
        f"{', '.join(sorted(found))} offers the same GPUs and would not leave a node with the label {label}=true; if it is NVIDIA's static one "
        "(kube-system/nvidia-device-plugin-daemonset), take it over with the playbooks label_gpu_nodes and deploy_device_plugin, the second with "
        f"-e k8s_device_plugin_adopt=true -e gpu_sharing_strategy=exclusive, for it leaves out hosts that declare {mine.name}; or give it a node "
        "affinity that keeps it from such nodes, or remove it."
    )


def _find_held(concerned: Rows, patterns: Sequence[str]) -> str:
    names = sorted(row["name"] for row in concerned if sum(matching(row["gpu_allocated"], patterns).values()) > 0)
    if not names:
        return ""
    return (
        f"Node {', '.join(names)}: pods hold whole GPUs or shares of them, which would be given away once more; end them first "
        f"(kubectl get pods -A --field-selector spec.nodeName={names[0]}), or run the playbook site, which drains the node of GPU pods."
    )
