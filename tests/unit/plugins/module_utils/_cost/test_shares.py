# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a unit of each resource is of a GPU."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import extract_pod
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import Held
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.shares import (
    Shares,
    build_state,
    compute_slice,
    extract_gpus,
    name_product,
)

GPU, MEM = "nvidia.com/gpu", "aliyun.com/gpu-mem"
A100 = "NVIDIA-A100-SXM4-40GB"


def build_node(name: str = "n1", product: str = A100, count: int | None = 8, **amounts: Any) -> dict[str, Any]:
    """A node with labels and amounts; underscores in names of resources stand for what a keyword cannot have."""
    given = {key.replace("__", "/").replace("_", "."): str(value) for key, value in amounts.items()}
    node = share_node(name, None, None, capacity=given, allocatable=given)
    labels = {"nvidia.com/gpu.product": product, **({"nvidia.com/gpu.count": str(count)} if count is not None else {})}
    node["metadata"]["labels"] = {key: value for key, value in labels.items() if value}
    return node


def with_label(node: dict[str, Any], **labels: str) -> dict[str, Any]:
    node["metadata"]["labels"].update(
        {f"nvidia.com/{key.replace('__', '-').replace('_', '.')}": value for key, value in labels.items()}
    )
    return node


# The node -> its GPUs, and the GPUs of a unit.
NODES: dict[str, tuple[dict[str, Any], float, dict[str, float | None]]] = {
    "whole GPUs": (build_node(nvidia_com__gpu=8), 8, {GPU: 1}),
    "replicas": (build_node(nvidia_com__gpu=32), 8, {GPU: 0.25}),
    "renamed replicas": (build_node(nvidia_com__gpu_shared=16), 8, {"nvidia.com/gpu.shared": 0.5}),
    "no label of the number": (build_node(count=None, nvidia_com__gpu=8), 8, {GPU: 1}),
    "an implausible label": (build_node(count=5000, nvidia_com__gpu=2), 2, {GPU: 1}),
    "gpushare": (share_node("n1", 320, 4), 4, {MEM: 1 / 80}),
    "gpushare without a number": (share_node("n1", 320, None), 0, {MEM: None}),
    "nano-gpu": (build_node(count=None, **{"nano-gpu__gpu-percent": 200}), 2, {"nano-gpu/gpu-percent": 0.01}),
    "slices by profile": (
        build_node(count=2, **{"nvidia_com__mig-1g_5gb": 4, "nvidia_com__mig-3g_20gb": 2}),
        2,
        {"nvidia.com/mig-1g.5gb": 1 / 7, "nvidia.com/mig-3g.20gb": 3 / 7},
    ),
    "slices of an A30": (
        build_node("n1", "NVIDIA-A30", 1, **{"nvidia_com__mig-1g_6gb": 4}),
        1,
        {"nvidia.com/mig-1g.6gb": 0.25},
    ),
    "slices and whole GPUs": (
        build_node(count=2, nvidia_com__gpu=1, **{"nvidia_com__mig-1g_5gb": 7}),
        2,
        {GPU: 1, "nvidia.com/mig-1g.5gb": 1 / 7},
    ),
    "slices as nvidia.com/gpu": (
        with_label(build_node(count=8, nvidia_com__gpu=56), device__plugin_config="mig-0123abcd"),
        8,
        {GPU: 1 / 7},
    ),
    # GPU feature discovery counts the slices.
    "slices with the labels of GPU feature discovery": (
        build_node("n1", f"{A100}-MIG-1g.5gb", 56, nvidia_com__gpu=56),
        8,
        {GPU: 1 / 7},
    ),
}


@pytest.mark.parametrize(("node", "gpus", "shares"), NODES.values(), ids=NODES)
def test_units_of_a_node(node: dict[str, Any], gpus: float, shares: dict[str, float | None]) -> None:
    found = extract_gpus(node)
    assert found is not None
    assert found.gpus == pytest.approx(gpus)
    assert {name: share for name, (share, _unit) in found.shares.items()} == pytest.approx(shares)


def test_partitions_of_another_vendor_are_parts_of_its_product() -> None:
    node = build_node(product="", count=None, amd_com__gpu=16)
    node["metadata"]["labels"] = {"gpu-kubernetes/amd.product": "MI300X", "gpu-kubernetes/amd.count": "2"}
    found = extract_gpus(node)
    assert found is not None
    assert (found.product, found.gpus, found.shares["amd.com/gpu"][0]) == ("MI300X", 2, 1 / 8)


