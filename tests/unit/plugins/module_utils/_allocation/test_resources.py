# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The allocation of each sharing strategy by node and resource, and its table."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import read_dump
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.render import GPU_NOTE, NOTE, render_text
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import LABEL, Request, build_config

GPU, RENAMED = "nvidia.com/gpu", "nvidia.com/gpu.shared"
SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
PERCENT, CORE, MEMORY = "nano-gpu/gpu-percent", "elasticgpu.io/gpu-core", "elasticgpu.io/gpu-memory"
COUNT = "nvidia.com/gpu.count"


def config(strategy: str, **request: Any) -> str:
    """The label of a node with a configuration of its own."""
    name = build_config({}, STRATEGIES[strategy], Request(**request)).name
    assert name
    return name


def node(name: str, amounts: dict[str, int], gpus: Any = None, label: str = "", **more: Any) -> dict[str, Any]:
    """A node with these allocatable amounts, which are its capacity too unless given."""
    given = {resource: str(units) for resource, units in amounts.items()}
    labels = more.pop("labels", {})
    made = share_node(name, None, None, allocatable=given, capacity=more.pop("capacity", given), **more)
    made["metadata"]["labels"] = {
        **({COUNT: str(gpus)} if gpus is not None else {}),
        **({LABEL: label} if label else {}),
        **labels,
    }
    return made


def pod(name: str, *limits: dict[str, Any], on: str = "w1", **more: Any) -> dict[str, Any]:
    """A pod with a container for each of the limits."""
    made = share_pod(name, on, [None] * len(limits), None, **more)
    for container, amounts in zip(made["spec"]["containers"], limits):
        container["resources"] = {"limits": {resource: str(units) for resource, units in amounts.items()}}
    return made


def compute(*objects: dict[str, Any], **options: Any) -> dict[str, Any]:
    return allocate(*read_dump(list(objects)), **options)


def summarize(row: dict[str, Any]) -> tuple[str, str, str, int]:
    return row["resource"], f"{row['allocated']}/{row['total']}", row["unit"], row["gpu_count"]


#: A node and its pods, and its resources with their units and the GPUs that these are of; by strategy, before the first hyphen.
CASES: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[tuple[str, str, str, int]]]] = {
    "exclusive": (node("w1", {GPU: 8}, 8), [pod("a", {GPU: 2})], [(GPU, "2/8", "GPUs", 8)]),
    "exclusive-by-configuration": (
        node("w1", {GPU: 2}, label="exclusive-0123abcd"),
        [pod("a", {GPU: 1})],
        [(GPU, "1/2", "GPUs", 0)],
    ),
    "time_slicing": (
        node("w1", {GPU: 8}, 2, config("time_slicing", replicas=4)),
        [pod("a", {GPU: 1}), pod("b", {GPU: 1})],
        [(GPU, "2/8", "replicas", 2)],
    ),
    "time_slicing-renamed": (
        node("w1", {GPU: 0, RENAMED: 8}, 2, config("time_slicing", replicas=4, rename=True)),
        [pod("a", {RENAMED: 1})],
        [(RENAMED, "1/8", "replicas", 2)],
    ),
    "mps": (
        node("w1", {GPU: 4}, 1, config("mps", replicas=4)),
        [pod("a", {GPU: 1}, {GPU: 1})],
        [(GPU, "2/4", "replicas", 1)],
    ),
    "mig-single": (
        node("w1", {GPU: 14}, 2, config("mig", mig_strategy="single")),
        [pod("a", {GPU: 1})],
        [(GPU, "1/14", "slices", 2)],
    ),
    "mig-single-with-one-slice-of-each-gpu": (
        node("w1", {GPU: 2}, 2, config("mig", mig_strategy="single")),
        [],
        [(GPU, "0/2", "slices", 2)],
    ),
    "mig-mixed": (
        node("w1", {GPU: 0, SMALL: 7}, 1, config("mig", mig_strategy="mixed")),
        [pod(f"p{number}", {SMALL: 1}) for number in range(7)],
        [(SMALL, "7/7", "slices", 0)],
    ),
    # The API does not report which of the two GPUs has slices, and of how many GPUs those of a profile are.
    "mig-mixed-beside-a-whole-gpu": (
        node("w1", {GPU: 1, SMALL: 4, LARGE: 1}, 2, config("mig", mig_strategy="mixed")),
        [pod("a", {SMALL: 2, LARGE: 1}), pod("b", {GPU: 1})],
        [(GPU, "1/1", "GPUs", 0), (SMALL, "2/4", "slices", 0), (LARGE, "1/1", "slices", 0)],
    ),
    "mig-mixed-and-shared": (node("w1", {f"{SMALL}.shared": 14}, 1), [], [(f"{SMALL}.shared", "0/14", "replicas", 0)]),
    # The configuration of all nodes is not in their labels: these can be replicas, or slices of one profile.
    "time_slicing-of-all-nodes": (node("w1", {GPU: 8}, 2), [], [(GPU, "0/8", "devices", 2)]),
    "exclusive-without-labels": (node("w1", {GPU: 2}), [], [(GPU, "0/2", "devices", 0)]),
    "time_slicing-by-a-label-of-users": (node("w1", {GPU: 8}, 2, "my-config"), [], [(GPU, "0/8", "devices", 2)]),
    "nano_gpu": (node("w1", {PERCENT: 200}), [pod("a", {PERCENT: 30})], [(PERCENT, "30/200", "percent", 2)]),
    "nano_gpu-as-elasticgpu": (
        node("w1", {CORE: 100, MEMORY: 16000}),
        [pod("a", {MEMORY: 256})],
        [(CORE, "0/100", "percent", 1), (MEMORY, "256/16000", "units", 0)],
    ),
}


