# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof of shared GPUs: every fault with its remedy."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.gpushare import GPU_MEM
from fakes.gpushare_cluster import ASSIGNED, AWAY, INDEX, REQUEST, FakeGpushare, request_of, shared_node, uuid_of
from fakes.kubernetes_api import FakeClock, FakeCluster

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.proving import (
    run_sharing_test,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.sharing import Sharing
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import Smoke
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import Pace
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._gpushare.prover import (
    FAILED,
    NOW,
    SHARING,
    asked,
    does,
    prove,
    says,
    two_gpus,
)


@pytest.mark.parametrize(
    ("amount", "path", "value", "words"),
    [
        (
            3,
            ("metadata", "annotations"),
            {},
            f"the pod of 3 GiB came to the node without the annotation {INDEX}, so kube",
        ),
        (3, ("metadata", "annotations", INDEX), "-1", "run the playbook deploy_gpushare"),
        (5, ("metadata", "annotations", ASSIGNED), "false", f"has not taken it up ({ASSIGNED} is 'false')"),
        (5, ("metadata", "annotations", REQUEST), "4", "the pod of 5 GiB counts as '4' for gpushare's extender"),
        (3, ("status",), FAILED, "no-gpu-has-3GiB-to-run: unknown device; gpushare's device plugin found no pod"),
        (
            5,
            ("status",),
            {"phase": "Pending"},
            "the pod of 5 GiB is being created, and its kubelet reports no problem yet (after 60 s)",
        ),
    ],
)
def test_pods_that_are_placed_and_not_well(amount: int, path: Any, value: Any, words: str) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    does(cluster, amount, *path, to=value)
    result = prove(cluster)
    assert (result.passed, result.skipped) == (False, False)
    assert words in result.reason


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (AWAY, "connection refused (after 60 s); see that gpushare's extender runs"),
        (
            "failed bind with extender at URL http://10.0.0.1:32766/gpushare-scheduler/bind, code 404",
            "see that gpushare's",
        ),
        (
            "failed bind with extender at URL http://10.0.0.1:32766/gpushare-scheduler/bind, code 500",
            "read the log of gpushare's",
        ),
        (
            "0/1 nodes are available: 1 Insufficient cpu.",
            "is Pending, not scheduled: 0/1 nodes are available: 1 Insufficient cpu. (after 60 s)",
        ),
        ("0/1 nodes are available: 1 Insufficient GPU Memory in one device.", "restart gpushare's extender"),
    ],
)
def test_pods_that_are_not_scheduled(message: str, words: str) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    says(cluster, message)
    result = prove(cluster)
    assert (result.passed, result.skipped) == (False, False)
    assert words in result.reason
    assert result.reason.startswith("the pod of 3 GiB")
    assert asked(cluster) == [3]


def test_a_scheduler_that_says_nothing() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.on_create = lambda _made: None
    assert "the scheduler has not answered yet (after 60 s)" in prove(cluster).reason


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (3, "the pod of 3 GiB is on GPU 1, and what is free fits best on GPU 0; restart gpushare's extender"),
        (5, "the pod of 5 GiB is on GPU 1, and what is free fits best on GPU 0; restart gpushare's extender"),
    ],
)
def test_a_gpu_that_does_not_fit_best(amount: int, words: str) -> None:
    cluster = two_gpus()
    does(cluster, amount, "metadata", "annotations", INDEX, to="1")
    result = prove(cluster)
    assert (result.passed, result.skipped) == (False, False)
    assert words in result.reason
    assert "ConfigMap unhealthy-gpu-w1" in result.reason


def test_a_gpu_that_the_node_does_not_have() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    does(cluster, 3, "metadata", "annotations", INDEX, to="4")
    assert "is on GPU 4, and what is free fits best on GPU 0" in prove(cluster).reason


def test_a_limit_that_was_changed_shows_in_the_allocation() -> None:
    cluster = FakeGpushare([shared_node("w1")])

    def change(made: dict[str, Any]) -> None:
        if request_of(made) == 5:
            made["spec"]["containers"][0]["resources"]["limits"][GPU_MEM] = "6"

    cluster.on_placed = change
    result = prove(cluster)
    assert not result.passed
    assert "has 9 GiB of GPU 0 allocated to the test's pods, which asked for 8 GiB" in result.reason


@pytest.mark.parametrize("amount", [3, 5])
def test_pods_that_see_different_gpus(amount: int) -> None:
    cluster = two_gpus()

    def swap(made: dict[str, Any]) -> None:
        if request_of(made) == amount:
            cluster.logs[made["metadata"]["name"]] = f"NVML: {uuid_of('w1', 1)}\nTest PASSED\n"

    cluster.on_placed = swap
    result = prove(cluster)
    assert not result.passed
    assert f"they saw {uuid_of('w1', 0)}, {uuid_of('w1', 1)}; see what sets NVIDIA_VISIBLE_DEVICES" in result.reason


