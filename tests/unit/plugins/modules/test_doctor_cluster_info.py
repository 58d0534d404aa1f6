# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module that observes a cluster: results and failures."""

from __future__ import annotations

from typing import Any

from fakes.kubernetes_api import FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.modules import doctor_cluster_info


def test_doctor_cluster_info_without_nodes_of_the_api_fails(run_module: Any) -> None:
    cluster = FakeCluster()

    def fail(_call: str) -> None:
        raise ApiError("The API is away.", 503)

    cluster.on_call = fail
    result = run_module(doctor_cluster_info, cluster)
    assert (result["failed"], result["msg"]) == (True, "The API is away.")


def test_doctor_cluster_info_keeps_requested_nodes(run_module: Any) -> None:
    cluster = FakeCluster([node("w1"), node("w2"), node("w3", 1)])
    cluster.server_time = None  # type: ignore[attr-defined]
    cluster.gather = lambda *_arguments: []  # type: ignore[method-assign,assignment]
    result = run_module(doctor_cluster_info, cluster, nodes=["w1"])
    assert (result["changed"], sorted(result["observation"]["nodes"])) == (False, ["w1", "w3"])