#: The same of GPUs of other vendors.
CASES.update(
    {
        "amd": (
            node("w1", {"amd.com/gpu": 8, "amd.com/nic": 2}, labels={"gpu-kubernetes/amd.count": "8"}),
            [pod("a", {"amd.com/gpu": 3})],
            [("amd.com/gpu", "3/8", "GPUs", 8)],
        ),
        "amd-partitions": (
            node("w1", {"amd.com/cpx_nps4": 16}, labels={"gpu-kubernetes/amd.count": "2"}),
            [pod("a", {"amd.com/cpx_nps4": 1})],
            [("amd.com/cpx_nps4", "1/16", "devices", 2)],
        ),
        "intel-beside-nvidia": (
            node("w1", {GPU: 1, "gpu.intel.com/xe": 2}, 1, labels={"gpu-kubernetes/intel.count": "1"}),
            [pod("a", {"gpu.intel.com/xe": 1})],
            [("gpu.intel.com/xe", "1/2", "devices", 1), (GPU, "0/1", "GPUs", 1)],
        ),
    }
)


@pytest.mark.parametrize("case", CASES)
def test_allocate_of_each_strategy(case: str) -> None:
    shared, pods, expected = CASES[case]
    found = compute(shared, *pods)
    assert [summarize(row) for row in found["resources"]] == expected
    assert {total["resource"]: f"{total['allocated']}/{total['total']}" for total in found["totals"]} == {
        resource: share for resource, share, _unit, _gpus in expected
    }
    assert (found["nodes"], found["cluster"]["total"], found["findings"]) == ([], 0, [])


def test_every_strategy_has_a_case() -> None:
    # gpushare's tables have tests of their own.
    assert {*STRATEGIES} - {case.partition("-")[0] for case in CASES} == {"gpushare"}


