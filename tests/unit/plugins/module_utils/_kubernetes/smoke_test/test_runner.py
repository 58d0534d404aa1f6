# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smoke test on a cluster in memory: what passes, what fails, and that no pod is left."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from fakes.kubernetes_api import GPU, FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.pod import LABELS, SmokeTest
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.runner import (
    remove_pods,
    run_smoke_test,
)

TEST = SmokeTest(image="reg/sample:1", expected_output="Test PASSED", timeout=60)
NOW = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)
INSUFFICIENT = [{"type": "PodScheduled", "status": "False", "message": f"0/2 nodes: 1 Insufficient {GPU}."}]


def make_timing() -> Timing:
    clock = FakeClock()
    return Timing(clock, clock.sleep, lambda: NOW)


def succeed(cluster: FakeCluster, output: str = "Test PASSED") -> None:
    def complete(made: dict[str, Any]) -> None:
        made["status"] = {"phase": "Succeeded"}
        cluster.logs[made["metadata"]["name"]] = output

    cluster.on_create = complete


def cluster_of(*names: str) -> FakeCluster:
    return FakeCluster([node(name, 1) for name in names])


def test_run_with_succeeding_pods_passes_and_leaves_no_pod() -> None:
    cluster = cluster_of("w1", "w2")
    succeed(cluster)
    # The verdict reads the log through the container's state.
    made = cluster.on_create

    def with_state(item: dict[str, Any]) -> None:
        made(item)
        item["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]

    cluster.on_create = with_state
    outcome = run_smoke_test(cluster, TEST, ["w2", "w1"], make_timing())
    assert [(result.node, result.passed) for result in outcome.results] == [("w2", True), ("w1", True)]
    assert cluster.store_pods == []
    assert outcome.removed_leftovers == []


SLICE, LARGE, SHARED = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/gpu.shared"


@pytest.mark.parametrize(
    ("resource", "allocatable", "held", "requested"),
    [
        (GPU, {GPU: 2}, {}, GPU),
        (GPU, {GPU: 0, SLICE: 7}, {}, SLICE),
        (GPU, {SLICE: 7}, {SLICE: 6}, SLICE),
        # A slice comes before a whole GPU, and a free profile before one in use.
        (GPU, {GPU: 1, SLICE: 7, LARGE: 2}, {}, SLICE),
        (GPU, {GPU: 1, SLICE: 7, LARGE: 2}, {SLICE: 7}, LARGE),
        (GPU, {GPU: 1, SLICE: 7}, {SLICE: 7}, GPU),
        # A resource that has left the node stays in its status with 0.
        (GPU, {GPU: 2, SLICE: 0}, {}, GPU),
        (GPU, {GPU: 0, SHARED: 8}, {}, SHARED),
        (GPU, {f"{SLICE}.shared": 14}, {}, f"{SLICE}.shared"),
        # A network card of NVIDIA, and the GPUs of another vendor.
        (GPU, {GPU: 1, "nvidia.com/hostdev": 8, "amd.com/gpu": 4}, {}, GPU),
        # A resource that the user has named is requested even where others are offered.
        (SHARED, {GPU: 2, SHARED: 8}, {}, SHARED),
        ("example.com/gpu", {GPU: 2, "example.com/gpu": 2}, {}, "example.com/gpu"),
    ],
)
def test_pod_requests_what_the_node_offers(
    resource: str, allocatable: dict[str, int], held: dict[str, int], requested: str
) -> None:
    offering = node("w1")
    offering["status"]["allocatable"] = {name: str(units) for name, units in allocatable.items()}
    holder = pod("held", on="w1")
    holder["spec"]["containers"][0]["resources"] = {"limits": {name: str(units) for name, units in held.items()}}
    cluster = FakeCluster([offering, node("w2", 1)], [holder])
    (result, other) = run_smoke_test(cluster, replace(TEST, resource=resource), ["w1", "w2"], make_timing()).results
    created = next(each for each in cluster.created if "w1" in str(each["spec"]["affinity"]))
    assert created["spec"]["containers"][0]["resources"]["limits"][requested] == "1"
    assert (result.resource, other.resource) == (requested, resource)


@pytest.mark.parametrize(
    ("allocatable", "reason"),
    [
        ({SLICE: 7, GPU: 0}, f"busy: 7 of 7 {SLICE} are in use by default/held"),
        ({SLICE: 0, GPU: 0}, f"has 0 allocatable {GPU}, so a device plugin has to be deployed or repaired first"),
    ],
)
def test_node_without_a_free_slice_names_the_resource(allocatable: dict[str, int], reason: str) -> None:
    offering = node("w1")
    offering["status"]["allocatable"] = {name: str(units) for name, units in allocatable.items()}
    holder = pod("held", on="w1")
    holder["spec"]["containers"][0]["resources"] = {"limits": {SLICE: "7"}}
    (result,) = run_smoke_test(FakeCluster([offering], [holder]), TEST, ["w1"], make_timing()).results
    assert result.reason == reason


def test_run_in_check_mode_creates_no_pod() -> None:
    cluster = cluster_of("w1")
    cluster.store_nodes["w2"] = node("w2")
    names = ["w1", "w2", "w9"]
    outcome = run_smoke_test(cluster, TEST, names, make_timing(), check_mode=True)
    assert cluster.created == []
    assert [(result.passed, result.skipped) for result in outcome.results] == [*[(False, True)] * 2, (False, False)]
    assert "check mode" in outcome.results[0].reason
    # A run would have deployed the device plugin before.
    assert "check mode: no GPU was tested, and at present it has 0 " in outcome.results[1].reason
    assert [result.skipped for result in run_smoke_test(cluster, TEST, ["w2"], make_timing()).results] == [False]


def test_run_removes_expired_pods_and_no_others() -> None:
    old = pod("old", labels=dict(LABELS), created="2025-12-31T00:00:00Z", activeDeadlineSeconds=60)
    young = pod("young", labels=dict(LABELS), created="2026-01-01T00:59:30Z", activeDeadlineSeconds=600)
    cluster = FakeCluster([node("w1")], [old, young])
    assert run_smoke_test(cluster, TEST, [], make_timing(), check_mode=True).removed_leftovers == ["old"]
    assert len(cluster.store_pods) == 2
    assert run_smoke_test(cluster, TEST, [], make_timing()).removed_leftovers == ["old"]
    assert [item["metadata"]["name"] for item in cluster.store_pods] == ["young"]


def test_remove_pods_removes_all_test_pods_and_no_others() -> None:
    pods = [pod("young", labels=dict(LABELS), created="2026-01-01T00:59:30Z", activeDeadlineSeconds=600), pod("other")]
    cluster = FakeCluster([node("w1")], pods)
    assert remove_pods(cluster, "default", make_timing(), check_mode=True).removed_leftovers == ["young"]
    assert len(cluster.store_pods) == 2
    outcome = remove_pods(cluster, "default", make_timing())
    assert (outcome.results, outcome.removed_leftovers, outcome.warnings) == ([], ["young"], [])
    assert [item["metadata"]["name"] for item in cluster.store_pods] == ["other"]
    assert remove_pods(cluster, "default", make_timing()).removed_leftovers == []


@pytest.mark.parametrize(
    ("status", "word"), [(403, "its log cannot be read: give this account the verb"), (400, "(no output)")]
)
def test_run_without_a_log_reports_a_refusal_only(status: int, word: str) -> None:
    cluster = cluster_of("w1")
    cluster.log_error = ApiError("give this account the verb.", status)

    def complete(made: dict[str, Any]) -> None:
        ended = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]
        made["status"] = {"phase": "Succeeded", "containerStatuses": ended}

    cluster.on_create = complete
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert not result.passed
    assert word in result.reason
    assert cluster.store_pods == []


