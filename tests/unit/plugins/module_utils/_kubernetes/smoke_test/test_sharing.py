# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smoke test of pods that share GPUs, on a cluster in memory: what passes, what is skipped, each fault with its remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node
from fakes.sharing_cluster import (
    AWAY,
    CORE,
    MEMORY,
    PERCENT,
    TOO_LARGE,
    FakeSharing,
    holder,
    shared_node,
    uuid_of,
)

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.runner import run_smoke_test
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import SharedResource
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubernetes.smoke_test.sharing_runs import (
    LARGE,
    SMALL,
    TEST,
    TOO_MUCH,
    make_timing,
    requests,
    run,
)


def change(cluster: FakeSharing, amount: int, *path: str, to: Any) -> None:
    """Set a part of the pod with an amount once it is placed."""

    def set_part(made: dict[str, Any]) -> None:
        if cluster.request_of(made) == amount:
            place = made
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = to

    cluster.on_placed = set_part


def refuse(cluster: FakeSharing, message: str, amount: int = 0) -> None:
    """Set what kube-scheduler reports of the pod with an amount, or of all pods, instead of placing it."""
    cluster.refusal = lambda made: message if cluster.request_of(made) == amount or not amount else ""


@pytest.mark.parametrize(
    ("resource", "size", "gpus", "amounts"),
    [
        (MEMORY, 16, 1, [3, 4, 17]),
        (MEMORY, 16, 2, [3, 4, 17]),
        (MEMORY, 16384, 1, [3276, 4915, 16385]),
        (PERCENT, 100, 2, [20, 30, 101]),
        # A request above one GPU would get whole GPUs.
        (CORE, 100, 2, [20, 30, 201]),
    ],
)
def test_two_pods_on_one_gpu_pass(resource: SharedResource, size: int, gpus: int, amounts: list[int]) -> None:
    cluster = FakeSharing([shared_node("w1", size, gpus, resource)], resource=resource)
    result = run(cluster, replace(TEST, shared=[PERCENT, CORE] if resource is CORE else [resource]))
    assert (result.passed, result.skipped, result.reason) == (True, False, "")
    assert (result.gpu_index, result.visible_devices) == ("0", [uuid_of("w1", 0)])
    assert (result.phase, result.log_tail[-1]) == ("Succeeded", "Test PASSED")
    assert "Insufficient" in result.pending_reason
    assert requests(cluster) == amounts


def test_three_pods_on_one_gpu_pass() -> None:
    cluster = FakeSharing([shared_node("w1", 100)])
    result = run(cluster, replace(TEST, shares=(10, 20, 30)))
    assert (result.passed, requests(cluster)) == (True, [10, 20, 30, 101])


def test_pods_name_scheduler_and_runtime_class_and_choose_no_gpu() -> None:
    cluster = FakeSharing([shared_node("w1")])
    assert run(cluster, replace(TEST, scheduler_name="second", runtime_class="nvidia")).passed
    assert not [item for item in cluster.created if "env" in item["spec"]["containers"][0]]
    assert {item["spec"]["schedulerName"] for item in cluster.created} == {"second"}
    assert {item["spec"]["runtimeClassName"] for item in cluster.created} == {"nvidia"}


def test_pods_beside_pods_of_others_pass() -> None:
    cluster = FakeSharing([shared_node("w1", gpus=3)], [holder("a", 14, 0), holder("b", 6, 1)])
    result = run(cluster)
    assert (result.passed, result.gpu_index, requests(cluster)[-1]) == (True, "1", TOO_MUCH)
    assert [item["metadata"]["name"] for item in cluster.store_pods] == ["a", "b"]


@pytest.mark.parametrize(("used", "amount"), [(8, 17), (9, 33)])
def test_pod_that_is_too_large_causes_no_eviction(used: int, amount: int) -> None:
    """The request exceeds the free amount of the whole node."""
    cluster = FakeSharing([shared_node("w1", gpus=2)], [holder("a", used, 0)])
    assert (run(cluster).passed, requests(cluster)[-1]) == (True, amount)


def test_nodes_are_tested_at_once() -> None:
    calls = {}
    for count in (1, 5):
        names = [f"w{number}" for number in range(count)]
        cluster = FakeSharing([shared_node(name) for name in names])
        results = run_smoke_test(cluster, TEST, names, make_timing()).results
        assert [(result.node, result.passed) for result in results] == [(name, True) for name in names]
        calls[count] = [call for call in cluster.calls if call in ("nodes", "pods", "events")]
    assert calls[1] == calls[5]