def test_allocate_returns_documented_shape() -> None:
    notes = {"nano-gpu/container-c0": "1", "nano-gpu/container-c1": "0"}
    pods = [
        pod("b", {PERCENT: 30}, {PERCENT: 20}, annotations=notes),
        pod("a", {PERCENT: 40}, phase="Pending", deleted=True),
    ]
    assert compute(node("w1", {PERCENT: 200}), *pods)["resources"] == [
        {
            "name": "w1",
            "address": "10.0.0.1",
            "resource": PERCENT,
            "unit": "percent",
            "gpu_count": 2,
            "gpus": [{"index": 0, "total": 100, "allocated": 20}, {"index": 1, "total": 100, "allocated": 30}],
            "pending": 40,
            "allocated": 90,
            "total": 200,
            "percent": 45,
            "pods": [
                {
                    "namespace": "default",
                    "name": "a",
                    "phase": "Pending",
                    "terminating": True,
                    "gpus": [],
                    "pending": 40,
                    "allocated": 40,
                },
                {
                    "namespace": "default",
                    "name": "b",
                    "phase": "Running",
                    "terminating": False,
                    "gpus": [{"index": 0, "allocated": 20}, {"index": 1, "allocated": 30}],
                    "pending": 0,
                    "allocated": 50,
                },
            ],
        }
    ]


@pytest.mark.parametrize(
    ("annotation", "units", "gpus", "pending"),
    [
        ("1", 30, {0: 0, 1: 30}, 0),
        ("0,1", 200, {0: 100, 1: 100}, 0),
        ("0,1", 25, {0: 12, 1: 12}, 1),
        ("7", 30, {0: 0, 1: 0, 7: 30}, 0),
        (None, 30, {0: 0, 1: 0}, 30),
        ("", 30, {0: 0, 1: 0}, 30),
        ("-1", 30, {0: 0, 1: 0}, 30),
        ("\u0661", 30, {0: 0, 1: 0}, 30),
        ("9" * 4000, 30, {0: 0, 1: 0}, 30),
        (",".join(map(str, range(4000))), 30, {0: 0, 1: 0}, 30),
    ],
)
def test_allocate_reads_gpus_from_annotations(annotation: Any, units: int, gpus: dict[int, int], pending: int) -> None:
    annotations = {} if annotation is None else {"elasticgpu.io/container-c0": annotation}
    [row] = compute(node("w1", {CORE: 200}), pod("p", {CORE: units}, annotations=annotations))["resources"]
    assert {gpu["index"]: gpu["allocated"] for gpu in row["gpus"]} == gpus
    assert (row["pending"], row["allocated"]) == (pending, units)


def test_allocate_counts_pods_as_the_scheduler_does() -> None:
    pods = [
        pod("two", {GPU: 2}),
        pod("succeeded", {GPU: 1}, phase="Succeeded"),
        pod("failed", {GPU: 1}, phase="Failed"),
        pod("unscheduled", {GPU: 1}, on=""),
        pod("elsewhere", {GPU: 1}, on="gone"),
        pod("zero", {GPU: 0}),
        pod("none", {"cpu": 1}),
        pod("other", {"nvidia.com/hostdev": 1, "amd.com/nic": 1}),
        pod("init", {GPU: 1}, init=[{"name": "i", "resources": {"requests": {GPU: "3"}}}]),
        pod("terminating", {GPU: 1}, deleted=True),
    ]
    [row] = compute(node("w1", {GPU: 8, "nvidia.com/hostdev": 2}, 8), *pods)["resources"]
    assert (row["allocated"], row["total"], row["percent"]) == (6, 8, 75)
    assert {holder["name"]: holder["allocated"] for holder in row["pods"]} == {"init": 3, "terminating": 1, "two": 2}


def test_allocate_of_different_strategies_in_one_cluster() -> None:
    objects = [
        node("w2", {SMALL: 7}, 1),
        node("w1", {GPU: 8}, 2, config("time_slicing", replicas=4)),
        share_node("w3", 32, 2),
        pod("a", {GPU: 1}),
        pod("b", {SMALL: 1}, on="w2"),
        share_pod("c", on="w3"),
        node("w4", {GPU: 2}, 2),
    ]
    found = compute(*objects)
    assert [(row["name"], row["resource"], row["allocated"]) for row in found["resources"]] == [
        ("w1", GPU, 1),
        ("w2", SMALL, 1),
        ("w4", GPU, 0),
    ]
    assert found["totals"] == [
        {"resource": GPU, "allocated": 1, "total": 10, "percent": 10},
        {"resource": SMALL, "allocated": 1, "total": 7, "percent": 14},
    ]
    assert [(row["name"], row["allocated"]) for row in found["nodes"]] == [("w3", 3)]
    assert found["cluster"] == {"allocated": 3, "total": 32, "percent": 9}
    alone = compute(*objects, node="w2", list_pods=False)
    expected = {key: value for key, value in found["resources"][1].items() if key != "pods"}
    assert (alone["resources"], alone["nodes"]) == ([expected], [])


