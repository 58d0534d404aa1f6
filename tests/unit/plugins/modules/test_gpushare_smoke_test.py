# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's face: results for every node, and honest change."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.gpushare_cluster import FakeGpushare, request_of, shared_node
from fakes.kubernetes_api import node, pod

from ansible_collections.gpu.kubernetes.plugins.modules import gpushare_smoke_test

LABELS = {"app.kubernetes.io/name": "gpushare-smoke-test", "app.kubernetes.io/managed-by": "gpu.kubernetes"}


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, gpushare_smoke_test)


def test_passed_skipped_and_failed(run: Any) -> None:
    cluster = FakeGpushare([shared_node("w1"), shared_node("w2", unschedulable=True), node("w3")])
    result = run(cluster, nodes=["w1", "w2", "w3", "w1"], image="i")
    assert (result["changed"], result["ok"]) == (False, False)
    assert (result["failed_nodes"], result["skipped_nodes"]) == (["w3"], ["w2"])
    assert "failed" not in result
    first = result["results"][0]
    assert {name: first[name] for name in first if name not in ("log_tail", "pending_reason")} == {
        "node": "w1",
        "passed": True,
        "skipped": False,
        "reason": "",
        "unit": "GiB",
        "gpu_index": 0,
        "percent": [0, 18, 50],
        "pods": [
            {"name": "gpushare-smoke-test-0", "amount": 3, "phase": "Succeeded", "gpu_index": 0},
            {"name": "gpushare-smoke-test-1", "amount": 5, "phase": "Succeeded", "gpu_index": 0},
        ],
    }
    assert "Insufficient aliyun.com/gpu-mem" in first["pending_reason"]
    assert result["results"][2]["gpu_index"] is None
    assert cluster.store_pods == []


@pytest.mark.parametrize("amounts", [[], [3], [3, 0], [-1, 5]])
def test_amounts_that_share_nothing_are_refused(run: Any, amounts: Any) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    result = run(cluster, nodes=["w1"], image="i", amounts=amounts)
    assert result["failed"] is True
    assert "give two amounts or more of 1 or more" in result["msg"]
    assert cluster.calls == []


def test_check_mode(run: Any) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    result = run(cluster, nodes=["w1"], image="i", _ansible_check_mode=True)
    assert (result["changed"], result["ok"], result["skipped_nodes"]) == (False, True, ["w1"])
    assert cluster.created == []


@pytest.mark.parametrize("check_mode", [True, False])
@pytest.mark.parametrize("arguments", [{"nodes": [], "image": "i"}, {"state": "absent"}])
def test_removed_leftovers_are_a_change(run: Any, arguments: Any, check_mode: bool) -> None:
    old = pod("old", labels=dict(LABELS), created="2020-01-01T00:00:00Z", activeDeadlineSeconds=60)
    cluster = FakeGpushare([], [old])
    result = run(cluster, **arguments, _ansible_check_mode=check_mode)
    assert (result["changed"], result["removed_leftovers"], result["results"]) == (True, ["old"], [])
    assert bool(cluster.store_pods) is check_mode


def test_a_test_wants_nodes_and_an_image(run: Any) -> None:
    assert "missing: nodes, image" in run(FakeGpushare([]))["msg"]


def test_options_reach_the_pods(run: Any) -> None:
    cluster = FakeGpushare([shared_node("w1", 180)])
    cluster.output = "fine"
    result = run(
        cluster,
        nodes=["w1"],
        image="reg/i:1",
        amounts=[1, 2, 4],
        unit="GiB",
        too_much=False,
        runtime_class="nvidia",
        expected_output="fine",
        namespace="gpu",
        image_pull_secrets=["s"],
        run_as_user=0,
        timeout=100,
    )
    assert (result["ok"], result["results"][0]["percent"]) == (True, [0, 0, 1, 3])
    assert [request_of(made) for made in cluster.created] == [1, 2, 4]
    made = cluster.created[0]
    assert made["metadata"]["namespace"] == "gpu"
    assert made["spec"]["runtimeClassName"] == "nvidia"
    assert made["spec"]["imagePullSecrets"] == [{"name": "s"}]
    assert made["spec"]["containers"][0]["image"] == "reg/i:1"
    assert made["spec"]["activeDeadlineSeconds"] == 460
