# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: results of every node, and whether it reports a change."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node, pod
from fakes.sharing_cluster import MEMORY, FakeSharing, shared_node

from ansible_collections.gpu.kubernetes.plugins.modules import gpu_smoke_test


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, gpu_smoke_test)


def ending(phase: str, output: str) -> FakeCluster:
    cluster = FakeCluster([node("w1", 1), node("w2", 1, unschedulable=True)])

    def outcome(made: dict[str, Any]) -> None:
        made["spec"]["nodeName"] = "w1"
        made["status"] = {
            "phase": phase,
            "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}],
        }
        cluster.logs[made["metadata"]["name"]] = output

    cluster.on_create = outcome
    return cluster


def test_passed_and_skipped(run: Any) -> None:
    cluster = ending("Succeeded", "Test PASSED\n")
    result = run(cluster, nodes=["w1", "w2", "w1"], image="i")
    assert (result["changed"], result["ok"]) == (False, True)
    assert [(entry["node"], entry["passed"]) for entry in result["results"]] == [("w1", True), ("w2", False)]
    assert (result["failed_nodes"], result["skipped_nodes"]) == ([], ["w2"])
    assert [entry["image"] for entry in result["results"]] == ["i", ""]
    assert cluster.store_pods == []
    assert len(cluster.created) == 1


def test_failing_pod_does_not_fail_the_module(run: Any) -> None:
    result = run(ending("Failed", "no CUDA-capable device is detected\n"), nodes=["w1"], image="i")
    assert "failed" not in result
    assert (result["ok"], result["failed_nodes"]) == (False, ["w1"])
    assert "no CUDA-capable device" in result["results"][0]["reason"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"resource_count": 0}, "set resource_count to 1 or more"),
        ({"shares": [30]}, "give two or more shares"),
        ({"shares": [0, 30]}, "of 1 or more"),
        ({"shares": [60, 50]}, "100 at most together"),
        ({"shared_resources": [{"name": "r"}]}, "set units_per_gpu to 1 or more, or gpu_count_resource"),
    ],
)
def test_options_that_test_no_gpu_are_refused(run: Any, options: Any, words: str) -> None:
    cluster = ending("Succeeded", "Test PASSED")
    result = run(cluster, nodes=["w1"], image="i", **options)
    assert result["failed"] is True
    assert words in result["msg"]
    assert cluster.calls == []


def test_pods_that_share_a_gpu_return_it(run: Any) -> None:
    cluster = FakeSharing([shared_node("w1", 100), shared_node("w2", 100, unschedulable=True)])
    shared = {
        "name": MEMORY.name,
        "gpu_count_resource": MEMORY.gpu_count_resource,
        "gpu_annotation": MEMORY.gpu_annotation,
    }
    result = run(cluster, nodes=["w1", "w2"], image="i", shared_resources=[shared], shares=[10, 15], scheduler_name="x")
    assert (result["changed"], result["ok"], result["skipped_nodes"]) == (False, True, ["w2"])
    assert (result["results"][0]["gpu_index"], result["results"][1]["gpu_index"]) == ("0", "")
    assert sorted(map(cluster.request_of, cluster.created)) == [10, 15, 101]
    assert {made["spec"]["schedulerName"] for made in cluster.created} == {"x"}


def test_check_mode(run: Any) -> None:
    cluster = ending("Succeeded", "Test PASSED")
    result = run(cluster, nodes=["w1"], image="i", _ansible_check_mode=True)
    assert (result["changed"], result["ok"], result["skipped_nodes"]) == (False, True, ["w1"])
    assert cluster.created == []


@pytest.mark.parametrize("check_mode", [True, False])
def test_removed_leftovers_are_a_change(run: Any, check_mode: bool) -> None:
    labels = {"app.kubernetes.io/name": "gpu-smoke-test", "app.kubernetes.io/managed-by": "gpu.kubernetes"}
    cluster = FakeCluster([], [pod("old", labels=labels, created="2020-01-01T00:00:00Z", activeDeadlineSeconds=60)])
    result = run(cluster, nodes=[], image="i", _ansible_check_mode=check_mode)
    assert (result["changed"], result["removed_leftovers"]) == (True, ["old"])
    assert bool(cluster.store_pods) is check_mode


@pytest.mark.parametrize("check_mode", [True, False])
def test_absent_removes_pods_of_any_age(run: Any, check_mode: bool) -> None:
    labels = {"app.kubernetes.io/name": "gpu-smoke-test", "app.kubernetes.io/managed-by": "gpu.kubernetes"}
    young = pod("young", labels=labels, created="2999-01-01T00:00:00Z", activeDeadlineSeconds=60)
    cluster = FakeCluster([node("w1", 1)], [young])
    result = run(cluster, state="absent", _ansible_check_mode=check_mode)
    assert (result["changed"], result["removed_leftovers"], result["results"]) == (True, ["young"], [])
    assert (bool(cluster.store_pods), cluster.created) == (check_mode, [])


def test_missing_nodes_or_image_is_refused(run: Any) -> None:
    assert "missing: nodes, image" in run(FakeCluster([]))["msg"]


def test_options_reach_the_pod(run: Any) -> None:
    cluster = ending("Succeeded", "fine")
    run(
        cluster,
        nodes=["w1"],
        image="reg/i:1",
        runtime_class="nvidia",
        expected_output="fine",
        namespace="gpu",
        resource_name="nvidia.com/gpu",
        image_pull_secrets=["s"],
    )
    (made,) = cluster.created
    assert made["metadata"]["namespace"] == "gpu"
    assert made["spec"]["runtimeClassName"] == "nvidia"
    assert made["spec"]["containers"][0]["image"] == "reg/i:1"
