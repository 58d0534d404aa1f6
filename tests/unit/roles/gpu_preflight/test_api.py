# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the nodes in the cluster: one request for all hosts, and a verdict for each."""

from __future__ import annotations

from fakes.kubernetes_api import node
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

#: The verdict on each host, and what its node reports; None is no node.
HOSTS = {
    "good": ("", "containerd://2.1.4"),
    "one": ("one: one and two have the same node name one;", "containerd://2.1.4"),
    "two": ("two: one and two have the same node name one;", None),
    "stranger": ("stranger: the cluster has no node stranger;", None),
    "other": ("other: the kubelet of node other uses docker://28.0.1 and not containerd,", "docker://28.0.1"),
    "silent": ("uses a runtime that it does not report and not containerd,", ""),
}


def make_nodes():
    for name, (_words, runtime) in HOSTS.items():
        if runtime is not None:
            item = node(name)
            item["status"]["nodeInfo"] = {"containerRuntimeVersion": runtime}
            yield item


def test_nodes_of_hosts_are_checked_with_one_request_a_batch(refusals, tmp_path):
    lists = {"/api/v1/nodes": encode_list(list(make_nodes())), "/api/v1/pods": encode_list([])}
    variables = {"gpu_preflight_container_runtime": "containerd"}
    hosts = {name: {**variables, **({"gpu_node_name": "one"} if name == "two" else {})} for name in HOSTS}
    with serve_in_thread(LoopbackApi(lists)) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        found = refusals("gpu_preflight", ["api"], hosts, extra={"gpu_kubeconfig": kubeconfig}, serial=4)
        paths = [path for _method, path, _query in server.requests]
    for name, (words, _runtime) in HOSTS.items():
        assert (words in found[name]) if words else not found[name], found
    assert paths.count("/api/v1/nodes") == 2


#: What NVIDIA's GPU Operator runs on the node of a host, by the node's labels, and whether the role nvidia_driver manages the driver.
OPERATED = {
    "operated": ({"device-plugin": "true"}, ["driver", "toolkit", "device_plugin", "feature_discovery"], False),
    "preinstalled": (
        {"driver": "pre-installed", "container-toolkit": "false"},
        ["device_plugin", "feature_discovery"],
        True,
    ),
    "hands-off": ({"operands": "false"}, [], True),
    # The plan of the sharing strategies knows of nodes without labels.
    "planned": ({}, ["driver"], False),
}


def test_driver_and_toolkit_are_left_to_the_gpu_operator(evaluate, tmp_path):
    policy = {"kind": "ClusterPolicy", "metadata": {"name": "p"}, "spec": {"migManager": {"enabled": False}}}
    nodes = [
        {"kind": "Node", **node(name, labels={f"nvidia.com/gpu.deploy.{key}": value for key, value in labels.items()})}
        for name, (labels, _parts, _managed) in OPERATED.items()
    ]
    for item in nodes:
        item["status"]["nodeInfo"] = {"containerRuntimeVersion": "containerd://2.1.4"}
    hosts = {name: {} for name in OPERATED}
    hosts["planned"] = {"gpu_sharing_node_plan": {"operated": ["driver"]}}

    def include(role, entry="main"):
        return {"ansible.builtin.include_role": {"name": f"gpu.kubernetes.{role}", "tasks_from": entry}}

    record = {"ansible.builtin.set_fact": {"result": "{{ [gpu_preflight_operated, gpu_preflight_driver_managed] }}"}}
    plays = [
        {"hosts": "all", "tasks": [include("gpu_preflight", "api"), include("gpu_preflight", "driver"), record]},
        # Neither inspects the host, which would fail without its facts.
        {"hosts": "operated", "check_mode": True, "tasks": [include("nvidia_driver"), include("containerd_nvidia")]},
        {"hosts": "operated", "tasks": [{"ansible.builtin.set_fact": {"passed": True}}]},
    ]
    with serve_in_thread(SmallCluster(policy, *nodes)) as server:
        found = evaluate(
            hosts,
            [{"gather_facts": False, **play} for play in plays],
            "[dict(groups.all | zip(groups.all | map('extract', hostvars, 'result'))), hostvars.operated.passed | default(false),"
            " hostvars.operated.nvidia_container_toolkit_host is defined]",
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
            gpu_preflight_container_runtime="containerd",
            gpu_preflight_gpus={
                "ansible_facts": {"nvml": {"source": "pci", "error": "no driver", "gpus": [{"lost": False}]}}
            },
        )
    assert found == [{name: [parts, managed] for name, (_labels, parts, managed) in OPERATED.items()}, True, False]


def test_notes_on_edge_nodes_come_from_hosts_and_nodes(evaluate_role):
    """A node without its framework's label is known by the host's kubeconfig."""
    hosts = {
        name: {
            "__gpu_preflight_member": {"host": name, "node": name, "edge": edge},
            "__gpu_preflight_cluster": {"nodes": [{"edge": "superedge"}, {"edge": "superedge"}, {"edge": ""}]},
        }
        for name, edge in {"plain": "", "without-label": "openyurt"}.items()
    }
    found = evaluate_role("gpu_preflight", hosts, "__gpu_preflight_edge_notes")
    for notes in found.values():
        assert {note.partition(":")[0] for note in notes} == {"OpenYurt", "SuperEdge"}
        assert len(notes) == len(set(notes))
