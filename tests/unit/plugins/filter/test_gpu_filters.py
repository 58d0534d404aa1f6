# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters pass facts to the functions and convert errors to Ansible's."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import (
    expected_gpus,
    feature_tools,
    gpu_labels,
    gpu_node_selectors,
)

LABELS = gpu_labels.FilterModule().filters()["gpu_labels"]
COUNT = expected_gpus.FilterModule().filters()["expected_gpus"]
T4 = {"name": "Tesla T4", "memory_total_bytes": 16106127360, "lost": False, "mig_mode": None}


def test_gpu_labels_returns_labels_and_warnings() -> None:
    result = LABELS({"gpus": [T4]}, accelerator="t4", extra={"a": "b"})
    assert (result["labels"]["accelerator"], result["labels"]["a"], result["warnings"]) == ("t4", "b", [])


def test_gpu_labels_by_declared_sharing_strategy() -> None:
    sharing = {"strategy": "time_slicing", "replicas": "4", "config": {"version": "v1"}}
    labels = LABELS({"gpus": [T4]}, accelerator_label="", sharing=sharing)["labels"]
    assert (labels["nvidia.com/gpu.product"], labels["nvidia.com/gpu.replicas"]) == ("Tesla-T4-SHARED", "4")
    assert "accelerator" not in labels
    own = LABELS({"gpus": [T4]}, sharing={"strategy": "gpushare"})
    assert "nvidia.com/gpu.replicas" not in own["labels"]
    assert "gpu-kubernetes/nvidia.product=Tesla-T4\n" in own["features"]


def test_gpu_node_selectors_needs_nodes() -> None:
    call = gpu_node_selectors.FilterModule().filters()["gpu_node_selectors"]
    node = {"metadata": {"name": "w1", "labels": {"nvidia.com/gpu.product": "Tesla-T4"}}}
    assert [row["nodes"] for row in call([node])] == [["w1"]]
    for invalid in (7, ["text"]):
        with pytest.raises(AnsibleFilterError, match="needs a list of nodes"):
            call(invalid)


def test_feature_tools_decides_on_what_was_found() -> None:
    call = feature_tools.FilterModule().filters()["feature_tools"]
    decided = call([[], [], []], ["gfd"], "nfd", "tools")
    assert [len(decided[name]) for name in ("conflicts", "stale", "leftovers")] == [1, 0, 0]
    with pytest.raises(AnsibleFilterError, match="cannot read its input"):
        call([], ["gfd"], "nfd", "tools")


@pytest.mark.parametrize(
    ("gpus", "vendors", "present"),
    [
        ([], ["amd"], ["gpu-kubernetes/amd.present"]),
        (
            [T4],
            ["amd", "intel", "nvidia"],
            ["gpu-kubernetes/amd.present", "gpu-kubernetes/intel.present", "nvidia.com/gpu.present"],
        ),
        ([T4], ["nvidia"], ["nvidia.com/gpu.present"]),
        ([], [], []),
    ],
)
def test_gpu_labels_of_other_vendors_are_those_that_their_plugins_select(gpus: Any, vendors: Any, present: Any) -> None:
    labels = LABELS({"gpus": gpus}, devices={"vendors": vendors})["labels"]
    assert sorted(name for name in labels if name.endswith(".present")) == present


def test_expected_gpus_counts_replicas() -> None:
    assert COUNT({"gpus": [T4, T4]}) == 2


@pytest.mark.parametrize("call", [LABELS, COUNT])
@pytest.mark.parametrize("facts", [None, "text", []])
def test_filters_without_facts_raise(call: Any, facts: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="run nvml_facts"):
        call(facts)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["a"], "gpu_node_labels_extra: labels are a dictionary of names and values, not a list"),
        ("text", "not the str 'text'"),
        ({"a": ["b"]}, "the value of label a is a list"),
    ],
)
@pytest.mark.parametrize("gpus", [[T4], []])
def test_gpu_labels_with_invalid_extra_labels_raises(extra: Any, words: str, gpus: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        LABELS({"gpus": gpus}, extra=extra)


@pytest.mark.parametrize("call", [LABELS, COUNT])
@pytest.mark.parametrize("gpus", ["text", [7], 7, {"a": 1}])
def test_filters_with_invalid_facts_raise(call: Any, gpus: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="facts"):
        call({"gpus": gpus})


@pytest.mark.parametrize(
    "config",
    [
        "text",
        ["a"],
        7,
        {"flags": "text"},
        {"sharing": ["x"]},
        {"sharing": {"timeSlicing": {"resources": 3}}},
        {"sharing": {"timeSlicing": {"resources": ["x"]}}},
    ],
)
def test_expected_gpus_with_invalid_configuration_raises(config: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="cannot read the facts or the plugin's configuration"):
        COUNT({"gpus": [T4]}, config)


@pytest.mark.parametrize("replicas", ["four", -1, 1.5, True, [4]])
def test_expected_gpus_with_invalid_replicas_raises(replicas: Any) -> None:
    shared = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": replicas}]}}}
    with pytest.raises(AnsibleFilterError, match="write a whole number"):
        COUNT({"gpus": [T4]}, shared)


def test_expected_gpus_with_mig_single_raises() -> None:
    sliced = {**T4, "mig_mode": "enabled"}
    with pytest.raises(AnsibleFilterError, match="set k8s_device_plugin_expected_gpus"):
        COUNT({"gpus": [sliced]}, {"flags": {"migStrategy": "single"}})


@pytest.mark.parametrize(("unit", "amount"), [("GiB", 2 * 14), ("MiB", 2 * 15359)])
def test_expected_gpus_of_memory_rounds_down_first_gpu(unit: str, amount: int) -> None:
    facts = {"gpus": [{"memory_total_bytes": 15360 * 2**20 - 1}, {"memory_total_bytes": 80 * 2**30}, {"lost": True}]}
    assert COUNT(facts, resource="aliyun.com/gpu-mem", unit=unit) == amount
    assert COUNT({"gpus": []}, resource="aliyun.com/gpu-mem", unit=unit) == 0


@pytest.mark.parametrize("resource", ["nano-gpu/gpu-percent", "elasticgpu.io/gpu-core"])
def test_expected_gpus_of_percent_counts_working_gpus(resource: str) -> None:
    assert COUNT({"gpus": [{}, {"lost": True}, {}]}, resource=resource) == 200


def test_expected_gpus_with_unknown_unit_raises() -> None:
    with pytest.raises(AnsibleFilterError, match="TiB"):
        COUNT({"gpus": [{"memory_total_bytes": 1}]}, resource="aliyun.com/gpu-mem", unit="TiB")
