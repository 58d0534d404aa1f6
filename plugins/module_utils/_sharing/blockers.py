# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What blocks a change of the sharing strategies: each blocker is one sentence with host or node, cause and remedy."""

from __future__ import annotations

from typing import Mapping, Sequence

from .._vendors import BY_NAME, SERVED
from .catalogue import IN_CLUSTER, STRATEGIES, Strategy, matching, nvidia_resources
from .change import Change
from .gpu_operator import MIG_DISABLED, MIG_LABEL, PARTS, GpuOperator, OperatorState, label_of
from .node_state import Cluster
from .plugin_config import LABEL, MIG_STRATEGIES, list_uses, strategy_of_name

#: The label of nodes with the control daemon of MPS. NVIDIA's GPU feature discovery publishes it by its own configuration, which is false without MPS.
DAEMON_LABEL = "nvidia.com/mps.capable"


def find_on_node(change: Change, cluster: Cluster) -> list[str]:
    """Return the blockers of one node. Without tags of the plan, only contradictory parameters block a run."""
    if cluster.absent:
        return _find_used(change) if "sharing" in cluster.run_tags else []
    found = [_find_contradiction(change), _find_other_vendor(change)]
    if cluster.run_tags:
        found += [_find_unknown(change), _find_lost(change), _find_foreign_name(change), _find_held(change)]
        found += [_find_missing_tags(change)]
        found += [
            _find_operator(change),
            _find_operator_switch(change, cluster),
            _find_gpu_cluster(change),
            _find_claimed(change, cluster),
            _find_plugins(change, cluster),
            _find_second_plugin(change, cluster),
            _find_feature_discovery(change),
        ]
    return [sentence for sentence in found if sentence]


def _find_contradiction(change: Change) -> str:
    return f"Host {change.host.host}: {change.config.problem}." if change.config.problem else ""


def _find_other_vendor(change: Change) -> str:
    """Return the blocker of a strategy on a host whose GPUs are all of other vendors: their device plugins offer whole GPUs."""
    host = change.host
    if SERVED.name in host.vendors or host.strategy in ("", next(iter(STRATEGIES))):
        return ""
    titles = " and ".join(BY_NAME[name].title for name in host.vendors if name in BY_NAME)
    return (
        f"Host {host.host}: gpu_sharing_strategy is {host.strategy}, which shares GPUs of {SERVED.title}, and its GPUs are of {titles}; leave "
        "gpu_sharing_strategy empty for this host."
    )


def _find_foreign_name(change: Change) -> str:
    name = change.node.config
    if not name or not change.host.strategy or strategy_of_name(name):
        return ""
    return (
        f"{change.host.where}: the label {LABEL}={name} names a configuration that this collection has not made; to share its GPUs as "
        f"{change.host.strategy}, remove the label first (kubectl label node {change.host.node} {LABEL}-), or leave gpu_sharing_strategy empty."
    )


def _find_unknown(change: Change) -> str:
    if change.node.known:
        return ""
    host = change.host
    return f"Host {host.host}: the cluster has no node {host.node}; join the host to the cluster, or set gpu_node_name to the name of its node."


def _find_lost(change: Change) -> str:
    """Return the blocker of a node that would leave its strategy and enter none, because the driver has lost its GPUs for now or for good."""
    count = sum(matching(change.node.capacity, nvidia_resources(change.host.resource_name)).values())
    if not change.to or change.host.gpus != 0 or not change.cordons or not count:
        return ""
    return (
        f"{change.host.where}: its sharing strategy changes, and its driver reports none of the GPUs that the kubelet has; find the cause with the "
        "playbook diagnose_gpu_nodes, and run again."
    )


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
    if not change.shares or not change.node.by_operator:
        return ""
    return f"{change.host.where}: NVIDIA's GPU Operator deploys the device plugin here; set the node's label {label_of('device_plugin')} to false first."


def _find_gpu_cluster(change: Change) -> str:
    if not change.serves or not change.to or "dra_driver" not in change.node.operated:
        return ""
    return (
        f"{change.host.where}: the GPUCluster of NVIDIA's GPU Operator has a DRA driver allocate the GPUs here, and the device plugin of {change.to.name} "
        f"would allocate them again; set the node's label {label_of('dra_driver')} to false first, or take the host out of the group of GPU nodes."
    )


def _find_operator_switch(change: Change, cluster: Cluster) -> str:
    """Return the blocker of a declared strategy that the GPU Operator is not set up for; the sentence names what to set."""
    if not change.host.strategy or not change.to or not change.serves or not cluster.operator:
        return ""
    if not change.by_operator:
        if not change.uses_host_role or not change.to.mig or "mig_manager" not in change.node.operated:
            return ""
        cause = f"the GPU Operator's MIG manager runs here, and would undo the MIG devices; set the node's label {label_of('mig_manager')} to false first"
    else:
        cause = (_explain_mig if change.to.mig else _explain_config)(change, cluster.operator)
    return f"{change.host.where}: {cause}." if cause else ""


#: How a node leaves the operator's device plugin.
_BY_OWN_PLUGIN = (
    f"or set the node's label {label_of('device_plugin')} to false to have this collection's device plugin there"
)


def _explain_config(change: Change, operator: OperatorState) -> str:
    policy, name = operator.policy, change.to.name if change.to else ""
    if change.to and change.to.host_role and policy.mig_strategy == MIG_STRATEGIES[1]:
        return (
            f"{name} is requested, and NVIDIA's device plugin has no MPS with the MIG strategy {policy.mig_strategy}; set spec.mig.strategy of the "
            f"ClusterPolicy to {MIG_STRATEGIES[0]}, {_BY_OWN_PLUGIN}"
        )
    if change.to and change.to.host_role and "feature_discovery" not in change.node.operated:
        return (
            f"{name} is requested, and the GPU Operator's feature discovery, which starts the daemon of MPS, does not run here; "
            f"{_explain_enabling('feature_discovery', policy)}"
        )
    return _explain_config_map(change, operator)