def test_unhealthy_gpu_still_counts() -> None:
    node = build_node(nvidia_com__gpu=8)
    node["status"]["allocatable"][GPU] = "7"
    found = extract_gpus(node)
    assert found is not None
    assert (found.gpus, found.shares[GPU][0]) == (8, 1)


def test_node_without_gpus_is_none() -> None:
    assert extract_gpus(share_node("n1", None, None)) is None


@pytest.mark.parametrize(
    ("text", "product"),
    [
        ("NVIDIA A100-SXM4-40GB", A100),
        (f"{A100}-SHARED", A100),
        (f"{A100}-MIG-3g.20gb-SHARED", A100),
        ("Tesla T4", "Tesla-T4"),
        ("", "unknown"),
        ("=cmd|' /C calc'!A0", "cmd-C-calc-A0"),
    ],
)
def test_name_product(text: str, product: str) -> None:
    assert name_product(text) == product


@pytest.mark.parametrize(
    ("profile", "product", "part"),
    [
        ("7g.40gb", A100, 1),
        ("1c.3g.20gb", A100, 1 / 7),
        ("1g.10gb.me", A100, 1 / 7),
        ("4g.24gb", "NVIDIA-A30", 1),
        ("4g.20gb", "NVIDIA-A300X", 4 / 7),
        ("2g.48gb", "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 0.5),
        ("big", A100, None),
    ],
)
def test_compute_slice(profile: str, product: str, part: float | None) -> None:
    assert compute_slice(profile, product) == (None if part is None else pytest.approx(part))


def test_state_sums_the_pods_of_a_namespace() -> None:
    nodes = [extract_gpus(share_node("w1", 16, 1)), extract_gpus(build_node("n1", nvidia_com__gpu=8))]
    two = share_pod("two", on="n1", amounts=(None,), index=None, namespace="b")
    two["spec"]["containers"][0]["resources"] = {"limits": {GPU: "2"}}
    pods = [share_pod("a"), share_pod("b", amounts=(5,)), two, share_pod("c", phase="Succeeded"), share_pod("d", on="")]
    shares = Shares([node for node in nodes if node])
    state = build_state(shares, [pod for pod in map(extract_pod, pods) if pod])
    assert state.gpus == {"n1": {A100: 8}, "w1": {"unknown": 1}}
    assert state.held == [Held("b", "n1", GPU, "GPUs", 2, 2), Held("default", "w1", MEM, "GiB", 8, 0.5)]
    assert [note.partition(":")[0] for note in shares.list_notes()] == ["Without the label nvidia.com/gpu.product"]


@pytest.mark.parametrize(
    ("gpu_mem", "unit", "gib"), [(16384, "", 8), (16, "", 8192), (16, "MiB", 8), (160, "GiB", 8192)]
)
def test_memory_is_in_gib(gpu_mem: int, unit: str, gib: float) -> None:
    node = extract_gpus(share_node("w1", gpu_mem, 1))
    assert node
    held = Shares([node], unit).hold("a", "w1", MEM, 8192)
    assert held is not None
    assert (held.unit, held.units, held.gpus) == ("GiB", gib, 8192 / gpu_mem)


@pytest.mark.parametrize(
    ("node", "resource", "expected", "note"),
    [
        ("gone", GPU, Held("a", "gone", GPU, "GPUs", 2, 2), "Not in the cluster any more: gone."),
        (
            "gone",
            "nvidia.com/mig-1g.5gb",
            Held("a", "gone", "nvidia.com/mig-1g.5gb", "slices", 2, 2 / 7),
            "Not in the cluster",
        ),
        (
            "gone",
            "nano-gpu/gpu-percent",
            Held("a", "gone", "nano-gpu/gpu-percent", "percent", 2, 0.02),
            "Not in the cluster",
        ),
        ("gone", MEM, None, f"In no sum, because the part of a GPU is not known: {MEM} on gone."),
        ("n1", "elasticgpu.io/gpu-memory", None, "In no sum"),
        ("n1", "nvidia.com/mig-1g.5gb.shared", None, "In no sum"),
    ],
)
def test_assumptions_are_noted(node: str, resource: str, expected: Held | None, note: str) -> None:
    known = extract_gpus(build_node("n1", nvidia_com__gpu=8))
    shares = Shares([known] if known else [])
    assert shares.hold("a", node, resource, 2) == expected
    assert any(each.startswith(note) for each in shares.list_notes())
