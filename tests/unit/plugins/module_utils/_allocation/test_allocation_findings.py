# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings on nodes and pods, and nodes and pods without one."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.gpushare import GPU_COUNT, GPU_MEM, share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import read_dump

ASSIGNED, REQUEST = "ALIYUN_COM_GPU_MEM_ASSIGNED", "ALIYUN_COM_GPU_MEM_POD"
VISIBLE = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


def find(node: dict[str, Any], *pods: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = allocate(*read_dump([node, *pods]))["findings"]
    for finding in found:
        assert set(finding) == {"code", "object", "message"}
        assert finding["object"] in finding["message"]
        assert finding["message"].endswith(".")
        assert "; " in finding["message"]
    return found


@pytest.mark.parametrize(
    ("node", "codes"),
    [
        (share_node("w1"), []),
        (share_node("w1", 0, 1), ["leftover_gpu_count"]),
        (share_node("w1", None, 1), ["leftover_gpu_count"]),
        (share_node("w1", None, None, capacity={GPU_COUNT: "1"}), ["leftover_gpu_count"]),
        (share_node("w1", 0, 1, capacity={GPU_MEM: "16"}), ["leftover_gpu_count"]),
        (share_node("w1", 0, 0), []),
        (share_node("w1", None, None), []),
        (share_node("w1", 16, None), ["gpu_mem_without_count"]),
        (share_node("w1", 16, 0), ["gpu_mem_without_count"]),
        (share_node("w1", 16, 128), []),
        (share_node("w1", 16, 129), ["gpu_count_implausible"]),
        (share_node("w1", 0, 2 * 10**9), ["gpu_count_implausible"]),
        (share_node("w1", 16, 1, capacity={GPU_COUNT: "1E18"}), ["gpu_count_implausible"]),
        (share_node("w1", 16, 1, allocatable={"nvidia.com/gpu": "1"}), ["both_plugins"]),
        (share_node("w1", 16, 1, allocatable={"nvidia.com/gpu.shared": "4"}), ["both_plugins"]),
        # NVIDIA's plugin leaves these resources when it is removed.
        (share_node("w1", 16, 1, allocatable={"nvidia.com/mig-1g.5gb": "7"}), ["both_plugins"]),
        # Of the network operator.
        (share_node("w1", 16, 1, allocatable={"nvidia.com/hostdev": "8", "nvidia.com/gpunet": "1"}), []),
        (share_node("w1", 16, 1, allocatable={"nvidia.com/gpu": "0"}, capacity={"nvidia.com/gpu": "1"}), []),
        (share_node("w1", None, None, allocatable={"nvidia.com/gpu": "1"}), []),
    ],
)
def test_find_in_node_of_each_node(node: dict[str, Any], codes: list[str]) -> None:
    found = find(node)
    assert [finding["code"] for finding in found] == codes
    assert {finding["object"] for finding in found} <= {"w1"}


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (share_node("w1", 0, 1), "still has aliyun.com/gpu-count 1 without aliyun.com/gpu-mem; "),
        (share_node("w1", 0, 1, capacity={GPU_COUNT: "2"}), "still has aliyun.com/gpu-count 2 without "),
        (share_node("w1", 0, 2, capacity={GPU_COUNT: "1"}), "still has aliyun.com/gpu-count 2 without "),
        (
            share_node("w1", 0, 1, capacity={GPU_COUNT: "2", GPU_MEM: "16"}),
            "has aliyun.com/gpu-count 2 and none of its aliyun.com/gpu-mem 16 allocatable; ",
        ),
        (share_node("w1", 16, 0), "has aliyun.com/gpu-mem 16 without aliyun.com/gpu-count, "),
        (
            share_node("w1", 16, 1, allocatable={"nvidia.com/gpu": "1", "nvidia.com/gpu.shared": "4"}),
            "has the same GPUs as aliyun.com/gpu-mem and as nvidia.com/gpu, nvidia.com/gpu.shared, ",
        ),
    ],
)
def test_find_in_node_message_names_amounts(node: dict[str, Any], message: str) -> None:
    (finding,) = find(node)
    assert finding["message"].startswith(f"Node w1 {message}")


@pytest.mark.parametrize(
    ("pod", "codes"),
    [
        (share_pod("p"), []),
        (share_pod("p", index=None), ["pending_running"]),
        (share_pod("p", index=-1), ["pending_running"]),
        (share_pod("p", index=None, phase="Pending"), []),
        (share_pod("p", annotations={ASSIGNED: "false"}), ["unassigned_running"]),
        (share_pod("p", annotations={ASSIGNED: "true"}), []),
        (share_pod("p", annotations={ASSIGNED: "false"}, phase="Pending"), []),
        (share_pod("p", index=1), ["index_out_of_range"]),
        (share_pod("p", index=-2), ["index_out_of_range"]),
        (share_pod("p", index=1, phase="Pending"), ["index_out_of_range"]),
        (share_pod("p", amounts=(2, 1), annotations={REQUEST: "3"}), []),
        (share_pod("p", annotations={REQUEST: "4"}), ["pod_mem_mismatch"]),
        (share_pod("p", annotations={REQUEST: "many"}), ["pod_mem_mismatch"]),
        (share_pod("p", init=[{"name": "i", "env": VISIBLE}]), ["visible_devices_env"]),
    ],
)
def test_find_in_node_of_each_pod(pod: dict[str, Any], codes: list[str]) -> None:
    found = find(share_node("w1"), pod)
    assert [finding["code"] for finding in found] == codes
    assert {finding["object"] for finding in found} <= {"default/p"}


def test_find_in_node_without_plugin_checks_pods() -> None:
    found = find(share_node("w1", 0, 1), share_pod("p", index=None), share_pod("q"))
    assert [(finding["code"], finding["object"]) for finding in found] == [
        ("leftover_gpu_count", "w1"),
        ("pending_running", "default/p"),
    ]


def test_find_in_node_with_overcommitted_gpu_reports_it() -> None:
    node = share_node("w1", 32, 2)
    full = [share_pod("p", amounts=(10,)), share_pod("q", amounts=(6,))]
    assert find(node, *full) == []
    (finding,) = find(node, *full, share_pod("r", amounts=(1,)), share_pod("s", index=1))
    assert (finding["code"], finding["object"]) == ("gpu_overcommitted", "w1")
    assert finding["message"].startswith("Node w1 has 17 of 16 GiB of GPU 0 allocated; move pods to")
    # The other GPU is unhealthy, and the extender allocates the capacity of the node.
    assert find(share_node("w1", 16, 2, capacity={"aliyun.com/gpu-mem": "32"}), *full) == []
    (finding,) = find(node, *full, share_pod("r", amounts=(1,), deleted=True))
    assert "1 of them to pods that are terminating, which gpushare's extender no longer counts" in finding["message"]


def test_find_in_node_shortens_untrusted_text() -> None:
    (finding,) = find(share_node("w1"), share_pod("p", annotations={REQUEST: "\x1b[2J\n" * 1000}))
    assert len(finding["message"]) < 250
    assert finding["message"].isprintable()
