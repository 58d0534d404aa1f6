# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smoke test: its pod, what keeps it from running, the verdict, and that nothing stays behind."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from fakes.kubernetes_api import GPU, FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.pod_failures import Evidence
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import (
    LABELS,
    Smoke,
    leftovers,
    manifest,
    precheck,
    verdict,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import (
    Pace,
    remove_pods,
    run_smoke_test,
)

SMOKE = Smoke(image="reg/sample:1", expected_output="Test PASSED", timeout=60)
NOW = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)


def test_manifest_goes_through_the_scheduler_and_the_plugin() -> None:
    made = manifest(SMOKE, "w1", "run1")
    spec = made["spec"]
    assert "nodeName" not in spec
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}]
    (container,) = spec["containers"]
    assert container["resources"]["limits"] == {GPU: "1"}
    assert "env" not in container, "a variable of the NVIDIA runtime would pass by the device plugin"
    assert not {"runtimeClassName", "schedulerName"} & set(spec)
    assert spec["restartPolicy"] == "Never"
    assert spec["activeDeadlineSeconds"] > SMOKE.timeout
    assert {"key": GPU, "operator": "Exists"} in spec["tolerations"]
    assert made["metadata"]["generateName"].endswith("-")


def test_manifest_passes_the_restricted_standard() -> None:
    spec = manifest(SMOKE, "w1", "run1")["spec"]
    inside = spec["containers"][0]["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert (inside["allowPrivilegeEscalation"], inside["capabilities"]) == (False, {"drop": ["ALL"]})
    assert spec["automountServiceAccountToken"] is False
    assert "volumes" not in spec


def test_manifest_options() -> None:
    smoke = Smoke(
        "i",
        runtime_class="nvidia",
        command=["a"],
        args=["b"],
        image_pull_secrets=["s"],
        run_as_user=0,
        tolerations=[{"key": "t"}],
        scheduler_name="second",
    )
    spec = manifest(smoke, "w1", "r")["spec"]
    assert (spec["runtimeClassName"], spec["schedulerName"]) == ("nvidia", "second")
    assert (spec["containers"][0]["command"], spec["containers"][0]["args"]) == (["a"], ["b"])
    assert spec["imagePullSecrets"] == [{"name": "s"}]
    assert spec["securityContext"]["runAsUser"] == 0
    assert "runAsNonRoot" not in spec["securityContext"]
    assert {"key": "t"} in spec["tolerations"]


@pytest.mark.parametrize(
    ("given", "pods", "skipped", "word"),
    [
        (None, [], False, "not in the cluster"),
        (node("w1", 1, unschedulable=True), [], True, "cordoned"),
        (node("w1", 1, ready=False), [], False, "is not Ready: CNI is missing"),
        (node("w1", 1, taints=[{"key": "t", "effect": "NoSchedule"}]), [], False, "taint t:NoSchedule"),
        (node("w1"), [], False, "offers 0 nvidia.com/gpu"),
        (node("w1", 2, 0), [], False, "offers 0 nvidia.com/gpu"),
        (node("w1", 2), [pod("a", on="w1", gpus=2)], True, "busy: 2 of 2 nvidia.com/gpu are in use by default/a"),
        (node("w1", 5), [pod(f"p{n}", on="w1", gpus=1) for n in range(5)], True, "default/p2 and 2 more"),
    ],
)
def test_precheck(given: Any, pods: Any, skipped: bool, word: str) -> None:
    result = precheck("w1", given, pods, SMOKE)
    assert result is not None
    assert (result.passed, result.skipped) == (False, skipped)
    assert word in result.reason


def test_a_cordon_can_be_passed() -> None:
    smoke = replace(SMOKE, cordoned=True)
    assert precheck("w1", node("w1", 1, unschedulable=True), [], smoke) is None
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}
    assert toleration in manifest(smoke, "w1", "r")["spec"]["tolerations"]
    assert toleration not in manifest(SMOKE, "w1", "r")["spec"]["tolerations"]


