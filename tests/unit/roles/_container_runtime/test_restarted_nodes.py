# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes after a restart of their container runtime."""

from __future__ import annotations

from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

#: Nodes of the hosts that restarted their daemon, and the error message.
NODES = {
    "ready": "",
    "sick": "sick: containerd was restarted and works, but the node sick: is not Ready (CNI is missing), after 2 s; read the log of the kubelet",
    "silent": "silent: containerd was restarted and works, but the node silent: its kubelet has not reported, after 2 s; ",
    # Without a Lease.
    "new": "",
}


def test_hosts_whose_nodes_are_not_ready_again_fail(refusals, tmp_path):
    def make_lease(name, renewed):
        metadata = {"name": name, "namespace": "kube-node-lease"}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {"renewTime": renewed},
        }

    objects = [{"apiVersion": "v1", "kind": "Node", **node(name, ready=name != "sick")} for name in NODES]
    cluster = SmallCluster(*objects, *(make_lease(name, "0") for name in NODES if name != "new"))
    reads = []

    def renew(server):
        reads.append(1)
        for name in ("ready", "sick"):
            server.objects["Lease", "kube-node-lease", name]["spec"]["renewTime"] = str(len(reads))

    cluster.before_read = renew
    hosts = {name: {"gpu_node_name": name, "__container_runtime_awaited": name} for name in NODES}
    with serve_in_thread(cluster) as server:
        messages = refusals(
            "_container_runtime",
            ["node_ready"],
            hosts,
            variables={"_container_runtime_daemon": {"service": "containerd"}},
            extra={
                "gpu_kubeconfig": str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
                "container_runtime_restart_probe_timeout": 2,
            },
        )
    assert sorted(messages) == sorted(NODES)
    for name, words in NODES.items():
        assert bool(messages[name]) == bool(words), messages[name]
        assert words in messages[name]


def test_host_without_answer_of_the_api_server_fails(refusals, tmp_path):
    messages = refusals(
        "_container_runtime",
        ["node_ready"],
        {"w1": {"gpu_node_name": "w1", "__container_runtime_awaited": "w1"}},
        variables={"_container_runtime_daemon": {"service": "containerd"}},
        extra={"gpu_kubeconfig": str(tmp_path / "none"), "container_runtime_restart_probe_timeout": 0},
    )
    assert "w1: containerd was restarted and works, but the API server does not report the node (" in messages["w1"]
