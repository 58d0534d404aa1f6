# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: its parameters, results and failures."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing
from ansible_collections.gpu.kubernetes.plugins.modules import gpu_nodes_info


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, gpu_nodes_info)


def test_nodes_as_expected_are_ok(run: Any) -> None:
    result = run(FakeCluster([node("w1", 2)], [pod("a", on="w1", gpus=1)]))
    assert (result["changed"], result["ok"]) == (False, True)
    (entry,) = result["nodes"]
    assert (entry["name"], entry["expected"], entry["allocatable"], entry["allocated"]) == ("w1", None, 2, 1)


def test_other_gpu_resources_are_reported(run: Any) -> None:
    shared = node("w1")
    shared["status"]["allocatable"] = {
        "cpu": "8",
        "aliyun.com/gpu-mem": "31",
        "nvidia.com/gpu": "0",
        "a.example/gpu": "1",
    }
    cluster = FakeCluster([shared], [pod("a", on="w1", namespace="kube-system")])
    result = run(cluster, resource_name="nano-gpu/gpu-percent", expected={"w1": 100}, plugin_labels={})
    (entry,) = result["nodes"]
    assert entry["gpu_resources"] == {"aliyun.com/gpu-mem": 31, "nvidia.com/gpu": 0}
    assert entry["plugin_pod"] == ""
    assert entry["reason"].startswith("0 of 100 nano-gpu/gpu-percent allocatable; check the pod of its device plugin")


@pytest.mark.parametrize("count", [4, "4"])
def test_nodes_not_as_expected_without_wait_do_not_fail(run: Any, count: Any) -> None:
    result = run(FakeCluster([node("w1", 2)]), expected={"w1": count})
    assert "failed" not in result
    assert result["ok"] is False
    assert result["nodes"][0]["expected"] == 4


def test_wait_after_timeout_fails_with_node_and_reason(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    monkeypatch.setattr(gpu_nodes_info, "Timing", lambda: Timing(clock, clock.sleep))
    result = run(FakeCluster([node("w1")]), expected={"w1": 1, "w9": 1}, wait=True, wait_timeout=9)
    assert result["failed"] is True
    assert result["msg"].startswith("After 9 s, the nodes lack allocatable nvidia.com/gpu: node w1: 0 of 1")
    assert "node w9: is not in the cluster" in result["msg"]
    assert [entry["ok"] for entry in result["nodes"]] == [False, False]


@pytest.mark.parametrize(
    ("units", "ok", "reason"),
    [
        ({"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 8}, True, ""),
        ({"nvidia.com/gpu": 2, "nvidia.com/gpu.shared": 8}, False, "0 of 2 nvidia.com/gpu allocatable"),
        (
            {"nvidia.com/gpu": 1, "nvidia.com/gpu.shared": 9},
            False,
            "0 of 1 nvidia.com/gpu allocatable and 8 of 9 nvidia",
        ),
    ],
)
def test_nodes_can_differ_in_their_resources(run: Any, units: Any, ok: bool, reason: str) -> None:
    shared = node("w1")
    shared["status"]["capacity"] = shared["status"]["allocatable"] = {"nvidia.com/gpu.shared": "8"}
    result = run(FakeCluster([shared, node("w2", 2)]), expected={"w1": units, "w2": 2}, plugin_labels={})
    [first, second] = result["nodes"]
    assert (result["ok"], first["expected"], first["allocatable"], second["ok"]) == (ok, sum(units.values()), 8, True)
    assert first["reason"].startswith(reason)


def test_expected_with_text_fails(run: Any) -> None:
    result = run(FakeCluster([]), expected={"w1": "many"})
    assert "whole number" in result["msg"]


def test_container_runtime_of_kubelet_is_reported(run: Any) -> None:
    reporting, silent = node("w1"), node("w2")
    reporting["status"]["nodeInfo"] = {"containerRuntimeVersion": "cri-o://1.33.0"}
    result = run(FakeCluster([reporting, silent]), expected={"w1": 0, "w2": 0, "w9": 0})
    assert [entry["container_runtime_version"] for entry in result["nodes"]] == ["cri-o://1.33.0", "", ""]