@pytest.mark.parametrize(
    "taints",
    [[], [{"key": GPU, "effect": "NoSchedule"}], [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]],
)
def test_precheck_finds_nothing(taints: Any) -> None:
    assert precheck("w1", node("w1", 2, taints=taints), [pod("a", on="w1", gpus=1)], SMOKE) is None


UUID = "GPU-00000000-1111-2222-3333-444444444444"
INSUFFICIENT = [{"type": "PodScheduled", "status": "False", "message": f"0/2 nodes: 1 Insufficient {GPU}."}]


@pytest.mark.parametrize(
    ("status", "log", "passed", "skipped", "word"),
    [
        ({"phase": "Succeeded"}, "a\nTest PASSED\nDone\n", True, False, ""),
        ({"phase": "Succeeded"}, "no GPU here\n", False, False, "its last line is: no GPU here"),
        ({"phase": "Succeeded"}, "", False, False, "(no output)"),
        (
            {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no device"},
            "",
            False,
            False,
            "no device",
        ),
        ({"phase": "Failed"}, "CUDA driver version is insufficient\n", False, False, "CUDA driver version"),
        ({"phase": "Pending", "conditions": INSUFFICIENT}, "", False, True, "busy: no free nvidia.com/gpu within 60 s"),
        ({"phase": "Running"}, "hello\n", False, False, "still running, and its last word is: hello (after 60 s)"),
        ({"phase": "Running"}, "", False, False, "has printed nothing"),
        ({}, "", False, False, "the pod"),
    ],
)
def test_verdict(status: Any, log: str, passed: bool, skipped: bool, word: str) -> None:
    on = "" if "conditions" in status else "w1"
    result = verdict("w1", pod("p", on=on, status=status), SMOKE, Evidence(log))
    assert (result.passed, result.skipped) == (passed, skipped)
    assert word in result.reason
    assert bool(result.reason) is not passed


NO_RIGHT = 'pods "p" is forbidden; give this account the verb get on pods/log'


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Succeeded"}, "the pod ended well, but its log cannot be read: "),
        ({"phase": "Failed"}, "the pod failed (container ended): its log cannot be read: "),
        ({"phase": "Running"}, "the pod is still running, and its log cannot be read: "),
    ],
)
def test_a_log_that_cannot_be_read_is_no_silent_pod(status: Any, words: str) -> None:
    result = verdict("w1", pod("p", on="w1", status=status), SMOKE, Evidence(log_error=NO_RIGHT))
    assert not result.passed
    assert words + NO_RIGHT in result.reason
    assert "printed" not in result.reason


def test_without_expected_output_the_log_is_not_needed() -> None:
    smoke = Smoke(image="i", expected_output="")
    assert verdict("w1", pod("p", status={"phase": "Succeeded"}), smoke, Evidence(log_error=NO_RIGHT)).passed


def test_verdict_finds_the_visible_devices() -> None:
    log = f"NVIDIA_VISIBLE_DEVICES={UUID}\n{UUID}\nTest PASSED\n"
    assert verdict("w1", pod("p", status={"phase": "Succeeded"}), SMOKE, Evidence(log)).visible_devices == [UUID]


@pytest.mark.parametrize(
    ("created", "found"), [("2026-01-01T00:00:00Z", ["p"]), ("2026-01-01T00:59:00Z", []), ("nonsense", [])]
)
def test_leftovers(created: str, found: list[str]) -> None:
    assert leftovers([pod("p", created=created, activeDeadlineSeconds=120)], NOW) == found


def pace() -> Pace:
    clock = FakeClock()
    return Pace(2, clock, clock.sleep, lambda: NOW)


def succeed(cluster: FakeCluster, output: str = "Test PASSED") -> None:
    def outcome(made: dict[str, Any]) -> None:
        made["status"] = {"phase": "Succeeded"}
        cluster.logs[made["metadata"]["name"]] = output

    cluster.on_create = outcome


def cluster_of(*names: str) -> FakeCluster:
    return FakeCluster([node(name, 1) for name in names])


