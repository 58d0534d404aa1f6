# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof of shared GPUs, on a cluster in memory: what passes, what is skipped, every fault with its remedy, and a clean floor."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from fakes.gpushare import GPU_MEM, share_pod
from fakes.gpushare_cluster import ASSIGNED, AWAY, INDEX, REQUEST, FakeGpushare, request_of, shared_node, uuid_of
from fakes.kubernetes_api import FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.proving import (
    remove_sharing_pods,
    run_sharing_test,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.sharing import NAME, Sharing
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import LABELS, Smoke, labels_for
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import Pace, run_smoke_test

SMOKE = Smoke(image="reg/sample:1", expected_output="Test PASSED", timeout=60)
SHARING = Sharing(SMOKE)
NOW = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)


def pace() -> Pace:
    clock = FakeClock()
    return Pace(2, clock, clock.sleep, lambda: NOW)


def prove(cluster: FakeCluster, sharing: Sharing = SHARING, nodes: Any = ("w1",)) -> Any:
    """Return the result of the only node, or of all; nothing of the test is left in the cluster."""
    results = run_sharing_test(cluster, sharing, nodes, pace()).results
    assert not [item for item in cluster.store_pods if item["metadata"].get("labels") == labels_for(NAME)]
    return results[0] if len(results) == 1 else results


def asked(cluster: FakeCluster) -> list[int]:
    return [request_of(item) for item in cluster.created]


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


def test_a_node_that_fails_keeps_no_other_from_its_test() -> None:
    cluster = FakeGpushare([shared_node("w1"), shared_node("w2")])
    cluster.refusal = lambda made: AWAY if "w1" in str(made["spec"]["affinity"]) else ""
    first, second = prove(cluster, nodes=["w1", "w2"])
    assert (first.passed, second.passed, second.percent) == (False, True, [0, 18, 50])
    assert len(first.pods) == 1


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


def says(cluster: FakeGpushare, message: str, amount: int = 0) -> None:
    """Have kube-scheduler refuse the pod of an amount, or all."""
    cluster.refusal = lambda made: message if request_of(made) == amount or not amount else ""


def does(cluster: FakeGpushare, amount: int, *path: str, to: Any) -> None:
    """Give a part of the pod of an amount another value once it is placed."""

    def change(made: dict[str, Any]) -> None:
        if request_of(made) == amount:
            place = made
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = to

    cluster.on_placed = change


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


@pytest.mark.parametrize(
    ("amount", "path", "value", "words"),
    [
        (
            3,
            ("metadata", "annotations"),
            {},
            f"the pod of 3 GiB came to the node without the annotation {INDEX}, so kube",
        ),
        (3, ("metadata", "annotations", INDEX), "-1", "run the playbook patch_kube_scheduler"),
        (5, ("metadata", "annotations", ASSIGNED), "false", f"has not taken it up ({ASSIGNED} is 'false')"),
        (5, ("metadata", "annotations", REQUEST), "4", "the pod of 5 GiB counts as '4' for gpushare's extender"),
        (3, ("status",), FAILED, "no-gpu-has-3GiB-to-run: unknown device; gpushare's device plugin found no pod"),
        (
            5,
            ("status",),
            {"phase": "Pending"},
            "the pod of 5 GiB is being created, and its kubelet tells of no trouble yet (after 60 s)",
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
        ("failed bind with extender at URL http://10.0.0.1:32766/gpushare-scheduler, code 500", "see that gpushare's"),
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


def two_gpus() -> FakeGpushare:
    return FakeGpushare([shared_node("w1", gpus=2)])


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


@pytest.mark.parametrize("amount", [3, 5, 17])
def test_a_pod_deleted_by_somebody_else(amount: int) -> None:
    cluster = FakeGpushare([shared_node("w1")])

    def vanish(_cluster: FakeCluster) -> None:
        cluster.store_pods = [item for item in cluster.store_pods if request_of(item) != amount]

    cluster.on_list = vanish
    result = prove(cluster)
    assert not result.passed
    assert "somebody deleted the pod default/gpushare-smoke-test-" in result.reason
    assert len(cluster.created) == {3: 1, 5: 2, 17: 3}[amount]


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
    assert result.reason.endswith(
        "kube-scheduler does not ask gpushare's extender; run the playbook patch_kube_scheduler"
    )
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
        else "kube-scheduler does not ask gpushare's extender; run the playbook patch_kube_scheduler"
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


@pytest.mark.parametrize("amount", [3, 5, 17])
def test_a_refused_pod_fails_only_its_node(amount: int) -> None:
    cluster = FakeGpushare([shared_node("w1"), shared_node("w2")])
    place = cluster.on_create

    def refuse(made: dict[str, Any]) -> None:
        if "w1" in str(made["spec"]["affinity"]) and request_of(made) == amount:
            raise ApiError('pod rejected: RuntimeClass "nvidia" not found', 403)
        place(made)

    cluster.on_create = refuse
    first, second = prove(cluster, nodes=["w1", "w2"])
    assert (first.passed, second.passed) == (False, True)
    assert f"the API server refused the pod of {amount} GiB: pod rejected" in first.reason


@pytest.mark.parametrize("error", [ApiError("gone away", 0), KeyboardInterrupt(), SystemExit("terminated")])
@pytest.mark.parametrize("last", range(3, 9))
def test_an_interrupted_run_cleans_up(error: BaseException, last: int) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    lists: list[int] = []

    def interrupt(_cluster: FakeCluster) -> None:
        lists.append(1)
        # 1 all pods, 2 leftovers, 3 and 5 the steps with the allocation after each, 7 what is too large, 8 the end
        if len(lists) == last:
            raise error

    cluster.on_list = interrupt
    with pytest.raises(type(error)):
        run_sharing_test(cluster, SHARING, ["w1"], pace())
    assert len(cluster.created) == (last - 1) // 2
    assert cluster.store_pods == []


def test_an_api_server_that_goes_away_between_pods() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    place = cluster.on_create

    def away(made: dict[str, Any]) -> None:
        if request_of(made) == 5:
            raise ApiError("cannot be reached", 0)
        place(made)

    cluster.on_create = away
    with pytest.raises(ApiError):
        run_sharing_test(cluster, SHARING, ["w1"], pace())
    assert cluster.store_pods == []


def test_leftovers_are_swept_up_and_only_those_of_this_test() -> None:
    def old(name: str, labels: dict[str, str]) -> dict[str, Any]:
        return pod(name, labels=labels, created="2025-12-31T00:00:00Z", activeDeadlineSeconds=60)

    young = pod("young", labels=labels_for(NAME), created="2026-01-01T00:59:30Z", activeDeadlineSeconds=600)
    cluster = FakeGpushare([node("w1")], [old("ours", labels_for(NAME)), old("theirs", dict(LABELS)), young])
    assert run_sharing_test(cluster, SHARING, [], pace(), check_mode=True).removed_leftovers == ["ours"]
    assert len(cluster.store_pods) == 3
    assert run_sharing_test(cluster, SHARING, [], pace()).removed_leftovers == ["ours"]
    assert run_smoke_test(cluster, SMOKE, [], pace()).removed_leftovers == ["theirs"]
    assert remove_sharing_pods(cluster, "default", pace()).removed_leftovers == ["young"]
    assert cluster.store_pods == []
