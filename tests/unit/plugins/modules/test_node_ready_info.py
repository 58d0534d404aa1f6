# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: parameters, results and failures."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.modules import node_ready_info


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, node_ready_info)


def test_node_that_does_not_report_is_not_an_error(run: Any) -> None:
    cluster = FakeCluster([node("w1")])
    cluster.leases = [{"metadata": {"name": "w1"}, "spec": {"renewTime": "1"}}]
    result = run(cluster, nodes=["w1", "new"], wait_timeout=0)
    assert result["changed"] is False
    assert result["nodes"]["w1"] == {
        "name": "w1",
        "known": True,
        "renewed": False,
        "ready": False,
        "reason": "its kubelet has not reported",
    }
    assert result["nodes"]["new"]["known"] is False


def test_api_error_fails_with_one_sentence(run: Any) -> None:
    cluster = FakeCluster()

    def refuse(_call: str) -> None:
        raise ApiError("The Kubernetes API answered 403.", 403)

    cluster.on_call = refuse
    result = run(cluster, nodes=["w1"])
    assert (result["failed"], result["msg"]) == (True, "The Kubernetes API answered 403.")
