# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: exporters by node, and failures."""

from __future__ import annotations

from typing import Any

from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.modules import gpu_exporters_info


def test_exporters_are_listed_by_node(run_module: Any) -> None:
    status = {"phase": "Running", "podIP": "10.244.1.7"}
    labels = {"app": "exporter"}
    cluster = FakeCluster(
        [node("w1"), node("w2")],
        [
            pod("a", on="w1", namespace="gpu", labels=labels, status=status),
            pod("b", on="w2", namespace="other", labels=labels, status=status),
        ],
    )
    container = {"image": "registry/dcgm-exporter:4.8.3"}
    spec = {"selector": {"matchLabels": labels}, "template": {"spec": {"containers": [container]}}}
    cluster.daemon_set_list = [{"metadata": {"name": "exporter", "namespace": "gpu"}, "spec": spec}]
    found = run_module(gpu_exporters_info, cluster)["nodes"]
    assert [each["address"] for each in found["w1"]["exporters"]] == ["10.244.1.7:9400"]
    assert found["w2"]["exporters"] == []
    assert sorted(cluster.calls) == ["daemon_sets", "nodes", "pods"]


def test_error_of_the_api_fails(run_module: Any) -> None:
    cluster = FakeCluster()

    def refuse(_call: str) -> None:
        raise ApiError("The Kubernetes API answered 403: no.", 403)

    cluster.on_call = refuse
    assert run_module(gpu_exporters_info, cluster)["msg"] == "The Kubernetes API answered 403: no."
