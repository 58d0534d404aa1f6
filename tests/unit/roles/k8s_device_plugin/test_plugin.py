# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What k8s_device_plugin refuses, and its verdict on nodes."""

from __future__ import annotations

from fakes.kubernetes_api import node
from fakes.loopback_api import serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import task_of

#: What the second host of a cluster is given, and whether that is no matter of its own.
PLUGIN = {
    "namespace": ({"k8s_device_plugin_namespace": "other"}, True),
    "driver-root": ({"k8s_device_plugin_driver_root": "/driver"}, True),
    "state": ({"k8s_device_plugin_state": "absent"}, True),
    "own": (
        {"k8s_device_plugin_expected_gpus": 3, "k8s_device_plugin_wait_timeout": 9, "gpu_node_name": "other"},
        False,
    ),
}


def test_the_variables_of_the_plugin_are_the_clusters(refusals):
    """Nothing has been asked of the API server by then."""
    clusters = [{f"{name}-a": {}, f"{name}-b": own} for name, (own, _differ) in PLUGIN.items()]
    clusters.append({"provider": {"k8s_device_plugin_provider": "acme"}})
    told = refusals(
        "k8s_device_plugin",
        ["set_vars", "facts"],
        *clusters,
        extra={"gpu_preflight_gpus": {"ansible_facts": {}}},
        facts={"nvml": {"source": "none", "error": None, "gpus": []}},
    )
    for name, (_own, differ) in PLUGIN.items():
        words = f"Hosts {name}-a and {name}-b differ in variables of k8s_device_plugin" if differ else ""
        assert told[f"{name}-a"][: len(words) or None] == words
    assert told["provider"] == "Host provider: k8s_device_plugin_provider acme is unknown; choose one of nvidia."


def test_an_object_of_others_by_the_name_of_ours_is_refused(refusals, tmp_path):
    theirs = {"name": "nvidia-device-plugin-config", "namespace": "kube-system"}
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
        {"apiVersion": "v1", "kind": "Node", **node("w1")},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": theirs, "data": {"theirs": "yes"}},
    ]
    with serving(SmallCluster(*objects)) as server:
        told = refusals(
            "k8s_device_plugin",
            ["check"],
            {"w1": {"gpu_node_name": "w1", "k8s_device_plugin_expected_gpus": 2}},
            extra={
                "gpu_kubeconfig": str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
                "gpu_preflight_gpus": {"ansible_facts": {}},
            },
            facts={"nvml": {"source": "none", "error": None, "gpus": []}},
        )
        assert server.objects["ConfigMap", "kube-system", theirs["name"]]["data"] == {"theirs": "yes"}
    assert "nvidia-device-plugin-config" in told["w1"], told
    assert "kube-system" in told["w1"]


def test_hosts_of_later_batches_do_not_break_earlier_ones(hear):
    """Their nodes are not asked for yet."""
    plugin = task_of("k8s_device_plugin", "facts", "Collect the expected devices")["ansible.builtin.set_fact"]
    labels = task_of("gpu_node_labels", "main", "Set the labels")["gpu.kubernetes.node_labels"]["nodes"]
    names = {"__gpu_node_labels_wanted": {"node": "{{ inventory_hostname }}", "labels": {}}}
    names["__k8s_device_plugin_host"] = names["__gpu_node_labels_wanted"]
    seen = "{{ [labels | list, plugin | map(attribute='node') | list] }}"
    play = {
        "hosts": "all",
        "gather_facts": False,
        "serial": 1,
        "vars": {"labels": labels, "plugin": plugin["__k8s_device_plugin_hosts"]},
        "tasks": [{"ansible.builtin.set_fact": names}, {"ansible.builtin.set_fact": {"seen": seen}}],
    }
    told = hear({"a": {}, "b": {}}, [play], "groups.all | map('extract', hostvars, 'seen')")
    assert told == [[["a"], ["a"]], [["a", "b"], ["a", "b"]]]


def test_wait_with_unready_node_fails_unless_left_to_the_report(made):
    task = task_of("k8s_device_plugin", "main", "Require that this node's GPUs are allocatable")
    node_state = {"name": "node", "ok": False, "reason": "offers 0 of 1"}
    host = {"gpu_node_name": "node", "__k8s_device_plugin_by_node": {"node": node_state}}
    failures = made(
        "k8s_device_plugin", {"fails": host, "is-left": {**host, "k8s_device_plugin_wait_fail": False}}, "''", task
    )
    assert "is not as expected after 300 s: offers 0 of 1." in failures["fails"]
    assert not failures["is-left"]
