# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof of shared GPUs, on a cluster in memory: what passes, what is skipped, and what others do meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.gpushare import GPU_MEM, share_pod
from fakes.gpushare_cluster import FakeGpushare, request_of, shared_node
from fakes.kubernetes_api import node

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.proving import (
    run_sharing_test,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.sharing import Sharing
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import Smoke
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._gpushare.prover import (
    SHARING,
    SMOKE,
    asked,
    pace,
    prove,
    two_gpus,
)


@pytest.mark.parametrize("ends", [True, False], ids=["ending", "running"])
def test_two_pods_share_the_gpu_of_a_node(ends: bool) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.ends = ends
    result = prove(cluster)
    assert (result.passed, result.skipped, result.reason) == (True, False, "")
    assert (result.unit, result.gpu_index, result.percent) == ("GiB", 0, [0, 18, 50])
    assert [(share.amount, share.gpu_index) for share in result.pods] == [(3, 0), (5, 0)]
    assert {share.phase for share in result.pods} == {"Succeeded" if ends else "Running"}
    assert result.pending_reason == f"0/1 nodes are available: 1 Insufficient {GPU_MEM}."
    assert result.log_tail[-1] == "Test PASSED"
    assert asked(cluster) == [3, 5, 17]


def test_pods_are_placed_by_the_scheduler_and_choose_no_gpu() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    prove(cluster, Sharing(Smoke(image="i", runtime_class="nvidia", timeout=60)))
    assert not [item for item in cluster.created if "env" in item["spec"]["containers"][0]]
    assert {item["spec"]["runtimeClassName"] for item in cluster.created} == {"nvidia"}
    assert {item["metadata"]["generateName"] for item in cluster.created} == {"gpushare-smoke-test-"}
    assert {item["spec"]["activeDeadlineSeconds"] for item in cluster.created} == {4 * 60 + 60}


def test_without_the_pod_that_is_too_large() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    result = prove(cluster, Sharing(SMOKE, too_much=False))
    assert (result.passed, result.pending_reason, asked(cluster)) == (True, "", [3, 5])


@pytest.mark.parametrize(
    ("memory", "unit", "amounts"),
    [(16384, "", [3072, 5120, 16385]), (16384, "MiB", [3072, 5120, 16385]), (141, "GiB", [3, 5, 142])],
)
def test_the_unit_is_that_of_the_device_plugin(memory: int, unit: str, amounts: list[int]) -> None:
    cluster = FakeGpushare([shared_node("w1", memory)])
    result = prove(cluster, Sharing(SMOKE, unit=unit))
    assert (result.passed, result.unit) == (True, unit or "MiB")
    assert asked(cluster) == amounts
    assert result.percent == ([0, 18, 50] if memory > 1000 else [0, 2, 5])


def test_large_gpus_in_gib_want_the_unit_said() -> None:
    result = prove(FakeGpushare([shared_node("w1", 141)]))
    assert result.skipped
    assert result.reason == "has GPUs of 141 MiB, and the pods ask for 8192 MiB together; ask for less"


def test_the_fullest_gpu_that_has_enough_is_expected() -> None:
    pods = [share_pod("a", amounts=[14], index=0), share_pod("b", amounts=[6], index=1)]
    cluster = FakeGpushare([shared_node("w1", gpus=3)], pods)
    result = prove(cluster)
    assert (result.passed, result.gpu_index, result.percent) == (True, 1, [37, 56, 87])
    assert asked(cluster)[-1] == 17
    assert "Insufficient GPU Memory in one device" in result.pending_reason
    assert [item["metadata"]["name"] for item in cluster.store_pods] == ["a", "b"]


def test_the_pod_that_is_too_large_tempts_no_one_to_evict() -> None:
    cluster = FakeGpushare([shared_node("w1", gpus=2)], [share_pod("a", amounts=[16], index=0)])
    cluster.ends = False
    result = prove(cluster)
    assert (result.passed, result.gpu_index, asked(cluster)[-1]) == (True, 1, 33)


def test_the_pods_of_the_test_take_room_from_what_is_too_large() -> None:
    cluster = FakeGpushare([shared_node("w1", gpus=2)], [share_pod("a", amounts=[8], index=0)])
    result = prove(cluster)
    assert (result.passed, result.percent, asked(cluster)[-1]) == (True, [50, 68, 100], 33)


def test_pods_that_leave_count_for_the_allocation_and_not_for_the_extender() -> None:
    leaving = share_pod("a", amounts=[4], index=1, deleted=True)
    result = prove(FakeGpushare([shared_node("w1", gpus=2)], [leaving, share_pod("b", amounts=[2], index=0)]))
    # By what is allocated GPU 1 would be the best fit.
    assert (result.passed, result.gpu_index) == (True, 0)


def test_amounts_in_any_order() -> None:
    cluster = FakeGpushare([shared_node("w1", gpus=2)], [share_pod("a", amounts=[12], index=1)])
    result = prove(cluster, Sharing(SMOKE, amounts=(5, 1)))
    # The smaller one fits best elsewhere.
    assert (result.skipped, asked(cluster)) == (True, [])
    assert (
        result.reason
        == "busy: by what is free, 5 GiB on GPU 0 and 1 GiB on GPU 1 fit best, so that no GPU would be shared"
    )


def test_nodes_are_tried_at_once() -> None:
    lists = {}
    for count in (1, 5):
        names = [f"w{number}" for number in range(count)]
        cluster = FakeGpushare([shared_node(name) for name in names])
        results = run_sharing_test(cluster, SHARING, names, pace()).results
        assert [(result.node, result.passed) for result in results] == [(name, True) for name in names]
        lists[count] = [call for call in cluster.calls if call in ("nodes", "pods", "events")]
    assert lists[1] == lists[5]


@pytest.mark.parametrize(
    ("given", "pods", "skipped", "word"),
    [
        (node("other"), [], False, "not in the cluster"),
        (shared_node("w1", unschedulable=True), [], True, "cordoned"),
        (shared_node("w1", ready=False), [], False, "is not Ready: CNI is missing"),
        (shared_node("w1", taints=[{"key": "t", "effect": "NoSchedule"}]), [], False, "taint t:NoSchedule"),
        (node("w1", 1), [], False, "offers 0 aliyun.com/gpu-mem, so gpushare's device plugin"),
        (shared_node("w1", gpus=0), [], False, "without aliyun.com/gpu-count"),
        (shared_node("w1", 7), [], True, "has GPUs of 7 GiB, and the pods ask for 8 GiB together"),
        (
            shared_node("w1"),
            [share_pod("a", amounts=[9], index=0)],
            True,
            "no GPU has 8 GiB free; it is in use by default/a",
        ),
        (shared_node("w1"), [share_pod("a", amounts=[9], index=None)], True, "no GPU has 8 GiB free"),
        (
            shared_node("w1", gpus=2),
            [share_pod("a", amounts=[12], index=0)],
            True,
            "3 GiB on GPU 0 and 5 GiB on GPU 1 fit best",
        ),
    ],
)
def test_nodes_that_cannot_be_tried(given: Any, pods: Any, skipped: bool, word: str) -> None:
    cluster = FakeGpushare([given], pods)
    result = prove(cluster)
    assert (result.passed, result.skipped) == (False, skipped)
    assert word in result.reason
    assert cluster.created == []


def test_check_mode_creates_nothing_and_proves_nothing() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    results = run_sharing_test(cluster, SHARING, ["w1", "w9"], pace(), check_mode=True).results
    assert [(result.passed, result.skipped) for result in results] == [(False, True), (False, False)]
    assert "check mode" in results[0].reason
    assert cluster.created == []


def test_memory_that_others_take_meanwhile_is_nobodys_fault() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.ends = False

    def take(made: dict[str, Any]) -> None:
        if request_of(made) == 3:
            cluster.store_pods.append(share_pod("theirs", amounts=[10], index=0))

    cluster.on_placed = take
    result = prove(cluster)
    assert (result.skipped, result.gpu_index, result.percent) == (True, 0, [0, 81])
    assert "the memory was given to other pods meanwhile" in result.reason


def test_what_others_take_is_in_the_percentages() -> None:
    cluster = FakeGpushare([shared_node("w1")])

    def take(made: dict[str, Any]) -> None:
        if request_of(made) == 3:
            cluster.store_pods.append(share_pod("theirs", amounts=[2], index=0))

    cluster.on_placed = take
    result = prove(cluster)
    assert (result.passed, result.percent) == (True, [0, 31, 62])


def test_pods_that_spread_because_others_came_are_nobodys_fault() -> None:
    cluster = two_gpus()

    def take(made: dict[str, Any]) -> None:
        if request_of(made) == 3:
            cluster.store_pods += [share_pod("a", amounts=[10], index=0), share_pod("b", amounts=[10], index=1)]

    cluster.ends = False
    cluster.on_placed = take
    result = prove(cluster)
    assert (result.skipped, result.gpu_index) == (True, 0)
    assert "the pod of 5 GiB fitted best on GPU 1, and not on GPU 0" in result.reason


def test_a_pod_that_comes_before_ours_and_after_the_first_look_is_seen() -> None:
    cluster = two_gpus()
    place = cluster.on_create

    def arrive(made: dict[str, Any]) -> None:
        if not cluster.store_pods:
            cluster.store_pods.append(share_pod("theirs", amounts=[4], index=1))
        place(made)

    cluster.on_create = arrive
    result = prove(cluster)
    assert (result.passed, result.gpu_index, result.percent) == (True, 1, [0, 43, 75])


def test_a_pod_that_goes_after_ours_came_was_there_all_the_same() -> None:
    cluster = FakeGpushare([shared_node("w1", gpus=2)], [share_pod("theirs", amounts=[4], index=1)])

    def leave(_made: dict[str, Any]) -> None:
        cluster.store_pods = [item for item in cluster.store_pods if item["metadata"]["name"] != "theirs"]

    cluster.on_placed = leave
    cluster.ends = False
    result = prove(cluster)
    assert (result.passed, result.gpu_index, result.percent) == (True, 1, [25, 18, 50])