def test_pod_of_two_plugins_is_counted_for_both() -> None:
    both = share_node("w1", 16, 1, allocatable={GPU: "1"})
    holder = share_pod("p")
    holder["spec"]["containers"][0]["resources"]["limits"][GPU] = "1"
    found = compute(both, holder, pod("q", {GPU: 1}, annotations={"ALIYUN_COM_GPU_MEM_POD": "7"}))
    assert (found["cluster"]["allocated"], found["totals"][0]["allocated"]) == (3, 2)
    assert [each["name"] for each in found["nodes"][0]["pods"]] == ["p"]
    # The pod without gpu-mem has no findings of gpushare.
    assert [each["code"] for each in found["findings"]] == ["both_plugins"]


@pytest.mark.parametrize(
    ("allocatable", "capacity", "expected"),
    [
        # A kubelet reports what the node had once with 0.
        ({GPU: 2, RENAMED: 0, SMALL: 0}, {GPU: "2", RENAMED: "0", SMALL: "0"}, [(GPU, "0/2", "GPUs", 2)]),
        # A plugin that has stopped: its units stay in the capacity for a while.
        ({GPU: 0}, {GPU: "2"}, [(GPU, "0/0", "GPUs", 2)]),
        ({}, {}, []),
    ],
)
def test_allocate_with_resources_that_are_gone(allocatable: Any, capacity: Any, expected: list[Any]) -> None:
    found = compute(node("w1", allocatable, 2, capacity=capacity))
    assert [summarize(row) for row in found["resources"]] == expected


def test_allocate_with_pod_that_holds_what_the_node_has_no_more() -> None:
    [row] = compute(node("w1", {}), pod("p", {GPU: 1}))["resources"]
    assert (*summarize(row), row["percent"]) == (GPU, "1/0", "units", 0, 0)


@pytest.mark.parametrize("count", ["3000000", "-1", "x", "1e9", "\u0662", None])
def test_allocate_with_implausible_label_has_no_count_of_gpus(count: Any) -> None:
    [row] = compute(node("w1", {GPU: 8}, count))["resources"]
    assert summarize(row) == (GPU, "0/8", "devices", 0)


def test_allocate_with_implausible_percents_has_no_gpus() -> None:
    [row] = compute(node("w1", {PERCENT: 10**9}))["resources"]
    assert (row["gpu_count"], row["gpus"], row["total"]) == (0, [], 10**9)


# -- as text

MANY = compute(
    node("gpu1", {GPU: 8}, 2, config("time_slicing", replicas=4)),
    node("gpu2", {SMALL: 7, LARGE: 0}, 1, config("mig", mig_strategy="mixed")),
    node("gpu3", {PERCENT: 100}),
    node("gpu4", {GPU: 2}, 2),
    pod("a", {GPU: 1}, on="gpu1"),
    pod("b", {GPU: 3}, on="gpu1", namespace="team"),
    *(pod(f"s{number}", {SMALL: 1}, on="gpu2") for number in range(7)),
    pod("n", {PERCENT: 30}, on="gpu3", annotations={"nano-gpu/container-c0": "0"}),
    pod("lost", {PERCENT: 5}, on="gpu3"),
)


