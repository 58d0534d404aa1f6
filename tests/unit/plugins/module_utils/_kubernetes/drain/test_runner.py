# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drain of a node: evicted pods, blockers, waits, and the end that restores the node."""

from __future__ import annotations

import copy

import pytest
from fakes.kubernetes_api import pod
from fakes.maintained_node import BARE, JOB, PARAMS, SET, Scene, away, refuse

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
    scene = Scene(
        pod("gpu", **SET),
        pod("web", on="w1"),
        pod("far", **{**SET, "on": "w2"}),
        pod("p", **{**SET, "owner_kind": "DaemonSet"}),
    )
    outcome = scene.begin()
    assert (outcome.evicted, outcome.left, outcome.waited_for) == (["default/gpu"], ["default/p"], [])
    assert scene.names == ["web", "far", "p"]
    assert scene.cordoned
    assert scene.annotation == {"was_schedulable": True, "reason": "driver 580", "since": "2026-08-23T07:00:00Z"}
    assert (outcome.changed, outcome.resumed) == (True, False)
    again = scene.begin(reason="another")
    assert (again.changed, again.resumed, again.evicted) == (False, True, [])
    assert scene.annotation["reason"] == "driver 580"


def test_begin_with_all_pods_keeps_daemon_sets_only() -> None:
    scene = Scene(
        pod("gpu", **SET),
        pod("web", on="w1", owner="r", owner_kind="ReplicaSet"),
        pod("proxy", on="w1", owner="kube-proxy"),
        pod("api", on="w1", annotations={"kubernetes.io/config.mirror": "x"}),
        pod("done", on="w1", status={"phase": "Succeeded"}),
    )
    assert scene.begin(rules=Rules(everything=True), grace_period=5).evicted == ["default/gpu", "default/web"]
    assert scene.names == ["proxy", "api", "done"]
    assert [item["grace_period"] for item in scene.cluster.evictions] == [5, 5]


def test_begin_without_pods_makes_few_calls() -> None:
    scene = Scene(*(pod(f"p{number}", **SET) for number in range(3)))
    scene.begin()
    reads = ["node", "pods"]
    assert scene.cluster.calls == ["node", "patch w1", *reads, *(f"evict default/p{n}" for n in range(3)), *reads]


