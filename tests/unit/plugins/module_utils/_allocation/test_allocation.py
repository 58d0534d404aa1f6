# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The allocation by node and GPU."""

from __future__ import annotations

import random
from typing import Any

import pytest
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import UnknownNode, allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import read_dump

ALLOCATION = "scheduler.framework.gpushare.allocation"


def allocate_objects(*objects: dict[str, Any], **options: Any) -> dict[str, Any]:
    return allocate(*read_dump(list(objects)), **options)


@pytest.mark.parametrize(
    ("amounts", "allocated", "percent"), [((), 0, 0), ((3,), 3, 18), ((3, 5), 8, 50), ((3, 5, 8), 16, 100)]
)
def test_allocate_pods_of_one_gpu(amounts: tuple[int, ...], allocated: int, percent: int) -> None:
    pods = [share_pod(f"p{number}", amounts=(amount,)) for number, amount in enumerate(amounts)]
    found = allocate_objects(share_node("w1"), *pods)
    assert found["cluster"] == {"allocated": allocated, "total": 16, "percent": percent}
    assert found["unit"] == "GiB"
    assert found["findings"] == []
    (node,) = found["nodes"]
    assert node["gpus"] == [{"index": 0, "total": 16, "allocated": allocated}]
    assert [pod["allocated"] for pod in node["pods"]] == list(amounts)


def test_allocate_returns_documented_shape() -> None:
    pods = [
        share_pod("b", amounts=(2, 1), index=1),
        share_pod("a", namespace="z"),
        share_pod("lost", index=None, deleted=True),
    ]
    assert allocate_objects(share_node("w1", 32, 2), *pods) == {
        "nodes": [
            {
                "name": "w1",
                "address": "10.0.0.1",
                "gpu_count": 2,
                "gpus": [{"index": 0, "total": 16, "allocated": 3}, {"index": 1, "total": 16, "allocated": 3}],
                "pending": 3,
                "allocated": 9,
                "total": 32,
                "percent": 28,
                "pods": [
                    {
                        "namespace": "default",
                        "name": "b",
                        "phase": "Running",
                        "terminating": False,
                        "gpus": [{"index": 1, "allocated": 3}],
                        "pending": 0,
                        "allocated": 3,
                    },
                    {
                        "namespace": "default",
                        "name": "lost",
                        "phase": "Running",
                        "terminating": True,
                        "gpus": [],
                        "pending": 3,
                        "allocated": 3,
                    },
                    {
                        "namespace": "z",
                        "name": "a",
                        "phase": "Running",
                        "terminating": False,
                        "gpus": [{"index": 0, "allocated": 3}],
                        "pending": 0,
                        "allocated": 3,
                    },
                ],
            }
        ],
        "cluster": {"allocated": 9, "total": 32, "percent": 28},
        "unit": "GiB",
        "findings": [
            {
                "code": "pending_running",
                "object": "default/lost",
                "message": "Pod default/lost runs with aliyun.com/gpu-mem 3 on no known GPU, so that gpushare's extender "
                "has not bound it; check that kube-scheduler has the extender, and restart the pod.",
            }
        ],
        "resources": [],
        "totals": [],
    }


def test_allocate_lists_nodes_with_memory_by_name() -> None:
    nodes = [share_node("w2"), share_node("none", None, None), share_node("gone", 0, 0), share_node("w1")]
    found = allocate_objects(*nodes, share_pod("p", on="none"), share_pod("q", on="nowhere"))
    assert [node["name"] for node in found["nodes"]] == ["w1", "w2"]
    assert found["cluster"] == {"allocated": 0, "total": 32, "percent": 0}


def test_allocate_with_index_beyond_gpus_adds_gpu() -> None:
    found = allocate_objects(share_node("w1", 32, 2), share_pod("p", index=7), share_pod("q", index=-5, amounts=(1,)))
    (node,) = found["nodes"]
    assert node["gpus"] == [
        {"index": -5, "total": 16, "allocated": 1},
        {"index": 0, "total": 16, "allocated": 0},
        {"index": 1, "total": 16, "allocated": 0},
        {"index": 7, "total": 16, "allocated": 3},
    ]
    assert (node["allocated"], node["percent"]) == (4, 12)
    assert [each["code"] for each in found["findings"]] == ["index_out_of_range", "index_out_of_range"]


def test_allocate_without_count_has_no_gpus() -> None:
    found = allocate_objects(share_node("w1", 16, None), share_pod("p"))
    (node,) = found["nodes"]
    assert node["gpus"] == [{"index": 0, "total": 0, "allocated": 3}]
    assert (node["allocated"], node["total"], found["unit"]) == (3, 16, "")
    assert [each["code"] for each in found["findings"]] == ["gpu_mem_without_count", "index_out_of_range"]