def test_render_text_with_bars() -> None:
    assert render_text(MANY, bars=True).splitlines() == [
        "NAME  RESOURCE                GPU                            Allocated/Total        UNIT",
        "gpu1  nvidia.com/gpu                   ##########..........  4/8              50%   replicas of 2 GPUs",
        "gpu2  nvidia.com/mig-1g.10gb           ####################  7/7              100%  slices",
        "gpu3  nano-gpu/gpu-percent    GPU0     ######..............  30/100           30%   percent",
        "gpu3  nano-gpu/gpu-percent    pending                        5                      percent",
        "gpu4  nvidia.com/gpu                   ....................  0/2              0%    GPUs",
        "------------------------------------------------------------------------------------------------------",
        "Allocated/Total In Cluster:",
        "nano-gpu/gpu-percent    35/100 (35%)",
        "nvidia.com/gpu          4/10 (40%)",
        "nvidia.com/mig-1g.10gb  7/7 (100%)",
        "",
        GPU_NOTE,
    ]


def test_render_text_with_details_lists_who_holds_how_many() -> None:
    rendered = render_text(MANY, details=True).splitlines()
    assert not any("##" in line for line in rendered)
    begin = rendered.index("") + 1
    assert rendered[begin : begin + 3] == [
        "NAME  NAMESPACE  NODE  RESOURCE                GPU      Allocated",
        "a     default    gpu1  nvidia.com/gpu                   1",
        "b     team       gpu1  nvidia.com/gpu                   3",
    ]
    assert "lost  default    gpu3  nano-gpu/gpu-percent    pending  5" in rendered
    assert "n     default    gpu3  nano-gpu/gpu-percent    GPU0     30" in rendered
    assert sum(line.startswith("s") for line in rendered) == 7


def test_render_text_leaves_empty_columns_out() -> None:
    rendered = render_text(compute(node("w1", {GPU: 4}, 1, config("mps", replicas=4)))).splitlines()
    assert rendered[:2] == [
        "NAME  RESOURCE        Allocated/Total      UNIT",
        "w1    nvidia.com/gpu  0/4              0%  replicas of 1 GPU",
    ]


def test_render_text_of_gpushare_and_others_has_both_tables() -> None:
    rendered = render_text(compute(share_node("w1"), share_pod("p"), node("w2", {GPU: 1}, 1))).splitlines()
    assert rendered[0].split() == ["NAME", "IPADDRESS", "GPU0(Allocated/Total)", "GPU", "Memory(GiB)"]
    assert "w2    nvidia.com/gpu  0/1              0%  GPUs" in rendered
    assert [rendered[-3], rendered[-1]] == [NOTE, GPU_NOTE]


def test_render_text_has_only_the_notes_that_apply() -> None:
    rendered = render_text(compute(node("w1", {PERCENT: 100})))
    assert GPU_NOTE not in rendered
    assert NOTE not in rendered


def test_render_text_as_json_is_the_allocation() -> None:
    assert json.loads(render_text(MANY, "json")) == MANY


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        (
            False,
            [
                ("gpu1", "", "", "4", "replicas", GPU),
                ("gpu2", "", "", "7", "slices", SMALL),
                ("gpu3", "", "0", "30", "percent", PERCENT),
                ("gpu3", "", "pending", "5", "percent", PERCENT),
                ("gpu4", "", "", "0", "GPUs", GPU),
            ],
        ),
        (
            True,
            [
                ("gpu1", "a", "", "1", "replicas", GPU),
                ("gpu1", "b", "", "3", "replicas", GPU),
                *(("gpu2", f"s{number}", "", "1", "slices", SMALL) for number in range(7)),
                ("gpu3", "lost", "pending", "5", "percent", PERCENT),
                ("gpu3", "n", "0", "30", "percent", PERCENT),
            ],
        ),
    ],
)
def test_render_text_as_csv(details: bool, expected: list[Any]) -> None:
    records = csv.DictReader(render_text(MANY, "csv", details=details).splitlines())
    keys = ("node", "pod", "gpu", "allocated", "unit", "resource")
    assert [tuple(record.get(key, "") for key in keys) for record in records] == expected