def test_long_refusal_keeps_its_remedy() -> None:
    long = ApiError(f'User "{"u" * 400}" cannot create pods; give this account the verb create on pods.', 403)
    cluster = cluster_of("w1")

    def refuse(_made: dict[str, Any]) -> None:
        raise long

    cluster.on_create = refuse
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert result.reason.endswith("; give this account the verb create on pods")


def test_run_past_the_timeout_fails() -> None:
    cluster = cluster_of("w1")
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert not result.passed
    assert "after 60 s" in result.reason
    assert cluster.store_pods == []


def test_pod_that_cannot_start_ends_the_wait() -> None:
    cluster = cluster_of("w1")

    def block_start(made: dict[str, Any]) -> None:
        made["spec"]["nodeName"] = "w1"
        waiting = {"waiting": {"reason": "ErrImageNeverPull", "message": "not present with pull policy of Never"}}
        made["status"]["containerStatuses"] = [{"name": "c", "image": "reg/sample:1", "state": waiting}]

    cluster.on_create = block_start
    clock = FakeClock()
    outcome = run_smoke_test(cluster, TEST, ["w1"], Timing(clock, clock.sleep, lambda: NOW))
    assert "ErrImageNeverPull" in outcome.results[0].reason
    assert clock.time < 5


UNHEALTHY = f"Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices {GPU}, which is unexpected"


