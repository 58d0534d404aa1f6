# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What k8s_device_plugin refuses, and its verdict on nodes."""

from __future__ import annotations

from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT, find_task

#: Variables of a cluster's second host, and whether they are cluster-wide.
PLUGIN = {
    "namespace": ({"k8s_device_plugin_namespace": "other"}, True),
    "driver-root": ({"k8s_device_plugin_driver_root": "/driver"}, True),
    "state": ({"k8s_device_plugin_state": "absent"}, True),
    "own": (
        {"k8s_device_plugin_expected_gpus": 3, "k8s_device_plugin_wait_timeout": 9, "gpu_node_name": "other"},
        False,
    ),
}


def test_hosts_with_different_cluster_wide_variables_are_refused(refusals):
    """Before the role reads the API server."""
    clusters = [{f"{name}-a": {}, f"{name}-b": own} for name, (own, _differ) in PLUGIN.items()]
    clusters.append({"mps": {"k8s_device_plugin_config": {"sharing": {"mps": {"resources": []}}}}})
    results = refusals(
        "k8s_device_plugin",
        ["facts"],
        *clusters,
        extra={"gpu_preflight_gpus": {"ansible_facts": {}}},
        facts={"nvml": {"source": "none", "error": None, "gpus": []}},
    )
    for name, (_own, differ) in PLUGIN.items():
        words = f"Hosts {name}-a and {name}-b differ in variables of k8s_device_plugin" if differ else ""
        assert results[f"{name}-a"][: len(words) or None] == words
    assert results["mps"].startswith(
        "Host mps: sharing.mps in k8s_device_plugin_config needs a control daemon on each node, so set gpu_sharing_strategy to mps"
    )


def test_unmanaged_object_with_the_name_of_a_managed_one_is_refused(refusals, tmp_path):
    unmanaged = {"name": "nvidia-device-plugin-config", "namespace": "kube-system"}
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
        {"apiVersion": "v1", "kind": "Node", **node("w1")},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": unmanaged, "data": {"unmanaged": "yes"}},
    ]
    with serve_in_thread(SmallCluster(*objects)) as server:
        results = refusals(
            "k8s_device_plugin",
            ["check"],
            {"w1": {"gpu_node_name": "w1", "k8s_device_plugin_expected_gpus": 2}},
            extra={
                "gpu_kubeconfig": str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
                "gpu_preflight_gpus": {"ansible_facts": {}},
            },
            facts={"nvml": {"source": "none", "error": None, "gpus": []}},
        )
        assert server.objects["ConfigMap", "kube-system", unmanaged["name"]]["data"] == {"unmanaged": "yes"}
    assert "nvidia-device-plugin-config" in results["w1"], results
    assert "kube-system" in results["w1"]


def test_hosts_of_later_batches_do_not_break_earlier_ones(evaluate):
    """Their nodes are not part of the request yet."""
    plugin = find_task("k8s_device_plugin", "facts", "Collect the expected devices")["ansible.builtin.set_fact"]
    labels = find_task("gpu_node_labels", "main", "Set the labels")["vars"]["__gpu_node_labels_all"]
    names = {"__gpu_node_labels_desired": {"node": "{{ inventory_hostname }}", "labels": {}}}
    names["__k8s_device_plugin_host"] = {**names["__gpu_node_labels_desired"], "provider": "nvidia"}
    result = "{{ [labels | map(attribute='node') | list, plugin | map(attribute='node') | list] }}"
    play = {
        "hosts": "all",
        "gather_facts": False,
        "serial": 1,
        "vars": {
            "labels": labels,
            "plugin": plugin["__k8s_device_plugin_hosts"],
            "k8s_device_plugin_provider": "nvidia",
        },
        "tasks": [{"ansible.builtin.set_fact": names}, {"ansible.builtin.set_fact": {"result": result}}],
    }
    results = evaluate({"a": {}, "b": {}}, [play], "groups.all | map('extract', hostvars, 'result')")
    assert results == [[["a"], ["a"]], [["a", "b"], ["a", "b"]]]


