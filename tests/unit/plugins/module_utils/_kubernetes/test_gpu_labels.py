# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and expectations from a node's NVML facts."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.gpu_labels import (
    MIB,
    GpuFactsError,
    LabelOptions,
    build_gpu_labels,
    choose_config,
    count_expected,
    count_resources,
    format_label_value,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request


def gpu(name: Any = "Tesla T4", mib: int = 15360, lost: bool = False, mig: Any = None) -> dict[str, Any]:
    return {"name": name, "memory_total_bytes": mib * MIB, "lost": lost, "mig_mode": mig}


T4 = gpu()
A100 = gpu("NVIDIA A100-PCIE-40GB", 40960, mig="disabled")
#: A lost GPU, of which NVML and the bus report nothing.
LOST = {"name": None, "memory_total_bytes": None, "lost": True, "mig_mode": None}
SLICED = gpu("NVIDIA H100 80GB HBM3", 81559, mig="enabled")
BASE = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.count": "1",
    "nvidia.com/gpu.product": "Tesla-T4",
    "nvidia.com/gpu.machine": "unknown",
    "nvidia.com/gpu.memory": "15360",
    "nvidia.com/gpu.mode": "unknown",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/gpu.sharing-strategy": "none",
    "nvidia.com/mig.capable": "false",
    "accelerator": "tesla-t4",
}
UNNAMED = {
    name: value
    for name, value in BASE.items()
    if name not in ("nvidia.com/gpu.product", "nvidia.com/gpu.memory", "accelerator")
}
MIXED = {
    **BASE,
    "nvidia.com/gpu.count": "2",
    "nvidia.com/mig.capable": "true",
    "gpu-kubernetes/nvidia.product.Tesla-T4": "1",
    "gpu-kubernetes/nvidia.product.NVIDIA-A100-PCIE-40GB": "1",
}
MI210 = {"vendor": "amd", "device_id": "740f", "model": "AMD Instinct MI210"}
AMD = {"devices": [MI210], "vendors": ["amd"]}
AMD_LABELS = {
    "gpu-kubernetes/amd.present": "true",
    "gpu-kubernetes/amd.count": "1",
    "gpu-kubernetes/amd.device-id": "740f",
    "gpu-kubernetes/amd.product": "AMD-Instinct-MI210",
}