def test_run_passes_and_leaves_nothing() -> None:
    cluster = cluster_of("w1", "w2")
    succeed(cluster)
    # The verdict reads the log through the container's state.
    made = cluster.on_create

    def with_state(item: dict[str, Any]) -> None:
        made(item)
        item["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]

    cluster.on_create = with_state
    outcome = run_smoke_test(cluster, SMOKE, ["w2", "w1"], pace())
    assert [(result.node, result.passed) for result in outcome.results] == [("w2", True), ("w1", True)]
    assert cluster.store_pods == []
    assert outcome.removed_leftovers == []


def test_check_mode_creates_nothing_and_proves_nothing() -> None:
    cluster = cluster_of("w1")
    cluster.store_nodes["w2"] = node("w2")
    names = ["w1", "w2", "w9"]
    outcome = run_smoke_test(cluster, SMOKE, names, pace(), check_mode=True)
    assert cluster.created == []
    assert [(result.passed, result.skipped) for result in outcome.results] == [*[(False, True)] * 2, (False, False)]
    assert "check mode" in outcome.results[0].reason
    # A run would have deployed the device plugin before.
    assert "check mode: nothing was proved, and as it is now it offers 0 " in outcome.results[1].reason
    assert [result.skipped for result in run_smoke_test(cluster, SMOKE, ["w2"], pace()).results] == [False]


def test_leftovers_are_swept_up_and_running_tests_of_others_are_not() -> None:
    old = pod("old", labels=dict(LABELS), created="2025-12-31T00:00:00Z", activeDeadlineSeconds=60)
    young = pod("young", labels=dict(LABELS), created="2026-01-01T00:59:30Z", activeDeadlineSeconds=600)
    cluster = FakeCluster([node("w1")], [old, young])
    assert run_smoke_test(cluster, SMOKE, [], pace(), check_mode=True).removed_leftovers == ["old"]
    assert len(cluster.store_pods) == 2
    assert run_smoke_test(cluster, SMOKE, [], pace()).removed_leftovers == ["old"]
    assert [item["metadata"]["name"] for item in cluster.store_pods] == ["young"]


def test_absent_removes_all_test_pods_and_nothing_else() -> None:
    pods = [pod("young", labels=dict(LABELS), created="2026-01-01T00:59:30Z", activeDeadlineSeconds=600), pod("theirs")]
    cluster = FakeCluster([node("w1")], pods)
    assert remove_pods(cluster, "default", LABELS, pace(), check_mode=True).removed_leftovers == ["young"]
    assert len(cluster.store_pods) == 2
    outcome = remove_pods(cluster, "default", LABELS, pace())
    assert (outcome.results, outcome.removed_leftovers, outcome.warnings) == ([], ["young"], [])
    assert [item["metadata"]["name"] for item in cluster.store_pods] == ["theirs"]
    assert remove_pods(cluster, "default", LABELS, pace()).removed_leftovers == []


@pytest.mark.parametrize(
    ("status", "word"), [(403, "its log cannot be read: give this account the verb"), (400, "(no output)")]
)
def test_a_refused_log_is_told_and_one_that_is_not_there_yet_is_empty(status: int, word: str) -> None:
    cluster = cluster_of("w1")
    cluster.log_error = ApiError("give this account the verb.", status)

    def succeeded(made: dict[str, Any]) -> None:
        ended = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]
        made["status"] = {"phase": "Succeeded", "containerStatuses": ended}

    cluster.on_create = succeeded
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert not result.passed
    assert word in result.reason
    assert cluster.store_pods == []


def test_a_refusal_keeps_its_remedy() -> None:
    long = ApiError(f'User "{"u" * 400}" cannot create pods; give this account the verb create on pods.', 403)
    cluster = cluster_of("w1")

    def refuse(_made: dict[str, Any]) -> None:
        raise long

    cluster.on_create = refuse
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert result.reason.endswith("; give this account the verb create on pods")


