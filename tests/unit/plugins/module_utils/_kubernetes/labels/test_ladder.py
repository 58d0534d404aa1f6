# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labels belong to whom, with the rules of the role gpu_node_labels."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.ladder import (
    NFD_ANNOTATION,
    YieldRule,
    find_publishers,
    read_published,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.plan import plan_labels
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import RECORD_ANNOTATION
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

VARIABLES = yaml.safe_load(ROOT.joinpath("roles", "gpu_node_labels", "vars", "main.yml").read_text())
RULES = [YieldRule(**{"when": (), **rule}) for rule in VARIABLES["__gpu_node_labels_yield_to"]]
NVIDIA = [
    "nvidia.com/cuda.driver-version.full",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.replicas",
    "nvidia.com/mig-1g.10gb.count",
    "nvidia.com/mig.strategy",
]
PRESENT = "nvidia.com/gpu.present"
AMD = ["amd.com/gpu.product-name", "amd.com/gpu.vram"]
INTEL = ["gpu.intel.com/device.count"]
OTHERS = ["accelerator", "gpu-kubernetes/amd.present", "gpu-kubernetes/amd.product", "rack"]
DESIRED = [*NVIDIA, PRESENT, *AMD, *INTEL, *OTHERS]


@pytest.mark.parametrize(
    ("unmanaged", "published", "left"),
    [
        ([], "", {}),
        # Nobody publishes a label that an administrator has set by hand.
        ([PRESENT, "nvidia.com/gpu.family", "amd.com/gpu", "feature.node.kubernetes.io/pci-10de.present"], "", {}),
        # Node feature discovery alone: what it has recorded.
        ([], "cpu-model.family,pci-0302_10de.present", {}),
        (
            [],
            "accelerator, gpu-kubernetes/amd.product, nvidia.com/gpu.present",
            dict.fromkeys(["gpu-kubernetes/amd.product", PRESENT], "node feature discovery"),
        ),
        # GPU feature discovery, which does not write gpu.present; with and without its timestamp.
        (["nvidia.com/gfd.timestamp"], "", dict.fromkeys(NVIDIA, "GPU feature discovery")),
        ([], "nvidia.com/gpu.product,nvidia.com/gpu.count", dict.fromkeys(NVIDIA, "GPU feature discovery")),
        # Operators and labellers.
        (["nvidia.com/gpu.deploy.driver"], "", dict.fromkeys([*NVIDIA, PRESENT], "NVIDIA's GPU Operator")),
        (
            ["nvidia.com/gpu.deploy.driver", "nvidia.com/gfd.timestamp"],
            "",
            dict.fromkeys([*NVIDIA, PRESENT], "NVIDIA's GPU Operator"),
        ),
        (["beta.amd.com/gpu.vram.192G"], "", dict.fromkeys(AMD, "AMD's node labeller")),
        (["feature.node.kubernetes.io/amd-gpu"], "", dict.fromkeys(AMD, "AMD's node labeller")),
        (["feature.node.kubernetes.io/amd-vgpu"], "", dict.fromkeys(AMD, "AMD's node labeller")),
        ([], "gpu.intel.com/product", dict.fromkeys(INTEL, "Intel's rules for node feature discovery")),
        (
            ["intel.feature.node.kubernetes.io/gpu"],
            "",
            dict.fromkeys(INTEL, "Intel's rules for node feature discovery"),
        ),
    ],
)
def test_find_publishers_by_what_a_node_shows(unmanaged: list[str], published: str, left: dict[str, str]) -> None:
    node = {"metadata": {"name": "w", "annotations": {NFD_ANNOTATION: published}}}
    assert find_publishers(DESIRED, unmanaged, read_published(node), RULES) == left


def test_read_published_of_all_instances_with_full_names() -> None:
    annotations = {
        NFD_ANNOTATION: "cpu-model.family,nvidia.com/gpu.count",
        f"second.{NFD_ANNOTATION}": "vendor.io/a",
        "other": "b",
    }
    found = read_published({"metadata": {"annotations": annotations}})
    assert found == {"feature.node.kubernetes.io/cpu-model.family", "nvidia.com/gpu.count", "vendor.io/a"}
    assert read_published({"metadata": {}}) == frozenset()


def plan(labels: dict[str, str], record: Any, published: str, desired: dict[str, str]) -> Any:
    annotations = {NFD_ANNOTATION: published, RECORD_ANNOTATION: json.dumps({"me": record} if record else {})}
    node = {"metadata": {"name": "w", "labels": labels, "annotations": annotations}}
    return plan_labels(node, desired, "me", RULES, yield_to_nfd=True)


COUNT = "nvidia.com/gpu.count"
RECORD = {COUNT: {"set": "2", "was": None}}


@pytest.mark.parametrize(
    ("labels", "record", "published", "desired", "after", "recorded"),
    [
        # Before the first write, and after NFD has taken the label over with the same value.
        ({COUNT: "2"}, {}, COUNT, {COUNT: "2"}, {}, None),
        ({COUNT: "2"}, RECORD, COUNT, {COUNT: "2"}, {}, "removed"),
        # The undo leaves it to NFD, but for NFD it removes the label.
        ({COUNT: "2"}, RECORD, COUNT, {}, {}, "removed"),
        ({COUNT: "2"}, RECORD, "cpu-model.family", {}, {COUNT: None}, "removed"),
        # NFD has stopped publishing it and has removed it.
        ({}, {}, "", {COUNT: "2"}, {COUNT: "2"}, "written"),
    ],
)
def test_names_that_nfd_has_recorded_are_neither_set_nor_removed(
    labels: dict[str, str], record: Any, published: str, desired: Any, after: Any, recorded: str | None
) -> None:
    result = plan(labels, record, published, desired)
    assert result.after == after
    annotation = ((result.patch or {}).get("metadata") or {}).get("annotations")
    written = annotation and annotation[RECORD_ANNOTATION]
    assert {None: annotation is None, "removed": annotation and written is None, "written": bool(written)}[recorded]


@pytest.mark.parametrize(
    ("observed", "desired", "words"),
    [
        (
            {COUNT: "1"},
            {COUNT: "2"},
            "Node w: GPU feature discovery publishes nvidia.com/gpu.count=1, and the facts of the host give 2",
        ),
        ({COUNT: "2"}, {COUNT: "2"}, ""),
        ({"nvidia.com/gpu.memory": "1"}, {"nvidia.com/gpu.memory": "2"}, ""),
        ({}, {COUNT: "2"}, ""),
    ],
)
def test_difference_of_count_or_product_is_a_warning(observed: Any, desired: Any, words: str) -> None:
    result = plan({"nvidia.com/gfd.timestamp": "1", **observed}, {}, "", desired)
    assert (result.patch, result.yielded) == (None, list(desired))
    assert [warning[: len(words)] for warning in result.warnings] == ([words] if words else [])
    assert all("the label is not changed" in warning for warning in result.warnings)


def test_own_value_of_an_earlier_run_is_no_difference() -> None:
    result = plan({"nvidia.com/gfd.timestamp": "1", COUNT: "1"}, {COUNT: {"set": "1", "was": None}}, "", {COUNT: "2"})
    assert (result.after, result.warnings) == ({}, [])