def reject_pods(
    cluster: FakeCluster,
    times: int,
    message: str = UNHEALTHY,
    then: Any = succeed,
    reason: str = "UnexpectedAdmissionError",
) -> None:
    """Let the kubelet of w1 reject this number of pods."""
    then(cluster)
    accept = cluster.on_create
    messages = [message] * times

    def admit(made: dict[str, Any]) -> None:
        if "w1" in str(made["spec"]["affinity"]) and messages:
            made["status"] = {"phase": "Failed", "reason": reason, "message": messages.pop()}
            return
        accept(made)
        if made["status"]["phase"] == "Succeeded":
            made["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]

    cluster.on_create = admit


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (1, UNHEALTHY),
        (3, UNHEALTHY),
        (1, f"Allocate failed due to cannot allocate unregistered device {GPU}, which is unexpected"),
        (1, f"Allocate failed due to requested number of devices unavailable for {GPU}. Requested: 1, Available: 0"),
    ],
)
def test_rejected_pod_is_replaced(times: int, message: str) -> None:
    cluster = cluster_of("w1", "w2")
    reject_pods(cluster, times, message)
    results = run_smoke_test(cluster, TEST, ["w1", "w2"], make_timing()).results
    assert [(result.node, result.passed, result.reason) for result in results] == [("w1", True, ""), ("w2", True, "")]
    assert len(cluster.created) == 2 + times
    assert cluster.store_pods == []


def test_devices_that_stay_unhealthy_are_reported_at_the_timeout() -> None:
    cluster, clock = cluster_of("w1", "w2"), FakeClock()
    reject_pods(cluster, 1000)
    results = run_smoke_test(cluster, TEST, ["w1", "w2"], Timing(clock, clock.sleep, lambda: NOW)).results
    assert [(result.passed, result.skipped) for result in results] == [(False, False), (True, False)]
    assert "cannot allocate unhealthy devices nvidia.com/gpu" in results[0].reason
    assert (clock.time, len(cluster.created)) == (58.5, 30 + 1)  # half a second until all pods are deleted
    assert cluster.store_pods == []


@pytest.mark.parametrize(
    ("allocatable", "skipped", "word"), [("0", False, "cannot allocate unhealthy"), ("1", True, "busy")]
)
def test_node_without_its_devices_is_not_busy(allocatable: str, skipped: bool, word: str) -> None:
    def leave_pending(cluster: FakeCluster) -> None:
        def pend(made: dict[str, Any]) -> None:
            made["status"].update(conditions=INSUFFICIENT)
            cluster.store_nodes["w1"]["status"]["allocatable"][GPU] = allocatable

        cluster.on_create = pend

    cluster = cluster_of("w1")
    reject_pods(cluster, 1, then=leave_pending)
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert (result.passed, result.skipped) == (False, skipped)
    assert word in result.reason
    assert cluster.store_pods == []