def test_time_runs_out() -> None:
    cluster = cluster_of("w1")
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert not result.passed
    assert "after 60 s" in result.reason
    assert cluster.store_pods == []


def test_what_cannot_heal_is_not_waited_for() -> None:
    cluster = cluster_of("w1")

    def hopeless(made: dict[str, Any]) -> None:
        made["spec"]["nodeName"] = "w1"
        waiting = {"waiting": {"reason": "ErrImageNeverPull", "message": "not present with pull policy of Never"}}
        made["status"]["containerStatuses"] = [{"name": "c", "image": "reg/sample:1", "state": waiting}]

    cluster.on_create = hopeless
    clock = FakeClock()
    outcome = run_smoke_test(cluster, SMOKE, ["w1"], Pace(2, clock, clock.sleep, lambda: NOW))
    assert "ErrImageNeverPull" in outcome.results[0].reason
    assert clock.time < 5


EARLY = f"Pod was rejected: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices {GPU}, which is unexpected"


def turned_away(
    cluster: FakeCluster,
    times: int,
    message: str = EARLY,
    then: Any = succeed,
    reason: str = "UnexpectedAdmissionError",
) -> None:
    """Have the kubelet of w1 turn so many pods away."""
    then(cluster)
    accept = cluster.on_create
    left = [message] * times

    def come(made: dict[str, Any]) -> None:
        if "w1" in str(made["spec"]["affinity"]) and left:
            made["status"] = {"phase": "Failed", "reason": reason, "message": left.pop()}
            return
        accept(made)
        if made["status"]["phase"] == "Succeeded":
            made["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]

    cluster.on_create = come


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (1, EARLY),
        (3, EARLY),
        (1, f"Allocate failed due to cannot allocate unregistered device {GPU}, which is unexpected"),
        (1, f"Allocate failed due to requested number of devices unavailable for {GPU}. Requested: 1, Available: 0"),
    ],
)
def test_a_pod_that_came_before_its_devices_is_followed_by_another(times: int, message: str) -> None:
    cluster = cluster_of("w1", "w2")
    turned_away(cluster, times, message)
    results = run_smoke_test(cluster, SMOKE, ["w1", "w2"], pace()).results
    assert [(result.node, result.passed, result.reason) for result in results] == [("w1", True, ""), ("w2", True, "")]
    assert len(cluster.created) == 2 + times
    assert cluster.store_pods == []


def test_devices_that_do_not_come_are_told_when_time_is_up() -> None:
    cluster, clock = cluster_of("w1", "w2"), FakeClock()
    turned_away(cluster, 1000)
    results = run_smoke_test(cluster, SMOKE, ["w1", "w2"], Pace(2, clock, clock.sleep, lambda: NOW)).results
    assert [(result.passed, result.skipped) for result in results] == [(False, False), (True, False)]
    assert "cannot allocate unhealthy devices nvidia.com/gpu" in results[0].reason
    assert (clock.time, len(cluster.created)) == (59, 30 + 1)  # one second until all are gone
    assert cluster.store_pods == []


@pytest.mark.parametrize(
    ("offered", "skipped", "word"), [("0", False, "cannot allocate unhealthy"), ("1", True, "busy")]
)
def test_a_node_whose_devices_are_gone_is_not_called_busy(offered: str, skipped: bool, word: str) -> None:
    def wait_for_the_scheduler(cluster: FakeCluster) -> None:
        def pend(made: dict[str, Any]) -> None:
            made["status"].update(conditions=INSUFFICIENT)
            cluster.store_nodes["w1"]["status"]["allocatable"][GPU] = offered

        cluster.on_create = pend

    cluster = cluster_of("w1")
    turned_away(cluster, 1, then=wait_for_the_scheduler)
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert (result.passed, result.skipped) == (False, skipped)
    assert word in result.reason
    assert cluster.store_pods == []


def test_a_kubelet_that_minds_numa_nodes_turns_pods_away_in_its_own_way() -> None:
    cluster = cluster_of("w1")
    turned_away(cluster, 1, "Resources cannot be allocated with Topology locality", reason="TopologyAffinityError")
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert (result.passed, len(cluster.created)) == (True, 2)