@pytest.mark.parametrize(
    ("given", "pods", "skipped", "words"),
    [
        (node("other"), [], False, "not in the cluster"),
        (shared_node("w1", unschedulable=True), [], True, "cordoned"),
        (shared_node("w1", ready=False), [], False, "is not Ready: CNI is missing"),
        (shared_node("w1", taints=[{"key": "t", "effect": "NoSchedule"}]), [], False, "taint t:NoSchedule"),
        (node("w1", 1), [], False, "has 0 allocatable aliyun.com/gpu-mem, so a device plugin has to be deployed"),
        (shared_node("w1", gpus=0), [], False, "without aliyun.com/gpu-count; restart the device plugin there"),
        (shared_node("w1", 1, 2), [], True, "has GPUs of 1 aliyun.com/gpu-mem, which 2 pods cannot share"),
        (shared_node("w1"), [holder("a", 10, 0)], True, "busy: 10 of 16 aliyun.com/gpu-mem are in use by default/a"),
    ],
)
def test_node_that_cannot_be_tested_gets_no_pod(given: Any, pods: Any, skipped: bool, words: str) -> None:
    cluster = FakeSharing([given], pods)
    result = run(cluster)
    assert (result.passed, result.skipped, cluster.created) == (False, skipped, [])
    assert words in result.reason


def test_run_in_check_mode_creates_no_pod() -> None:
    cluster = FakeSharing([shared_node("w1"), node("w2")])
    results = run_smoke_test(cluster, TEST, ["w1", "w2", "w9"], make_timing(), check_mode=True).results
    assert [(result.passed, result.skipped) for result in results] == [(False, True), (False, True), (False, False)]
    assert "at present it has 0 allocatable aliyun.com/gpu-mem" in results[1].reason
    assert cluster.created == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (AWAY, "connection refused (after 60 s); verify that the scheduler extender runs"),
        ("failed bind with extender at URL http://10.0.0.1:1/bind, code 404", "; verify that the scheduler extender"),
        ("failed bind with extender at URL http://10.0.0.1:1/bind, code 500", "; read the log of the scheduler"),
        ("0/1 nodes are available: 1 Insufficient cpu.", "not scheduled: 0/1 nodes are available: 1 Insufficient cpu."),
        (TOO_LARGE, "; restart the scheduler extender, which may count pods that have ended"),
        ("", "the scheduler has not answered yet (after 60 s)"),
    ],
)
def test_pod_that_is_not_scheduled_fails_the_node(message: str, words: str) -> None:
    cluster = FakeSharing([shared_node("w1")])
    refuse(cluster, message)
    if not message:
        cluster.on_create = lambda _made: None
    result = run(cluster)
    assert (result.passed, result.skipped, requests(cluster)) == (False, False, [SMALL])
    assert result.reason.startswith("the pod with 3 aliyun.com/gpu-mem is Pending")
    assert words in result.reason


@pytest.mark.parametrize("message", [TOO_LARGE, "0/1 nodes are available: 1 Insufficient aliyun.com/gpu-mem."])
def test_pod_that_fits_on_no_gpu_beside_pods_of_others_skips_the_node(message: str) -> None:
    cluster = FakeSharing([shared_node("w1", gpus=2)])

    def allocate_gpus(made: dict[str, Any]) -> None:
        if cluster.request_of(made) == SMALL:
            cluster.store_pods += [holder("a", 15, 0), holder("b", 15, 1)]

    cluster.on_placed = allocate_gpus
    refuse(cluster, message, LARGE)
    result = run(cluster)
    assert (result.passed, result.skipped) == (False, True)
    assert result.reason.startswith("busy: ")


FAILED = {
    "phase": "Failed",
    "containerStatuses": [
        {
            "name": "smoke-test",
            "state": {
                "terminated": {
                    "exitCode": 128,
                    "reason": "StartError",
                    "message": "nvidia-container-cli: device error: no-gpu-has-3GiB-to-run: unknown device",
                }
            },
        }
    ],
}


@pytest.mark.parametrize("amount", [SMALL, LARGE])
@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("metadata", "annotations"), {}, f"came to the node without the annotation {MEMORY.gpu_annotation}, so kube"),
        (
            ("metadata", "annotations", MEMORY.gpu_annotation),
            "-1",
            "does not call the scheduler extender; run the play",
        ),
        (("status",), FAILED, "no-gpu-has-3GiB-to-run: unknown device; the device plugin found no pod of this amount"),
        (("status",), {"phase": "Pending"}, "is being created, and its kubelet reports no problem yet (after 60 s)"),
    ],
)
def test_pod_that_is_placed_without_its_gpu_fails_the_node(amount: int, path: Any, value: Any, words: str) -> None:
    cluster = FakeSharing([shared_node("w1")])
    change(cluster, amount, *path, to=value)
    result = run(cluster)
    assert (result.passed, result.skipped, requests(cluster)[-1] == TOO_MUCH) == (False, False, amount == LARGE)
    assert result.reason.startswith(f"the pod with {amount} aliyun.com/gpu-mem ")
    assert words in result.reason