def test_pod_rejected_for_numa_nodes_is_replaced() -> None:
    cluster = cluster_of("w1")
    reject_pods(cluster, 1, "Resources cannot be allocated with Topology locality", reason="TopologyAffinityError")
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert (result.passed, len(cluster.created)) == (True, 2)


@pytest.mark.parametrize("call", ["create", "delete gpu-smoke-test-0"])
def test_server_that_fails_while_a_pod_is_replaced_is_retried(call: str) -> None:
    cluster = cluster_of("w1")
    reject_pods(cluster, 1)
    calls = []

    def fail(made: str) -> None:
        calls.append(made)
        if made == call and calls.count(call) == (2 if call == "create" else 1):
            raise ApiError("etcd has no leader", 503)

    cluster.on_call = fail
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert (result.passed, result.reason) == (True, "")
    assert calls.count(call) > 1
    assert cluster.store_pods == []


def test_refusal_of_the_device_plugin_ends_the_wait() -> None:
    cluster, clock = cluster_of("w1"), FakeClock()
    reject_pods(cluster, 1, "Allocate failed due to rpc error: no CDI device, which is unexpected")
    (result,) = run_smoke_test(cluster, TEST, ["w1"], Timing(clock, clock.sleep, lambda: NOW)).results
    assert "no CDI device" in result.reason
    assert (clock.time, len(cluster.created)) == (0.5, 1)


def test_refused_replacement_fails_the_node() -> None:
    cluster = cluster_of("w1")

    def refuse(_cluster: FakeCluster) -> None:
        def exceed_quota(_made: dict[str, Any]) -> None:
            raise ApiError("quota exceeded", 403)

        cluster.on_create = exceed_quota

    reject_pods(cluster, 1, then=refuse)
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert (result.passed, "quota exceeded" in result.reason) == (False, True)
    assert cluster.store_pods == []


def test_refused_pod_fails_only_its_node() -> None:
    cluster = cluster_of("w1", "w2")
    succeed(cluster)
    first = cluster.on_create

    def refuse(made: dict[str, Any]) -> None:
        if "w1" in str(made["spec"]["affinity"]):
            raise ApiError('pod rejected: RuntimeClass "nvidia" not found', 403)
        first(made)
        made["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]

    cluster.on_create = refuse
    results = run_smoke_test(cluster, TEST, ["w1", "w2"], make_timing()).results
    assert [result.passed for result in results] == [False, True]
    assert "create it (the role that deploys the device plugin does)" in results[0].reason


@pytest.mark.parametrize("error", [ApiError("forbidden", 403), KeyboardInterrupt(), SystemExit("terminated")])
def test_interrupted_run_leaves_no_pod(error: BaseException) -> None:
    cluster = cluster_of("w1")
    lists = []

    def interrupt(_cluster: FakeCluster) -> None:
        lists.append(1)
        if len(lists) == 3:  # all pods, leftovers, and now the wait
            raise error

    cluster.on_list = interrupt
    with pytest.raises(type(error)):
        run_smoke_test(cluster, TEST, ["w1"], make_timing())
    assert len(cluster.created) == 1
    assert cluster.store_pods == []


def test_server_that_fails_during_the_wait_is_retried() -> None:
    cluster = cluster_of("w1")
    succeed(cluster)
    lists = []

    def fail(_cluster: FakeCluster) -> None:
        lists.append(1)
        if len(lists) in (3, 4):  # the wait, twice
            raise ApiError("etcd has no leader", 503)

    cluster.on_list = fail
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert result.phase == "Succeeded"
    assert len(lists) > 4


def test_deleted_pod_fails_the_node() -> None:
    cluster = cluster_of("w1")

    def delete_pods(api: FakeCluster) -> None:
        api.store_pods = []

    cluster.on_list = delete_pods
    (result,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).results
    assert (result.phase, result.passed) == ("Deleted", False)


def test_pod_that_is_not_released_is_a_warning() -> None:
    cluster = cluster_of("w1")
    cluster.delete_pod = lambda *_pod: None  # type: ignore[method-assign]
    (warning,) = run_smoke_test(cluster, TEST, ["w1"], make_timing()).warnings
    assert "gpu-smoke-test-0" in warning