@pytest.mark.parametrize("call", ["create", "delete gpu-smoke-test-0"])
def test_a_server_that_is_away_while_a_pod_is_followed_is_waited_for(call: str) -> None:
    cluster = cluster_of("w1")
    turned_away(cluster, 1)
    calls = []

    def away(made: str) -> None:
        calls.append(made)
        if made == call and calls.count(call) == (2 if call == "create" else 1):
            raise ApiError("etcd has no leader", 503)

    cluster.on_call = away
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert (result.passed, result.reason) == (True, "")
    assert calls.count(call) > 1
    assert cluster.store_pods == []


def test_what_a_device_plugin_refuses_is_told_at_once() -> None:
    cluster, clock = cluster_of("w1"), FakeClock()
    turned_away(cluster, 1, "Allocate failed due to rpc error: no CDI device, which is unexpected")
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], Pace(2, clock, clock.sleep, lambda: NOW)).results
    assert "no CDI device" in result.reason
    assert (clock.time, len(cluster.created)) == (1, 1)


def test_another_pod_that_is_refused_is_the_verdict() -> None:
    cluster = cluster_of("w1")

    def refuse(_cluster: FakeCluster) -> None:
        def accept(_made: dict[str, Any]) -> None:
            raise ApiError("quota exceeded", 403)

        cluster.on_create = accept

    turned_away(cluster, 1, then=refuse)
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert (result.passed, "quota exceeded" in result.reason) == (False, True)
    assert cluster.store_pods == []


def test_a_refused_pod_fails_only_its_node() -> None:
    cluster = cluster_of("w1", "w2")
    succeed(cluster)
    first = cluster.on_create

    def refuse(made: dict[str, Any]) -> None:
        if "w1" in str(made["spec"]["affinity"]):
            raise ApiError('pod rejected: RuntimeClass "nvidia" not found', 403)
        first(made)
        made["status"]["containerStatuses"] = [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]

    cluster.on_create = refuse
    results = run_smoke_test(cluster, SMOKE, ["w1", "w2"], pace()).results
    assert [result.passed for result in results] == [False, True]
    assert "create it (roles k8s_device_plugin and gpushare do)" in results[0].reason


@pytest.mark.parametrize("error", [ApiError("forbidden", 403), KeyboardInterrupt(), SystemExit("terminated")])
def test_an_interrupted_run_cleans_up(error: BaseException) -> None:
    cluster = cluster_of("w1")
    lists = []

    def interrupt(_cluster: FakeCluster) -> None:
        lists.append(1)
        if len(lists) == 3:  # all pods, leftovers, and now the wait
            raise error

    cluster.on_list = interrupt
    with pytest.raises(type(error)):
        run_smoke_test(cluster, SMOKE, ["w1"], pace())
    assert len(cluster.created) == 1
    assert cluster.store_pods == []


def test_a_server_that_is_away_for_a_moment_is_waited_for() -> None:
    cluster = cluster_of("w1")
    succeed(cluster)
    lists = []

    def away(_cluster: FakeCluster) -> None:
        lists.append(1)
        if len(lists) in (3, 4):  # the wait, twice
            raise ApiError("etcd has no leader", 503)

    cluster.on_list = away
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert result.phase == "Succeeded"
    assert len(lists) > 4


def test_a_pod_deleted_by_somebody_else() -> None:
    cluster = cluster_of("w1")

    def vanish(api: FakeCluster) -> None:
        api.store_pods = []

    cluster.on_list = vanish
    (result,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).results
    assert (result.phase, result.passed) == ("Deleted", False)


def test_a_pod_that_does_not_go_away_is_a_warning() -> None:
    cluster = cluster_of("w1")
    cluster.delete_pod = lambda *_pod: None  # type: ignore[method-assign]
    (warning,) = run_smoke_test(cluster, SMOKE, ["w1"], pace()).warnings
    assert "gpu-smoke-test-0" in warning
