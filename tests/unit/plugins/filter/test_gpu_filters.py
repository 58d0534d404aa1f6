# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters hand facts to the logic and turn its errors into Ansible's."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import expected_gpus, gpu_labels

LABELS = gpu_labels.FilterModule().filters()["gpu_labels"]
COUNT = expected_gpus.FilterModule().filters()["expected_gpus"]
T4 = {"name": "Tesla T4", "memory_total_bytes": 16106127360, "lost": False, "mig_mode": None}


def test_labels_and_warnings() -> None:
    result = LABELS({"gpus": [T4]}, accelerator="t4", extra={"a": "b"})
    assert (result["labels"]["accelerator"], result["labels"]["a"], result["warnings"]) == ("t4", "b", [])


def test_count() -> None:
    assert COUNT({"gpus": [T4, T4]}) == 2


@pytest.mark.parametrize("call", [LABELS, COUNT])
@pytest.mark.parametrize("facts", [None, "text", []])
def test_no_facts(call: Any, facts: Any) -> None:
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
def test_extra_labels_that_are_none(extra: Any, words: str, gpus: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        LABELS({"gpus": gpus}, extra=extra)


@pytest.mark.parametrize("call", [LABELS, COUNT])
@pytest.mark.parametrize("gpus", ["text", [7], 7, {"a": 1}])
def test_facts_of_a_wrong_shape(call: Any, gpus: Any) -> None:
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
def test_a_configuration_of_a_wrong_shape(config: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="cannot read the facts or the plugin's configuration"):
        COUNT({"gpus": [T4]}, config)


@pytest.mark.parametrize("replicas", ["four", -1, 1.5, True, [4]])
def test_replicas_that_are_no_number(replicas: Any) -> None:
    shared = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": replicas}]}}}
    with pytest.raises(AnsibleFilterError, match="write a whole number"):
        COUNT({"gpus": [T4]}, shared)


def test_what_cannot_be_told() -> None:
    sliced = {**T4, "mig_mode": "enabled"}
    with pytest.raises(AnsibleFilterError, match="set k8s_device_plugin_expected_gpus"):
        COUNT({"gpus": [sliced]}, {"flags": {"migStrategy": "single"}})


@pytest.mark.parametrize(("unit", "amount"), [("GiB", 2 * 14), ("MiB", 2 * 15359)])
def test_memory_is_that_of_the_first_gpu_rounded_down(unit: str, amount: int) -> None:
    facts = {"gpus": [{"memory_total_bytes": 15360 * 2**20 - 1}, {"memory_total_bytes": 80 * 2**30}, {"lost": True}]}
    assert COUNT(facts, resource="aliyun.com/gpu-mem", unit=unit) == amount
    assert COUNT({"gpus": []}, resource="aliyun.com/gpu-mem", unit=unit) == 0


@pytest.mark.parametrize("resource", ["nano-gpu/gpu-percent", "elasticgpu.io/gpu-core"])
def test_each_working_gpu_has_a_hundred_parts(resource: str) -> None:
    assert COUNT({"gpus": [{}, {"lost": True}, {}]}, resource=resource) == 200


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(AnsibleFilterError, match="TiB"):
        COUNT({"gpus": [{"memory_total_bytes": 1}]}, resource="aliyun.com/gpu-mem", unit="TiB")