def test_extender_that_is_not_called_ends_the_wait() -> None:
    cluster, clock = FakeSharing([shared_node("w1")]), FakeClock()
    cluster.calls_extender = False
    change(cluster, SMALL, "status", to={"phase": "Pending"})
    assert run(cluster, clock=clock).reason.endswith("does not call the scheduler extender; run the playbook site")
    assert clock.time < 5


def test_pods_on_different_gpus_skip_the_node() -> None:
    cluster = FakeSharing([shared_node("w1", gpus=2)])
    change(cluster, LARGE, "metadata", "annotations", MEMORY.gpu_annotation, to="1")
    result = run(cluster)
    assert (result.passed, result.skipped, result.gpu_index) == (False, True, "")
    assert result.reason == "the pods got GPU 0 and GPU 1, so that they shared none"


@pytest.mark.parametrize(
    ("annotation", "skipped", "words"),
    [
        (
            MEMORY.gpu_annotation,
            False,
            "gave GPU 0 to all pods, and they saw {}; find what sets NVIDIA_VISIBLE_DEVICES",
        ),
        ("", True, "the pods saw {}, so that they shared none"),
    ],
)
def test_pods_that_see_different_gpus_do_not_pass(annotation: str, skipped: bool, words: str) -> None:
    cluster = FakeSharing([shared_node("w1")])

    def log_other_gpu(made: dict[str, Any]) -> None:
        if cluster.request_of(made) == LARGE:
            cluster.logs[made["metadata"]["name"]] = f"NVIDIA_VISIBLE_DEVICES={uuid_of('w1', 1)}\nTest PASSED\n"

    cluster.on_placed = log_other_gpu
    result = run(cluster, replace(TEST, shared=[replace(MEMORY, gpu_annotation=annotation)]))
    assert (result.passed, result.skipped) == (False, skipped)
    assert words.format(f"{uuid_of('w1', 0)} and {uuid_of('w1', 1)}") in result.reason


@pytest.mark.parametrize(
    ("ends", "output", "words"),
    [
        (True, "no GPU here\n", "succeeded but never printed 'Test PASSED'; its last line is: no GPU"),
        (False, "working\n", "is still running, and its last line is: working (after 60 s)"),
    ],
)
def test_pods_without_the_expected_output_fail_the_node(ends: bool, output: str, words: str) -> None:
    cluster = FakeSharing([shared_node("w1")])
    cluster.ends, cluster.output = ends, output
    result = run(cluster)
    assert (result.passed, result.log_tail[-1]) == (False, output.strip())
    assert words in result.reason


def test_log_that_cannot_be_read_is_reported() -> None:
    cluster = FakeSharing([shared_node("w1")])
    cluster.log_error = ApiError("give this account the verb get on pods/log.", 403)
    assert "its log cannot be read: give this account the verb" in run(cluster).reason


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (AWAY, "stays Pending for another reason than its size: Post"),
        ("0/1 nodes are available: 1 Insufficient cpu.", "for another reason than its size: 0/1 nodes"),
    ],
)
def test_pod_pending_for_another_reason_than_its_size_fails_the_node(message: str, words: str) -> None:
    cluster = FakeSharing([shared_node("w1")])
    refuse(cluster, message, TOO_MUCH)
    result = run(cluster)
    assert (result.passed, result.pending_reason) == (False, message)
    assert words in result.reason


def test_pod_that_is_too_large_and_without_a_message_fails_the_node() -> None:
    cluster = FakeSharing([shared_node("w1")])
    change(cluster, TOO_MUCH, "status", "conditions", to=[])
    assert "the pod with 17 aliyun.com/gpu-mem stays Pending without a message" in run(cluster).reason


def test_pod_that_is_too_large_and_scheduled_fails_the_node() -> None:
    cluster = FakeSharing([shared_node("w1", gpus=2)])
    change(cluster, TOO_MUCH, "spec", "nodeName", to="w1")
    result = run(cluster)
    assert (result.passed, result.skipped) == (False, False)
    assert "17 aliyun.com/gpu-mem was scheduled, and no GPU has that much; restart the scheduler" in result.reason


def test_extender_that_answers_late_passes() -> None:
    cluster = FakeSharing([shared_node("w1")])
    refuse(cluster, AWAY, TOO_MUCH)
    lists: list[int] = []

    def recover(_cluster: FakeCluster) -> None:
        large = [item for item in cluster.store_pods if cluster.request_of(item) == TOO_MUCH]
        lists.extend(large and [1])
        if len(lists) == 3:
            large[0]["status"]["conditions"][0]["message"] = TOO_LARGE

    cluster.on_list = recover
    result = run(cluster)
    assert (result.passed, result.pending_reason) == (True, TOO_LARGE)
