# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the nodes in the cluster: one request for all hosts, and a verdict for each."""

from __future__ import annotations

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig

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


@pytest.mark.parametrize("keywords", [{}, {"serial": 4}])
def test_nodes_of_hosts_are_checked_with_one_request_a_batch(refusals, tmp_path, keywords):
    lists = {"/api/v1/nodes": encode_list(list(make_nodes())), "/api/v1/pods": encode_list([])}
    variables = {"gpu_preflight_container_runtime": "containerd"}
    hosts = {name: {**variables, **({"gpu_node_name": "one"} if name == "two" else {})} for name in HOSTS}
    with serve_in_thread(LoopbackApi(lists)) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        found = refusals("gpu_preflight", ["api"], hosts, extra={"gpu_kubeconfig": kubeconfig}, **keywords)
        paths = [path for _method, path, _query in server.requests]
    for name, (words, _runtime) in HOSTS.items():
        assert (words in found[name]) if words else not found[name], found
    assert paths.count("/api/v1/nodes") == (2 if keywords else 1)