@pytest.mark.parametrize(
    ("nodes", "unit"),
    [
        ([share_node("w1", 100, 1)], "GiB"),
        ([share_node("w1", 101, 1)], "MiB"),
        ([share_node("w1", 8 * 141, 8)], "MiB"),
        ([share_node("w1", 8 * 80, 8)], "GiB"),
        ([share_node("w1", 50000, None), share_node("w2", 16, 1)], "GiB"),
        ([share_node("w1", 50000, None)], ""),
        ([share_node("w1", None, None)], ""),
    ],
)
def test_guess_unit_of_first_node_with_gpus(nodes: list[dict[str, Any]], unit: str) -> None:
    assert allocate_objects(*nodes)["unit"] == unit
    assert allocate_objects(*nodes, unit="GiB")["unit"] == "GiB"


def test_allocate_of_one_node_equals_that_of_all() -> None:
    objects = [
        share_node("w1"),
        share_node("w2", 0, 1),
        share_pod("p"),
        share_pod("q", on="w2"),
        share_node("w3", 640, 4),
    ]
    whole = allocate_objects(*objects)
    for node in whole["nodes"]:
        alone = allocate_objects(*objects, node=node["name"])
        assert alone["nodes"] == [node]
        assert alone["cluster"] == {key: node[key] for key in ("allocated", "total", "percent")}
    assert allocate_objects(*objects, node="w2")["nodes"] == []
    assert [each["object"] for each in allocate_objects(*objects, node="w2")["findings"]] == [
        "w2",
    ]


def test_allocate_of_unknown_node_raises() -> None:
    with pytest.raises(UnknownNode, match="There is no node w9 in the cluster; correct the name"):
        allocate_objects(share_node("w1"), node="w9")


def test_allocate_lists_pods_on_request() -> None:
    (node,) = allocate_objects(share_node("w1"), share_pod("p"), list_pods=False)["nodes"]
    assert "pods" not in node
    assert node["allocated"] == 3


@pytest.mark.parametrize("seed", range(2))
def test_allocate_of_random_cluster_has_consistent_sums(seed: int) -> None:
    generator = random.Random(seed)  # noqa: S311
    nodes = [
        share_node(f"w{number}", generator.choice([None, 0, 7, 16, 320]), generator.choice([None, 0, 1, 4]))
        for number in range(6)
    ]
    allocations = ["", "{}", '{"0": {"1": 2, "9": 1}}', '{"0": {"-1": 2}}', "nonsense"]
    pods = [
        share_pod(
            f"p{number}",
            on=f"w{generator.randrange(7)}",
            amounts=[generator.choice([None, 0, 1, 5]) for _container in range(generator.randrange(1, 4))],
            index=generator.choice([None, -1, 0, 1, 3, 12, "x"]),
            phase=generator.choice(["Pending", "Running", "Failed"]),
            annotations={ALLOCATION: generator.choice(allocations)},
        )
        for number in range(60)
    ]
    found = allocate_objects(*nodes, *pods)
    shuffled = [*nodes, *pods]
    generator.shuffle(shuffled)
    assert allocate_objects(*shuffled) == found
    for node in found["nodes"]:
        assert node["allocated"] == sum(gpu["allocated"] for gpu in node["gpus"]) + node["pending"]
        assert node["allocated"] == sum(pod["allocated"] for pod in node["pods"])
        assert node["pending"] == sum(pod["pending"] for pod in node["pods"])
        for gpu in node["gpus"]:
            shares = [share for pod in node["pods"] for share in pod["gpus"] if share["index"] == gpu["index"]]
            assert gpu["allocated"] == sum(share["allocated"] for share in shares)
    for part in ("allocated", "total"):
        assert found["cluster"][part] == sum(node[part] for node in found["nodes"])


def test_allocate_with_implausible_count_lists_only_allocated_gpus() -> None:
    found = allocate(*read_dump([share_node("w1", 16, 3 * 10**6), share_pod("p"), share_node("w2")]))
    first, second = found["nodes"]
    assert (first["gpu_count"], first["gpus"]) == (0, [{"index": 0, "total": 0, "allocated": 3}])
    assert second["gpu_count"] == 1
    [finding] = [each for each in found["findings"] if each["code"] == "gpu_count_implausible"]
    assert finding["message"].startswith("Node w1 reports aliyun.com/gpu-count 3000000, more than the 128 GPUs that ")