@pytest.mark.parametrize("schedulable", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_begin_and_end_with_check_and_repeat_restore_the_node(schedulable: bool, check: bool) -> None:
    """Check, run, check, run; end the same way; and then the node is what it was."""
    spec = {} if schedulable else {"unschedulable": True}
    scene = Scene(pod("gpu", **SET), **spec)
    before = copy.deepcopy(scene.node)
    predicted = scene.begin(check_mode=True)
    assert scene.node == before
    assert not [call for call in scene.cluster.calls if call.startswith(("patch", "evict"))]
    done = scene.begin()
    assert build_diff(predicted) == build_diff(done)
    assert (predicted.changed, done.changed, predicted.evicted) == (True, True, done.evicted)
    assert scene.begin(check_mode=check).changed is False
    predicted, ended = scene.end(check_mode=True), scene.end()
    assert build_diff(predicted) == build_diff(ended) != {"before": {}, "after": {}}
    assert scene.end(check_mode=check).changed is False
    assert scene.cordoned is not schedulable
    assert scene.annotation is None
    for state in (scene.node, before):
        state["metadata"].pop("resourceVersion")
        state["metadata"].pop("annotations", None)
    assert scene.node == before


def test_end_for_another_reason_changes_nothing() -> None:
    scene = Scene()
    scene.begin(reason="a disk")
    before = copy.deepcopy(scene.node)
    assert not scene.end(reason="a driver").changed
    assert scene.node == before
    assert scene.end(reason="a disk").changed
    assert not scene.cordoned


def test_begin_with_budget_that_allows_later_retries() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = refuse(4)
    assert scene.begin().evicted == ["default/gpu"]
    assert [call for call in scene.cluster.calls if call.startswith("evict")] == ["evict default/gpu"] * 5
    assert scene.time() == 1 + 2 + 4 + 8 + 10  # pauses grow, up to ten seconds


def test_begin_with_budget_that_never_allows_is_blocked() -> None:
    scene = Scene(pod("gpu", **SET), pod("other", **SET))
    scene.cluster.on_evict = lambda item: refuse(1)(item) if item["metadata"]["name"] == "gpu" else True
    error, outcome = scene.blocked()
    assert [item.pod for item in error.blockers] == ["default/gpu"]
    assert "default/gpu is protected by a PodDisruptionBudget (The disruption budget web needs 1" in str(error)
    assert (outcome.evicted, outcome.changed) == (["default/other"], True)
    assert scene.time() == PARAMS.evict_timeout
    scene.cluster.on_evict = lambda _pod: True
    healed = scene.begin()
    assert (healed.evicted, healed.resumed) == (["default/gpu"], True)
    assert scene.end().changed
    assert not scene.cordoned


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_begin_with_pod_without_controller_is_blocked_before_eviction(policy: str) -> None:
    scene = Scene(pod("bare", **{**BARE, "restartPolicy": policy}), pod("gpu", **SET))
    error, outcome = scene.blocked(jobs_timeout=600)
    assert [item.pod for item in error.blockers] == ["default/bare"]
    assert (outcome.evicted, scene.cluster.evictions) == ([], [])
    assert scene.time() == (600 if policy == "Never" else 0)  # one that never ends is not waited for
    assert ("has not ended in 600 s" in str(error)) is (policy == "Never")
    assert scene.begin(rules=Rules(force=True), jobs_timeout=0).evicted == ["default/bare", "default/gpu"]


def test_begin_with_blocker_does_not_wait_for_jobs() -> None:
    scene = Scene(pod("bare", **{**BARE, "restartPolicy": "Always"}), pod("train", **JOB))
    error, outcome = scene.blocked()
    assert [item.pod for item in error.blockers] == ["default/bare"]
    assert (scene.time(), outcome.waited_for) == (0, [])


def test_begin_without_timeout_tries_once() -> None:
    scene = Scene(pod("gpu", **SET), pod("gone", **SET))
    scene.cluster.on_call = lambda call: scene.gone("gone") if call == "evict default/gone" else None
    assert scene.begin(evict_timeout=0, jobs_timeout=0).evicted == ["default/gpu"]


def test_begin_with_job_that_ends_in_time_does_not_evict_it() -> None:
    scene = Scene(pod("train", **JOB), pod("bare", **BARE), pod("gpu", **SET))
    scene.at(100, lambda: scene.finished("train"))
    scene.at(200, lambda: scene.finished("bare"))
    outcome = scene.begin()
    assert (outcome.waited_for, outcome.evicted) == (["default/bare", "default/train"], ["default/gpu"])
    assert 200 <= scene.time() <= 200 + LONGEST_PAUSE_FOR_JOBS


def test_begin_with_job_that_does_not_end_evicts_it() -> None:
    scene = Scene(pod("train", **JOB))
    outcome = scene.begin(jobs_timeout=100)
    assert (outcome.waited_for, outcome.evicted) == (["default/train"], ["default/train"])
    assert scene.time() == 101
    scene = Scene(pod("train", **JOB))
    assert scene.begin(jobs_timeout=0).waited_for == []


def test_begin_with_grace_period_waits_for_it() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = lambda _pod: False
    scene.at(40, lambda: scene.gone("gpu"))
    assert scene.begin().evicted == ["default/gpu"]
    assert scene.time() >= 40
    assert len(scene.cluster.evictions) == 1


def test_begin_with_pod_that_does_not_stop_is_blocked() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = lambda _pod: False
    error, outcome = scene.blocked(evict_timeout=50)
    assert "default/gpu is being deleted, due at 2026-01-01T00:00:30Z: set gpu_node_maintenance_evict_timeout" in str(
        error
    )
    assert outcome.evicted == ["default/gpu"]
    second, _outcome = scene.blocked(evict_timeout=0)
    assert second.blockers[0].pod == "default/gpu"


def test_begin_with_new_pod_of_same_name_does_not_evict_it() -> None:
    scene = Scene(pod("db-0", **SET))

    def moved(call: str) -> None:
        if call == "evict default/db-0" and scene.cluster.store_pods[0]["spec"]["nodeName"] == "w1":
            scene.cluster.store_pods[0]["metadata"]["uid"] = "new"
            scene.cluster.store_pods[0]["spec"]["nodeName"] = "w2"

    scene.cluster.on_call = moved
    assert scene.begin().evicted == []
    assert scene.names == ["db-0"]


def test_begin_with_pod_that_ends_by_itself_does_not_report_it() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_call = lambda call: scene.gone("gpu") if call.startswith("evict") else None
    assert scene.begin().evicted == []


def test_check_mode_with_jobs_and_blockers_reports_both() -> None:
    scene = Scene(pod("train", **JOB), pod("gpu", **SET))
    outcome = scene.begin(check_mode=True)
    assert (outcome.waited_for, outcome.evicted) == (["default/train"], ["default/gpu"])
    assert scene.begin(check_mode=True, jobs_timeout=0).evicted == ["default/gpu", "default/train"]
    scene = Scene(pod("bare", **BARE))
    assert scene.begin(check_mode=True).waited_for == ["default/bare"]
    with pytest.raises(
        Blocked,
        match="The drain of node w1 would be blocked by 1 pod, and the node would stay cordoned: default/bare has no",
    ):
        scene.begin(check_mode=True, jobs_timeout=0)
    assert not scene.cordoned


def test_check_mode_with_budget_predicts_blocker() -> None:
    scene = Scene(pod("train", **JOB), pod("web", **SET), pod("x", **SET))
    scene.cluster.on_evict = lambda item: item["metadata"]["name"] == "x" or refuse(1)(item)
    before = copy.deepcopy((scene.node, scene.cluster.store_pods))
    caught, outcome = scene.blocked(check_mode=True)
    assert str(caught).startswith(
        "The drain of node w1 would be blocked by 1 pod, and the node would stay cordoned: default/web is protected by a PodDisruptionBudget (The disruption"
    )
    assert outcome.evicted == ["default/x"]
    assert scene.cluster.calls == ["node", "pods", "try default/web", "try default/x"]
    assert (scene.node, scene.cluster.store_pods, scene.time()) == (*before, 0), "it does not wait"
    caught, _outcome = scene.blocked(check_mode=True, jobs_timeout=0)
    assert [item.pod for item in caught.blockers] == ["default/train", "default/web"]


def test_check_mode_with_unreachable_server_retries() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_call = away(4, "try")
    assert scene.begin(check_mode=True).evicted == ["default/gpu"]
    scene.cluster.on_call = away(10**6, "try")
    with pytest.raises(ApiError, match="cannot be reached"):
        scene.begin(check_mode=True)


def test_unknown_node_fails_begin_and_warns_at_end() -> None:
    scene = Scene()
    scene.cluster.store_nodes.clear()
    with pytest.raises(MaintenanceError, match="Node w1 is not in the cluster at https"):
        scene.begin()
    for check in (True, False):
        ended = scene.end(check)
        assert (ended.changed, ended.plan) == (False, None)
        assert ended.warnings == [
            "Node w1 is not in the cluster at https://api.test:6443, so it has no maintenance to end."
        ]