@pytest.mark.parametrize(
    ("ends", "output", "words"),
    [
        (
            True,
            "no GPU here\n",
            "the pod of 3 GiB ended well but never printed 'Test PASSED'; its last line is: no GPU",
        ),
        (False, "working\n", "the pod of 3 GiB is still running, and its last word is: working (after 60 s)"),
    ],
)
def test_pods_that_do_not_say_that_they_passed(ends: bool, output: str, words: str) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.ends, cluster.output = ends, output
    result = prove(cluster)
    assert words in result.reason
    assert (result.passed, result.percent, result.log_tail[-1]) == (False, [0, 18, 50], output.strip())


def test_without_expected_output_a_good_end_is_enough_and_nothing_else() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.output = ""
    assert prove(cluster, Sharing(Smoke(image="i", timeout=60))).passed
    cluster = FakeGpushare([shared_node("w1")])
    cluster.ends = False
    assert "is still running" in prove(cluster, Sharing(Smoke(image="i", timeout=60))).reason


def test_a_log_that_cannot_be_read_is_told() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.log_error = ApiError("give this account the verb get on pods/log.", 403)
    assert "its log cannot be read: give this account the verb" in prove(cluster).reason


def test_a_pod_that_fails_after_its_step() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.ends = False

    def fail(made: dict[str, Any]) -> None:
        if request_of(made) == 5:
            cluster.store_pods[0]["status"] = {**FAILED, "containerStatuses": []}
            cluster.logs[cluster.created[0]["metadata"]["name"]] = "CUDA error: out of memory\n"

    cluster.on_placed = fail
    result = prove(cluster)
    assert result.reason.startswith("the pod of 3 GiB failed (container ended): ")
    assert [share.phase for share in result.pods] == ["Failed", "Pending"]


def test_a_plugin_that_goes_away() -> None:
    cluster = FakeGpushare([shared_node("w1")])

    def zero(_made: dict[str, Any]) -> None:
        cluster.store_nodes["w1"]["status"]["allocatable"][GPU_MEM] = "0"

    cluster.on_placed = zero
    assert "stopped offering aliyun.com/gpu-mem" in prove(cluster).reason


def test_an_extender_that_is_not_asked_is_known_at_once() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    cluster.asks_extender = False
    does(cluster, 3, "status", to={"phase": "Pending"})
    clock = FakeClock()
    (result,) = run_sharing_test(cluster, SHARING, ["w1"], Pace(2, clock, clock.sleep, lambda: NOW)).results
    assert result.reason.endswith("kube-scheduler does not ask gpushare's extender; run the playbook deploy_gpushare")
    assert clock.time < 5


def test_what_is_too_large_and_refused_for_its_size_in_the_end() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    says(cluster, AWAY, 17)
    lists: list[int] = []

    def recover(_cluster: FakeCluster) -> None:
        large = [item for item in cluster.store_pods if request_of(item) == 17]
        lists.extend(large and [1])
        if len(lists) == 3:
            large[0]["status"]["conditions"][0]["message"] = f"0/1 nodes are available: 1 Insufficient {GPU_MEM}."

    cluster.on_list = recover
    result = prove(cluster)
    assert (result.passed, "Insufficient" in result.pending_reason) == (True, True)


@pytest.mark.parametrize("asks", [True, False])
def test_what_is_too_large_and_scheduled_all_the_same(asks: bool) -> None:
    cluster = two_gpus()

    def place(made: dict[str, Any]) -> None:
        if request_of(made) == 17:
            made["spec"]["nodeName"] = "w1"
            made["metadata"]["annotations"] = {INDEX: "0"} if asks else {}

    cluster.on_placed = place
    result = prove(cluster)
    assert (result.passed, result.skipped) == (False, False)
    assert result.reason == "the pod of 17 GiB was scheduled, and no GPU has that much: " + (
        "gpushare's extender takes the GPUs for larger than they are; restart it"
        if asks
        else "kube-scheduler does not ask gpushare's extender; run the playbook deploy_gpushare"
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (AWAY, "stays Pending for another reason than its size: Post"),
        ("0/1 nodes are available: 1 Insufficient cpu.", "for another reason than its size: 0/1 nodes"),
    ],
)
def test_what_is_too_large_and_pending_for_another_reason(message: str, words: str) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    says(cluster, message, 17)
    result = prove(cluster)
    assert not result.passed
    assert words in result.reason
    assert result.pending_reason == message


def test_what_is_too_large_and_not_looked_at() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    does(cluster, 17, "status", "conditions", to=[])
    assert "the pod of 17 GiB stays Pending without a word of the scheduler (after 60 s)" in prove(cluster).reason