def _explain_config_map(change: Change, operator: OperatorState) -> str:
    policy, name = operator.policy, change.to.name if change.to else ""
    if not change.config.name:
        return ""
    if not policy.config_map:
        return (
            f"{name} is requested, and the GPU Operator's device plugin reads no configurations; set spec.devicePlugin.config.name of the ClusterPolicy "
            f"(devicePlugin.config.name of the chart) to a ConfigMap in the namespace {policy.namespace}, {_BY_OWN_PLUGIN}"
        )
    if operator.configs is None:
        return (
            f"{name} is requested, and the ConfigMap {policy.config_map} in the namespace {policy.namespace}, which spec.devicePlugin.config.name of "
            f"the ClusterPolicy names, does not exist; create it (kubectl create configmap -n {policy.namespace} {policy.config_map})"
        )
    return ""


def _explain_enabling(part: str, policy: GpuOperator) -> str:
    if part in policy.enabled:
        return f"remove the node's label {label_of(part)}, {_BY_OWN_PLUGIN}"
    return f"set spec.{PARTS[part][0]}.enabled of the ClusterPolicy to true, {_BY_OWN_PLUGIN}"


def _explain_mig(change: Change, operator: OperatorState) -> str:
    policy, requested = operator.policy, change.host.request.mig_strategy
    if "mig_manager" not in change.node.operated:
        return f"mig is requested, and the GPU Operator's MIG manager does not run here; {_explain_enabling('mig_manager', policy)}"
    if policy.mig_strategy not in MIG_STRATEGIES or requested not in ("", policy.mig_strategy):
        return (
            f"mig is requested, and spec.mig.strategy of the ClusterPolicy is {policy.mig_strategy or 'not set'}; set it to "
            f"{requested or ' or '.join(MIG_STRATEGIES)} for all nodes, {_BY_OWN_PLUGIN}"
        )
    if change.mig_config in ("", MIG_DISABLED):
        return (
            "mig is requested, and the GPU Operator's MIG manager makes the MIG devices; set gpu_sharing_mig_config to the name of one of its "
            f"configurations, such as all-1g.10gb, instead of gpu_sharing_mig_layout, {_BY_OWN_PLUGIN}"
        )
    if change.node.mig_config == change.mig_config and change.node.mig_state == "failed":
        return (
            f"the GPU Operator's MIG manager could not apply {change.mig_config}; read its log (kubectl logs -n {policy.namespace} -l "
            f"app=nvidia-mig-manager), and to have it try again, remove the label first (kubectl label node {change.host.node} {MIG_LABEL}-)"
        )
    return _explain_config_map(change, operator)


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


def _find_second_plugin(change: Change, cluster: Cluster) -> str:
    """Return the blocker of device plugins beside that of the GPU Operator. Those of strategies that leave the node do not stay."""
    if not change.by_operator or not cluster.operator:
        return ""
    leaving = {cluster.plugin_of(row) for row in change.leaves}
    own = f"{cluster.operator.policy.namespace}/"
    found = [name for name in change.node.plugins if name not in leaving and not name.startswith(own)]
    if not found:
        return ""
    return (
        f"{change.host.where}: {', '.join(found)} registers the same GPUs as the device plugin of NVIDIA's GPU Operator; remove it first (the playbook "
        f"remove_gpu_nodes with the tag device_plugin, if this collection has deployed it), {_BY_OWN_PLUGIN}."
    )


def _find_feature_discovery(change: Change) -> str:
    """Return the blocker of NVIDIA's GPU feature discovery, which would take the control daemon of MPS off the node."""
    node = change.node
    if not change.to or not change.uses_host_role or "mps" not in list_uses([change.config.document]):
        return ""
    if DAEMON_LABEL not in node.published_labels or node.labels.get(DAEMON_LABEL) == "true":
        return ""
    return (
        f"{change.host.where}: {change.to.name} is requested, and NVIDIA's GPU feature discovery publishes {DAEMON_LABEL} for its own configuration, which "
        f"keeps the control daemon off the node; remove it first (the playbook deploy_feature_discovery with gpu_feature_discovery_state absent and "
        f"gpu_feature_discovery_components [gfd], if this collection has deployed it), or set the node's label {label_of('feature_discovery')} to false if "
        "NVIDIA's GPU Operator deploys it."
    )


def _find_used(change: Change) -> list[str]:
    """Return the blockers of strategies that are removed while pods hold their resources."""
    found = []
    # The end of a device plugin that the operator deploys is the end of its control daemon, or of its MIG devices.
    operated = [change.replaced] if change.replaced and change.replaced.node_role else []
    for row in (*change.leaves, *operated):
        held = [name for name, units in sorted(matching(change.node.allocated, row.resources).items()) if units > 0]
        if held and row.name not in change.host.remove_used:
            found.append(
                f"{change.host.where}: pods hold {' and '.join(held)}, and would keep GPUs that other pods get; end these pods first "
                f"({_list_pods(change)}), or set {row.node_role}_remove_used to true."
            )
    return found


def find_in_cluster(
    changes: Sequence[Change], present: Sequence[Strategy], kept: Mapping[str, Sequence[str]], cluster: Cluster
) -> list[str]:
    """Return the blockers of strategies that one kube-scheduler cannot serve together: in this run, and with nodes beyond it."""
    binding = [row for row in IN_CLUSTER if cluster.binds(row)]
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
    return f"{cause}, or, only if each kube-scheduler calls the extender already, leave it unchanged with --skip-tags scheduler."
