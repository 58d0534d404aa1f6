# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module removes the named resources from the status of nodes, and nothing else."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import GPU, FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.modules import node_extended_resources

COUNT = "aliyun.com/gpu-count"


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, node_extended_resources)


def shared(name: str, **status: dict[str, str]) -> dict[str, Any]:
    made = node(name, gpus=1)
    for field, values in status.items():
        made["status"][field].update(values)
    return made


def test_check_run_and_repeat_remove_resources(run: Any) -> None:
    cluster = FakeCluster(
        [shared("w1", capacity={COUNT: "2"}, allocatable={COUNT: "2"}), shared("w2", capacity={COUNT: "1"}), node("w3")]
    )
    before = {"w1": {COUNT: "2"}, "w2": {COUNT: "1"}}
    checked = run(cluster, resources=[COUNT], _ansible_check_mode=True, _ansible_diff=True)
    assert cluster.calls == ["nodes"]
    done = run(cluster, resources=[COUNT], _ansible_diff=True)
    assert checked["changed"] is done["changed"] is True
    assert checked["nodes"] == done["nodes"] == before
    assert checked["diff"] == done["diff"] == {"before": before, "after": {"w1": {}, "w2": {}}}
    assert sorted(call for call in cluster.calls if call.startswith("patch")) == ["patch status w1", "patch status w2"]
    for name in ("w1", "w2"):
        assert cluster.store_nodes[name]["status"]["capacity"] == {GPU: "1"}
        assert cluster.store_nodes[name]["status"]["allocatable"] == {GPU: "1"}
    for check in (True, False):
        assert run(cluster, resources=[COUNT], _ansible_check_mode=check)["changed"] is False


def test_nodes_limits_the_removal(run: Any) -> None:
    cluster = FakeCluster([shared("w1", capacity={COUNT: "2"}), shared("w2", capacity={COUNT: "1"})])
    assert run(cluster, resources=[COUNT], nodes=["w2", "gone"])["nodes"] == {"w2": {COUNT: "1"}}
    assert cluster.store_nodes["w1"]["status"]["capacity"][COUNT] == "2"
    assert run(cluster, resources=[COUNT], nodes=[])["changed"] is False


def test_api_error_fails_with_its_message(run: Any) -> None:
    cluster = FakeCluster([shared("w1", capacity={COUNT: "2"})])

    def refuse(call: str) -> None:
        if call.startswith("patch"):
            raise ApiError("The Kubernetes API answered 403: no.", 403)

    cluster.on_call = refuse
    result = run(cluster, resources=[COUNT])
    assert (result["failed"], result["msg"]) == (True, "The Kubernetes API answered 403: no.")
