# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels of GPUs of AMD and Intel, also as a file for node feature discovery, and how pods select them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fakes.gpu_sysfs import AmdGpu, IntelCard, amd_gpus, amd_tree, intel_cards, intel_tree

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus.devices import read
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.devices import (
    build_device_labels,
    build_product_counts,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.features import render_features
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.plan import check_labels
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.selectors import list_selectors

OWN = "gpu-kubernetes/"


def test_amd_labels_of_a_host(tmp_path: Path) -> None:
    amd_tree(tmp_path, amd_gpus(2, device="74a1", style="CPX/NPS4"))
    labels = build_device_labels(
        {**read(str(tmp_path)), "drivers": {"amdgpu": {"version": "6.14.14"}}}, vendor_prefix=True
    )
    check_labels("w", labels)
    assert {name: value for name, value in labels.items() if name.startswith(OWN)} == {
        f"{OWN}amd.{name}": value
        for name, value in {
            "present": "true",
            "count": "2",
            "product": "AMD-Instinct-MI300X-OAM",
            "memory": "196608",
            "device-id": "74a1",
            "driver": "amdgpu",
            "driver-version": "6.14.14",
            "family": "AI",
            "gfx": "gfx942",
            "compute-units": "304",
            "partition-style": "cpx_nps4",
        }.items()
    }
    # In the form of AMD's labeller.
    assert {name: value for name, value in labels.items() if not name.startswith(OWN)} == {
        "amd.com/gpu.cu-count": "304",
        "amd.com/gpu.device-id": "74a1",
        "amd.com/gpu.family": "AI",
        "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
        "amd.com/gpu.simd-count": "1216",
        "amd.com/gpu.vram": "192G",
    }


def test_different_gpus_have_a_count_by_product(tmp_path: Path) -> None:
    amd_tree(tmp_path, [AmdGpu("0000:63:00.0"), AmdGpu("0000:83:00.0", "740f"), AmdGpu("0000:a3:00.0", "740f")])
    labels = build_device_labels(read(str(tmp_path)), vendor_prefix=True)
    check_labels("w", labels)
    assert labels[f"{OWN}amd.product"] == "AMD-Instinct-MI210"
    assert labels[f"{OWN}amd.product.AMD-Instinct-MI210"] == "2"
    assert labels[f"{OWN}amd.product.AMD-Instinct-MI300X-OAM"] == "1"
    assert (labels["amd.com/gpu.device-id.740f"], labels["amd.com/gpu.device-id.74a1"]) == ("2", "1")
    assert "amd.com/gpu.device-id" not in labels


def test_intel_labels_of_a_host(tmp_path: Path) -> None:
    intel_tree(tmp_path, intel_cards("xe", device="0bda"))
    facts = read(str(tmp_path))
    labels = build_device_labels(facts, vendor_prefix=True)
    check_labels("w", labels)
    assert (labels[f"{OWN}intel.present"], labels[f"{OWN}intel.count"], labels[f"{OWN}intel.driver"]) == (
        "true",
        "1",
        "xe",
    )
    assert labels["gpu.intel.com/device.count"] == "1"
    assert not [name for name in build_device_labels(facts) if not name.startswith(OWN)]


def test_unserved_gpus_have_no_labels() -> None:
    device = {"vendor": "intel", "device_id": "7d67", "integrated": True}
    board = {"vendor": "intel", "device_id": "e20b", "integrated": False}
    assert build_device_labels({}) == {}
    # The vendors of a host may be declared.
    assert build_device_labels({"devices": [], "vendors": ["nvidia", "amd"]}) == {f"{OWN}amd.present": "true"}
    assert build_device_labels({"devices": [device], "vendors": []}) == {}
    labels = build_device_labels({"devices": [device, board], "vendors": ["intel"]})
    assert (labels[f"{OWN}intel.count"], labels[f"{OWN}intel.product"]) == ("1", "intel-e20b")


def test_gpus_that_are_not_offered_do_not_count(tmp_path: Path) -> None:
    # Virtual functions are offered instead of their GPU.
    intel_tree(tmp_path, [IntelCard("0000:03:00.0", device="56c0", vfs=4)])
    assert build_device_labels(read(str(tmp_path)))[f"{OWN}intel.count"] == "4"
    # A virtual machine has the first one.
    guest = {"vendor": "amd", "driver": "vfio-pci", "partitions": 1, "device_id": "740f", "memory_bytes": 1}
    board = {**guest, "driver": "amdgpu", "memory_bytes": 2}
    labels = build_device_labels({"devices": [guest, board], "vendors": ["amd"]})
    assert (labels[f"{OWN}amd.count"], labels[f"{OWN}amd.driver"]) == ("1", "amdgpu")


def test_build_product_counts_cuts_long_names() -> None:
    labels = build_product_counts("nvidia", ["x" * 80, "Tesla T4", "Tesla T4", ""])
    check_labels("w", labels)
    assert labels[f"{OWN}nvidia.product.Tesla-T4"] == "2"
    assert build_product_counts("nvidia", ["Tesla T4", "Tesla T4"]) == {}


def test_render_features_has_own_prefix_only() -> None:
    text = render_features(
        {
            "nvidia.com/gpu.product": "Tesla-T4",
            "nvidia.com/cuda.driver-version.full": "570.1",
            "accelerator": "t4",
            "gpu-kubernetes/amd.count": "1",
            "example.com/rack": "7",
            "node-role.kubernetes.io/gpu": "",
            "removed": None,
        }
    )
    assert text.splitlines()[1:] == [
        "example.com/rack=7",
        "gpu-kubernetes/accelerator=t4",
        "gpu-kubernetes/amd.count=1",
        "gpu-kubernetes/nvidia.cuda.driver-version.full=570.1",
        "gpu-kubernetes/nvidia.product=Tesla-T4",
    ]
    assert (text[:2], text[-1]) == ("# ", "\n")


def test_list_selectors_has_a_row_for_each_product() -> None:
    def node(name: str, **labels: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": {key.replace("__", "/"): value for key, value in labels.items()}}}

    labels = {
        "nvidia.com/gpu.product": "Tesla-T4",
        f"{OWN}amd.product": "MI210",
        "amd.com/gpu.product-name": "AMD_MI210",
    }
    rows = list_selectors(
        [
            node("b", **{"nvidia.com/gpu.product": "Tesla-T4"}),
            node("a", **labels),
            node("c", **{"amd.com/gpu.product-name": "AMD_MI300X"}),
            node("cpu"),
        ]
    )
    assert [(row["vendor"], row["product"], row["nodes"], row["node_selector"]) for row in rows] == [
        ("amd", "AMD_MI300X", ["c"], {"amd.com/gpu.product-name": "AMD_MI300X"}),
        ("amd", "MI210", ["a"], {f"{OWN}amd.product": "MI210"}),
        ("nvidia", "Tesla-T4", ["a", "b"], {"nvidia.com/gpu.product": "Tesla-T4"}),
    ]