@pytest.mark.parametrize(
    ("gpus", "options", "labels"),
    [
        ([], {}, {}),
        ([], {"extra": {"a": "b"}}, {}),
        ([T4], {}, BASE),
        ([T4], {"accelerator": "t4", "extra": {"rack": 7}}, {**BASE, "accelerator": "t4", "rack": "7"}),
        ([T4, LOST], {}, BASE),
        ([LOST], {}, {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.count": "0"}),
        (
            [{"name": None, "memory_total_bytes": None}],
            {},
            UNNAMED,
        ),
        ([A100, T4], {}, MIXED),
        ([], {"options": LabelOptions(devices=AMD)}, {**AMD_LABELS, "accelerator": "amd-instinct-mi210"}),
        ([T4], {"options": LabelOptions(devices=AMD)}, {**BASE, **AMD_LABELS}),
        (
            [],
            {"options": LabelOptions(devices=AMD, accelerator_label=""), "extra": {"rack": 7}},
            {**AMD_LABELS, "rack": "7"},
        ),
        (
            [T4],
            {"accelerator": "t4", "options": LabelOptions(accelerator_label="example.com/gpu")},
            {**{name: value for name, value in BASE.items() if name != "accelerator"}, "example.com/gpu": "t4"},
        ),
    ],
)
def test_build_gpu_labels_from_facts(
    gpus: list[dict[str, Any]], options: dict[str, Any], labels: dict[str, str]
) -> None:
    assert build_gpu_labels({"gpus": gpus}, **options)[0] == labels


TWO = {"version": "v1", "sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}


@pytest.mark.parametrize(
    ("strategy", "planned", "request_", "replicas"),
    [
        ("", {}, Request(), 2),
        ("", {}, Request(replicas=4), 2),
        ("time_slicing", {}, Request(), 2),
        ("time_slicing", {}, Request(replicas=4), 4),
        ("exclusive", {}, Request(), 0),
        ("time_slicing", {"version": "v1"}, Request(), 0),
        # An invalid request is refused elsewhere, and gpushare has its own device plugin.
        ("mps", {}, Request(), 2),
        ("gpushare", {}, Request(), None),
    ],
)
def test_choose_config_by_plan_or_declared_strategy(
    strategy: str, planned: Any, request_: Request, replicas: int | None
) -> None:
    config = choose_config(strategy, planned, TWO, request_)
    sections = list(((config or {}).get("sharing") or {}).values())
    assert (config if config is None else sections[0]["resources"][0]["replicas"] if sections else 0) == replicas


def test_build_gpu_labels_of_mixed_gpus_warns() -> None:
    (warning,) = build_gpu_labels({"gpus": [A100, T4, A100]})[1]
    assert "2 x NVIDIA A100-PCIE-40GB (40960 MiB), 1 x Tesla T4 (15360 MiB)" in warning
    assert "smallest, Tesla-T4 with 15360 MiB" in warning
    assert build_gpu_labels({"gpus": [T4, T4, LOST]})[1] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("NVIDIA A100 80GB", "NVIDIA-A100-80GB"), (" a / b ", "a-b"), ("x" * 70, "x" * 63), ("(R)", "R"), ("", "")],
)
def test_format_label_value_replaces_invalid_characters(text: str, value: str) -> None:
    assert format_label_value(text) == value


def sharing(kind: str, replicas: int, **more: Any) -> dict[str, Any]:
    return {
        "version": "v1",
        "sharing": {kind: {"resources": [{"name": "nvidia.com/gpu", "replicas": replicas}], **more}},
    }


@pytest.mark.parametrize(
    ("gpus", "config", "resource", "count"),
    [
        ([], None, "nvidia.com/gpu", 0),
        ([T4, A100, gpu(lost=True)], {"version": "v1"}, "nvidia.com/gpu", 2),
        ([T4, A100], sharing("timeSlicing", 4), "nvidia.com/gpu", 8),
        ([T4], sharing("mps", 10), "nvidia.com/gpu", 10),
        ([T4], sharing("timeSlicing", 4, renameByDefault=True), "nvidia.com/gpu", 0),
        ([T4], sharing("timeSlicing", 4, renameByDefault=True), "nvidia.com/gpu.shared", 4),
        ([T4], {}, "nvidia.com/mig-1g.10gb", 0),
        ([T4, SLICED], {"flags": {"migStrategy": "mixed"}}, "nvidia.com/gpu", 1),
        ([T4, SLICED], {"flags": {"migStrategy": "none"}}, "nvidia.com/gpu", 2),
        ([T4], {"flags": {"migStrategy": "single"}}, "nvidia.com/gpu", 1),
        ([T4], {"flags": None, "sharing": None}, "nvidia.com/gpu", 1),
    ],
)
def test_count_expected_by_plugin_configuration(
    gpus: list[dict[str, Any]], config: Any, resource: str, count: int
) -> None:
    assert count_expected({"gpus": gpus}, config, resource) == count


DEVICES = [
    {"name": f"NVIDIA H100 80GB HBM3 MIG {profile}"} for profile in ("3g.40gb", "1g.10gb", "1g.10gb", "1g.10gb+me")
]


@pytest.mark.parametrize(
    ("strategy", "resource", "count"),
    [
        ("single", "nvidia.com/gpu", 4),
        ("mixed", "nvidia.com/gpu", 0),
        ("mixed", "nvidia.com/mig-1g.10gb", 2),
        ("mixed", "nvidia.com/mig-1g.10gb.me", 1),
        ("mixed", "nvidia.com/mig-3g.40gb", 1),
        ("mixed", "nvidia.com/mig-7g.80gb", 0),
        ("none", "nvidia.com/mig-1g.10gb", 0),
    ],
)
def test_count_expected_counts_mig_devices(strategy: str, resource: str, count: int) -> None:
    facts = {"source": "nvml", "gpus": [{**SLICED, "mig_devices": DEVICES}]}
    assert count_expected(facts, {"flags": {"migStrategy": strategy}}, resource) == count


@pytest.mark.parametrize(
    ("config", "counted"),
    [
        ({}, {"nvidia.com/gpu": 2}),
        (sharing("mps", 10), {"nvidia.com/gpu": 20}),
        (sharing("timeSlicing", 4, renameByDefault=True), {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 8}),
        ({"flags": {"migStrategy": "single"}}, {"nvidia.com/gpu": 5}),
        (
            {"flags": {"migStrategy": "mixed"}},
            {
                "nvidia.com/gpu": 1,
                "nvidia.com/mig-1g.10gb": 2,
                "nvidia.com/mig-1g.10gb.me": 1,
                "nvidia.com/mig-3g.40gb": 1,
            },
        ),
    ],
)
def test_count_resources_has_each_resource_of_a_configuration(config: Any, counted: dict[str, int]) -> None:
    facts = {"source": "nvml", "gpus": [T4, {**SLICED, "mig_devices": DEVICES}]}
    assert count_resources(facts, config) == counted


def test_count_expected_of_shared_mig_devices_multiplies_replicas() -> None:
    facts = {"source": "nvml", "gpus": [{**SLICED, "mig_devices": DEVICES}]}
    shared = {"resources": [{"name": "nvidia.com/mig-1g.10gb", "replicas": 3}]}
    config = {"flags": {"migStrategy": "mixed"}, "sharing": {"timeSlicing": shared}}
    assert count_expected(facts, config, "nvidia.com/mig-1g.10gb") == 6


@pytest.mark.parametrize(("strategy", "resource"), [("single", "nvidia.com/gpu"), ("mixed", "nvidia.com/mig-1g.10gb")])
def test_count_expected_of_mig_devices_without_nvml_raises(strategy: str, resource: str) -> None:
    with pytest.raises(GpuFactsError, match="set k8s_device_plugin_expected_gpus"):
        count_expected({"source": "nvidia_smi", "gpus": [SLICED]}, {"flags": {"migStrategy": strategy}}, resource)