def test_wait_with_unready_node_fails_unless_wait_fail_is_false(evaluate_role):
    task = find_task("k8s_device_plugin", "main", "Require that this node's GPUs are allocatable")
    node_state = {"name": "node", "ok": False, "reason": "has 0 of 1"}
    host = {"gpu_node_name": "node", "__k8s_device_plugin_by_node": {"node": node_state}}
    # An edge node that is offline is not at fault.
    offline = {**host, "__k8s_device_plugin_by_node": {"node": {**node_state, "judged": False}}}
    hosts = {"fails": host, "accepted": {**host, "k8s_device_plugin_wait_fail": False}, "offline": offline}
    failures = evaluate_role("k8s_device_plugin", hosts, "''", task)
    assert "is not as expected after 300 s: has 0 of 1." in failures["fails"]
    assert not failures["accepted"]
    assert not failures["offline"]


LABEL = "nvidia.com/gpu.deploy.device-plugin"
#: Variables of hosts, and whether the plugin keeps off nodes with that of NVIDIA's GPU Operator.
OPERATED = {
    "operated": ({"gpu_sharing_plan": {"cluster": {"operator": {"namespace": "nvidia"}}}}, True),
    # The labels stay where the ClusterPolicy deploys no device plugin.
    "disabled": ({"gpu_sharing_plan": {"cluster": {"operator": {}}}}, False),
    "unplanned": ({}, False),
    # The role without a plan.
    "alone": ({"__k8s_device_plugin_before": {"operator_plugins": True}}, True),
    "alone-disabled": ({"__k8s_device_plugin_before": {"operator_plugins": False}}, False),
}
UNMANAGED = {
    # The variables of a vendor would take the place of these.
    "loads_vendor": False,
    "__k8s_device_plugin_hosts": [{"host": "h1", "node": "w1"}],
    "__k8s_device_plugin_before": {
        "nodes": [{"name": "w1", "known": True, "gpu_operator": [], "unmanaged_plugins": ["kube-system/other"]}],
        "owners": [],
    },
    "__k8s_device_plugin_daemon_set": "plugin",
    "__k8s_device_plugin_vendor": "NVIDIA",
    "__k8s_device_plugin_by_manifest": True,
}
OTHER = {"__k8s_device_plugin_daemon_set": "other"}
#: Variables of hosts whose nodes have an unmanaged plugin, and whether they are refused: not if it leaves or is adopted.
PLUGINS = {
    "unmanaged": ({}, True),
    "leaving": ({"gpu_sharing_leaving": ["w1"]}, False),
    "adopted": (OTHER, False),
    "adopted-with-helm": ({**OTHER, "__k8s_device_plugin_by_manifest": False}, True),
}
MPS = {"version": "v1", "sharing": {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}


def test_plugins_of_others_and_mps_for_all_nodes_are_respected(evaluate_role):
    """One run for all: each host shows a variable of its own."""
    vendor = {"dir": str(ROOT / "roles/k8s_device_plugin/vars/nvidia")}
    load = {"ansible.builtin.include_vars": vendor, "when": "loads_vendor | default(true)"}
    facts = {"nvml": {"source": "none", "error": None, "gpus": []}}
    terms = "__k8s_device_plugin_affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
    hosts = {name: {**variables, "shown": "{{ " + terms + " }}"} for name, (variables, _off) in OPERATED.items()}
    for name, (variables, _refused) in PLUGINS.items():
        hosts[name] = {**UNMANAGED, **variables, "shown": "{{ __k8s_device_plugin_refusals }}"}
    for method in ("manifest", "helm"):
        config = {"k8s_device_plugin_config": MPS, "k8s_device_plugin_method": method}
        hosts[method] = {**config, "shown": "{{ __k8s_device_plugin_problem }}"}
    found = evaluate_role("k8s_device_plugin", hosts, "shown", task=load, facts=facts)
    values = ["true", "paused-for-mig-change", "paused-for-driver-upgrade"]
    expected = [{"key": LABEL, "operator": "NotIn", "values": values}]
    for name, (_variables, keeps_off) in OPERATED.items():
        [term] = found[name]
        assert [each for each in term["matchExpressions"] if each["key"] == LABEL] == (expected if keeps_off else [])
    (sentence,) = found["unmanaged"]
    assert sentence.startswith("Node w1: its GPUs are already advertised by kube-system/other, and two device plugins")
    assert {name: found[name] for name in PLUGINS} == {
        name: [sentence] if refused else [] for name, (_variables, refused) in PLUGINS.items()
    }
    # The chart's daemon, too, runs only on nodes with the label that the role mps sets.
    assert "set gpu_sharing_strategy to mps and gpu_sharing_replicas for these hosts instead" in found["helm"]
    assert found["helm"] == found["manifest"]
