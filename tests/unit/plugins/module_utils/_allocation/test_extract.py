# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The values that are extracted from nodes and pods."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.gpushare import GPU_COUNT, GPU_MEM, share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import (
    NodeShare,
    extract_node,
    extract_pod,
    parse_whole,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.resources import Offer

ALLOCATION = "scheduler.framework.gpushare.allocation"


def test_extract_node_returns_gpus() -> None:
    node = share_node(
        "w1", 32, 2, capacity={GPU_MEM: "40"}, allocatable={"nvidia.com/gpu": "2", "nvidia.com/mig-1g.5gb": "0"}
    )
    offers = (Offer("nvidia.com/gpu", 2, "devices", 0),)
    assert extract_node(node) == NodeShare("w1", "10.0.0.1", 32, 2, 40, 2, offers)
    assert extract_node(node).nvidia == ["nvidia.com/gpu"]


@pytest.mark.parametrize("node", [{}, {"metadata": None, "status": None}, {"status": {"addresses": None}}])
def test_extract_node_without_status_is_empty(node: dict[str, Any]) -> None:
    assert extract_node(node) == NodeShare("", "", 0, 0, 0, 0, ())


def test_extract_pod_returns_share() -> None:
    notes = {"ALIYUN_COM_GPU_MEM_POD": "7", "ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}
    pod = extract_pod(
        share_pod("p", amounts=(3, None, "4000m"), index=1, annotations=notes, deleted=True, namespace="ns")
    )
    assert pod is not None
    assert (pod.node, pod.namespace, pod.name, pod.phase) == ("w1", "ns", "p", "Running")
    assert (pod.request, pod.amounts, pod.annotated) == (7, ((1, 7),), "7")
    assert pod.terminating
    assert pod.unassigned


@pytest.mark.parametrize(
    "pod",
    [
        share_pod("unscheduled", on=""),
        share_pod("succeeded", phase="Succeeded"),
        share_pod("failed", phase="Failed"),
        share_pod("none", amounts=(None,)),
        share_pod("zero", amounts=(0,)),
        share_pod("init", amounts=(None,), init=[{"name": "i", "resources": {"limits": {GPU_MEM: "3"}}}]),
        share_pod("annotated", amounts=(None,), annotations={ALLOCATION: '{"0": {"0": 3}}'}),
        {},
        {"spec": {"nodeName": "w1", "containers": None}},
    ],
    ids=lambda pod: str((pod.get("metadata") or {}).get("name")),
)
def test_extract_pod_without_share_is_none(pod: dict[str, Any]) -> None:
    assert extract_pod(pod) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", ""])
def test_extract_pod_of_other_phase_holds_its_request(phase: str) -> None:
    assert extract_pod(share_pod("p", phase=phase)) is not None


@pytest.mark.parametrize(
    ("index", "amounts"),
    [
        ("0", ((0, 3),)),
        ("5", ((5, 3),)),
        ("-2", ((-2, 3),)),
        ("-1", ((-1, 3),)),
        (None, ((-1, 3),)),
        ("", ((-1, 3),)),
        ("0x1", ((-1, 3),)),
        (" 1", ((-1, 3),)),
        ("1.0", ((-1, 3),)),
        ("\u0661", ((-1, 3),)),
        ("9" * 5000, ((-1, 3),)),
    ],
)
def test_extract_pod_reads_index(index: Any, amounts: Any) -> None:
    pod = extract_pod(share_pod("p", index=index))
    assert pod is not None
    assert pod.amounts == amounts


@pytest.mark.parametrize(
    ("allocation", "amounts"),
    [
        ('{"0": {"2": 4}}', ((2, 4),)),
        ('{"0": {"2": 4, "0": 1}, "1": {"2": 2}}', ((0, 1), (2, 6))),
        ('{"0": {"-1": 4}}', ((-1, 4),)),
        ('{"0": null, "1": {"1": 2}}', ((1, 2),)),
        # From here on, the annotation has no allocation, and the index is used.
        ("{}", ((1, 3),)),
        ('{"0": {}}', ((1, 3),)),
        ('{"main": {"0": 4}}', ((1, 3),)),
        ('{"0": {"0": 4}, "1": {"gpu": 4}}', ((1, 3),)),
        ('{"0": {"0": 4}, "1": {"0": "4"}}', ((1, 3),)),
        ('{"0": {"0": 4.5}}', ((1, 3),)),
        ('{"0": {"0": true}}', ((1, 3),)),
        ('{"0": {"0": 1' + "0" * 30 + "}}", ((1, 3),)),
        ('{"0": [4]}', ((1, 3),)),
        ('{"0": 4}', ((1, 3),)),
        ("[4]", ((1, 3),)),
        ("null", ((1, 3),)),
        ("{", ((1, 3),)),
        ("[" * 100_000, ((1, 3),)),
    ],
)
def test_extract_pod_prefers_valid_allocation_to_index(allocation: str, amounts: Any) -> None:
    pod = extract_pod(share_pod("p", index=1, annotations={ALLOCATION: allocation}))
    assert pod is not None
    assert pod.amounts == amounts
    assert pod.request == 3


def env(*values: Any) -> list[dict[str, Any]]:
    return [{"name": "NVIDIA_VISIBLE_DEVICES", **value} for value in values]


@pytest.mark.parametrize(
    ("shared", "variables", "result"),
    [
        (True, env({"value": "all"}), True),
        (True, env({"value": "none"}), True),
        (True, env({"valueFrom": {"fieldRef": {}}}), True),
        (True, [{"name": "OTHER", "value": "all"}], False),
        (True, None, False),
        (False, env({"value": "all"}), True),
        # Another container that hides all GPUs from itself is accepted; the last of two values is used.
        (False, env({"value": "void"}), False),
        (False, env({}), False),
        (False, env({"value": "all"}, {"value": "none"}), False),
        (False, env({"valueFrom": {"fieldRef": {}}}), True),
    ],
)
@pytest.mark.parametrize("kind", ["containers", "initContainers"])
def test_extract_pod_finds_overriding_containers(kind: str, shared: bool, variables: Any, result: bool) -> None:
    pod = share_pod("p", init=[{"name": "i"}])
    container = {"name": "x", "env": variables}
    if shared:
        container["resources"] = {"limits": {GPU_MEM: "1"}}
    pod["spec"][kind].append(container)
    found = extract_pod(pod)
    assert found is not None
    assert found.overriding == (("x",) if result else ())


def test_extract_pod_is_small() -> None:
    pod = share_pod("p")
    pod["metadata"]["managedFields"] = ["x" * 4000]
    assert len(json.dumps(extract_pod(pod))) < 200


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("-3", -3), ("+3", 3), ("", None), (None, None), (3, None)])
def test_parse_whole_of_each_text(text: Any, number: int | None) -> None:
    assert parse_whole(text) == number


def test_extract_node_counts_allocatable() -> None:
    node = share_node("w1", 16, None, capacity={GPU_COUNT: "2"})
    assert (extract_node(node).gpu_count, extract_node(node).gpu_count_capacity) == (0, 2)
