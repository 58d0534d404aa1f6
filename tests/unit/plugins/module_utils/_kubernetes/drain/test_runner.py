# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drain of a node: evicted pods, blockers, waits, and the end that restores the node."""

from __future__ import annotations

import copy

import pytest
from fakes.drain_cluster import BARE, JOB, PARAMS, SET, DrainCluster, fail_calls, refuse_evictions
from fakes.kubernetes_api import pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import (
    MaintenanceError,
    Rules,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.runner import (
    LONGEST_PAUSE_FOR_JOBS,
    Blocked,
    build_diff,
)


def test_begin_by_default_evicts_gpu_pods_only() -> None:
    drain = DrainCluster(
        pod("gpu", **SET),
        pod("web", on="w1"),
        pod("far", **{**SET, "on": "w2"}),
        pod("p", **{**SET, "owner_kind": "DaemonSet"}),
    )
    outcome = drain.begin()
    assert (outcome.evicted, outcome.left, outcome.waited_for) == (["default/gpu"], ["default/p"], [])
    assert drain.pod_names == ["web", "far", "p"]
    assert drain.is_cordoned
    assert drain.annotation == {"was_schedulable": True, "reason": "driver 580", "since": "2026-08-23T07:00:00Z"}
    assert (outcome.changed, outcome.resumed) == (True, False)
    again = drain.begin(reason="another")
    assert (again.changed, again.resumed, again.evicted) == (False, True, [])
    assert drain.annotation["reason"] == "driver 580"


def test_begin_with_all_pods_keeps_daemon_sets_only() -> None:
    drain = DrainCluster(
        pod("gpu", **SET),
        pod("web", on="w1", owner="r", owner_kind="ReplicaSet"),
        pod("proxy", on="w1", owner="kube-proxy"),
        pod("api", on="w1", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("done", on="w1", status={"phase": "Succeeded"}),
    )
    assert drain.begin(rules=Rules(everything=True), grace_period=5).evicted == ["default/gpu", "default/web"]
    assert drain.pod_names == ["proxy", "api", "done"]
    assert [item["grace_period"] for item in drain.cluster.evictions] == [5, 5]


def test_begin_without_pods_makes_few_calls() -> None:
    drain = DrainCluster(*(pod(f"p{number}", **SET) for number in range(3)))
    drain.begin()
    reads = ["node", "pods"]
    assert drain.cluster.calls == ["node", "patch w1", *reads, *(f"evict default/p{n}" for n in range(3)), *reads]


@pytest.mark.parametrize("schedulable", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_begin_and_end_with_check_and_repeat_restore_the_node(schedulable: bool, check: bool) -> None:
    """Begin and end, each checked, run and repeated, restore the node."""
    spec = {} if schedulable else {"unschedulable": True}
    drain = DrainCluster(pod("gpu", **SET), **spec)
    before = copy.deepcopy(drain.node)
    predicted = drain.begin(check_mode=True)
    assert drain.node == before
    assert not [call for call in drain.cluster.calls if call.startswith(("patch", "evict"))]
    done = drain.begin()
    assert build_diff(predicted) == build_diff(done)
    assert (predicted.changed, done.changed, predicted.evicted) == (True, True, done.evicted)
    assert drain.begin(check_mode=check).changed is False
    predicted, ended = drain.end(check_mode=True), drain.end()
    assert build_diff(predicted) == build_diff(ended) != {"before": {}, "after": {}}
    assert drain.end(check_mode=check).changed is False
    assert drain.is_cordoned is not schedulable
    assert drain.annotation is None
    for state in (drain.node, before):
        state["metadata"].pop("resourceVersion")
        state["metadata"].pop("annotations", None)
    assert drain.node == before


def test_end_for_another_reason_changes_nothing() -> None:
    drain = DrainCluster()
    drain.begin(reason="a disk")
    before = copy.deepcopy(drain.node)
    assert not drain.end(reason="a driver").changed
    assert drain.node == before
    assert drain.end(reason="a disk").changed
    assert not drain.is_cordoned


def test_begin_with_budget_that_allows_later_retries() -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_evict = refuse_evictions(4)
    assert drain.begin().evicted == ["default/gpu"]
    assert [call for call in drain.cluster.calls if call.startswith("evict")] == ["evict default/gpu"] * 5
    assert drain.time() == 1 + 2 + 4 + 8 + 10  # pauses grow, up to ten seconds


def test_begin_with_budget_that_never_allows_is_blocked() -> None:
    drain = DrainCluster(pod("gpu", **SET), pod("other", **SET))
    drain.cluster.on_evict = lambda item: refuse_evictions(1)(item) if item["metadata"]["name"] == "gpu" else True
    error, outcome = drain.begin_blocked()
    assert [item.pod for item in error.blockers] == ["default/gpu"]
    assert "default/gpu is protected by a PodDisruptionBudget (The disruption budget web needs 1" in str(error)
    assert (outcome.evicted, outcome.changed) == (["default/other"], True)
    assert drain.time() == PARAMS.evict_timeout
    drain.cluster.on_evict = lambda _pod: True
    resumed_drain = drain.begin()
    assert (resumed_drain.evicted, resumed_drain.resumed) == (["default/gpu"], True)
    assert drain.end().changed
    assert not drain.is_cordoned


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_begin_with_pod_without_controller_is_blocked_before_eviction(policy: str) -> None:
    drain = DrainCluster(pod("bare", **{**BARE, "restartPolicy": policy}), pod("gpu", **SET))
    error, outcome = drain.begin_blocked(jobs_timeout=600)
    assert [item.pod for item in error.blockers] == ["default/bare"]
    assert (outcome.evicted, drain.cluster.evictions) == ([], [])
    assert drain.time() == (600 if policy == "Never" else 0)  # no wait for a pod that never ends
    assert ("has not ended in 600 s" in str(error)) is (policy == "Never")
    assert drain.begin(rules=Rules(force=True), jobs_timeout=0).evicted == ["default/bare", "default/gpu"]


def test_begin_with_blocker_does_not_wait_for_jobs() -> None:
    drain = DrainCluster(pod("bare", **{**BARE, "restartPolicy": "Always"}), pod("train", **JOB))
    error, outcome = drain.begin_blocked()
    assert [item.pod for item in error.blockers] == ["default/bare"]
    assert (drain.time(), outcome.waited_for) == (0, [])


def test_begin_without_timeout_tries_once() -> None:
    drain = DrainCluster(pod("gpu", **SET), pod("gone", **SET))
    drain.cluster.on_call = lambda call: drain.delete_pod("gone") if call == "evict default/gone" else None
    assert drain.begin(evict_timeout=0, jobs_timeout=0).evicted == ["default/gpu"]


def test_begin_with_job_that_ends_in_time_does_not_evict_it() -> None:
    drain = DrainCluster(pod("train", **JOB), pod("bare", **BARE), pod("gpu", **SET))
    drain.call_at(100, lambda: drain.finish_pod("train"))
    drain.call_at(200, lambda: drain.finish_pod("bare"))
    outcome = drain.begin()
    assert (outcome.waited_for, outcome.evicted) == (["default/bare", "default/train"], ["default/gpu"])
    assert 200 <= drain.time() <= 200 + LONGEST_PAUSE_FOR_JOBS


def test_begin_with_job_that_does_not_end_evicts_it() -> None:
    drain = DrainCluster(pod("train", **JOB))
    outcome = drain.begin(jobs_timeout=100)
    assert (outcome.waited_for, outcome.evicted) == (["default/train"], ["default/train"])
    assert drain.time() == 101
    drain = DrainCluster(pod("train", **JOB))
    assert drain.begin(jobs_timeout=0).waited_for == []


def test_begin_with_grace_period_waits_for_it() -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_evict = lambda _pod: False
    drain.call_at(40, lambda: drain.delete_pod("gpu"))
    assert drain.begin().evicted == ["default/gpu"]
    assert drain.time() >= 40
    assert len(drain.cluster.evictions) == 1


def test_begin_with_pod_that_does_not_stop_is_blocked() -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_evict = lambda _pod: False
    error, outcome = drain.begin_blocked(evict_timeout=50)
    assert "default/gpu is being deleted, due at 2026-01-01T00:00:30Z: set gpu_node_maintenance_evict_timeout" in str(
        error
    )
    assert outcome.evicted == ["default/gpu"]
    second, _outcome = drain.begin_blocked(evict_timeout=0)
    assert second.blockers[0].pod == "default/gpu"


def test_begin_with_new_pod_of_same_name_does_not_evict_it() -> None:
    drain = DrainCluster(pod("db-0", **SET))

    def move_pod(call: str) -> None:
        if call == "evict default/db-0" and drain.cluster.store_pods[0]["spec"]["nodeName"] == "w1":
            drain.cluster.store_pods[0]["metadata"]["uid"] = "new"
            drain.cluster.store_pods[0]["spec"]["nodeName"] = "w2"

    drain.cluster.on_call = move_pod
    assert drain.begin().evicted == []
    assert drain.pod_names == ["db-0"]


def test_begin_with_pod_that_ends_by_itself_does_not_report_it() -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_call = lambda call: drain.delete_pod("gpu") if call.startswith("evict") else None
    assert drain.begin().evicted == []


def test_check_mode_with_jobs_and_blockers_reports_both() -> None:
    drain = DrainCluster(pod("train", **JOB), pod("gpu", **SET))
    outcome = drain.begin(check_mode=True)
    assert (outcome.waited_for, outcome.evicted) == (["default/train"], ["default/gpu"])
    assert drain.begin(check_mode=True, jobs_timeout=0).evicted == ["default/gpu", "default/train"]
    drain = DrainCluster(pod("bare", **BARE))
    assert drain.begin(check_mode=True).waited_for == ["default/bare"]
    with pytest.raises(
        Blocked,
        match="The drain of node w1 would be blocked by 1 pod, and the node would stay cordoned: default/bare has no",
    ):
        drain.begin(check_mode=True, jobs_timeout=0)
    assert not drain.is_cordoned


def test_check_mode_with_budget_predicts_blocker() -> None:
    drain = DrainCluster(pod("train", **JOB), pod("web", **SET), pod("x", **SET))
    drain.cluster.on_evict = lambda item: item["metadata"]["name"] == "x" or refuse_evictions(1)(item)
    before = copy.deepcopy((drain.node, drain.cluster.store_pods))
    caught, outcome = drain.begin_blocked(check_mode=True)
    assert str(caught).startswith(
        "The drain of node w1 would be blocked by 1 pod, and the node would stay cordoned: default/web is protected by a PodDisruptionBudget (The disruption"
    )
    assert outcome.evicted == ["default/x"]
    assert drain.cluster.calls == ["node", "pods", "try default/web", "try default/x"]
    assert (drain.node, drain.cluster.store_pods, drain.time()) == (*before, 0), "it does not wait"
    caught, _outcome = drain.begin_blocked(check_mode=True, jobs_timeout=0)
    assert [item.pod for item in caught.blockers] == ["default/train", "default/web"]


def test_check_mode_with_unreachable_server_retries() -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_call = fail_calls(4, "try")
    assert drain.begin(check_mode=True).evicted == ["default/gpu"]
    drain.cluster.on_call = fail_calls(10**6, "try")
    with pytest.raises(ApiError, match="cannot be reached"):
        drain.begin(check_mode=True)


def test_unknown_node_fails_begin_and_warns_at_end() -> None:
    drain = DrainCluster()
    drain.cluster.store_nodes.clear()
    with pytest.raises(MaintenanceError, match="Node w1 is not in the cluster at https"):
        drain.begin()
    for check in (True, False):
        ended = drain.end(check)
        assert (ended.changed, ended.plan) == (False, None)
        assert ended.warnings == [
            "Node w1 is not in the cluster at https://api.test:6443, so it has no maintenance to end."
        ]
