# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: parameters, changes, pods and blockers, also in a failure."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import MISSING_RIGHT, ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import ANNOTATION
from ansible_collections.gpu.kubernetes.plugins.modules import node_maintenance

SET = {"on": "w1", "gpus": 1, "owner": "r", "owner_kind": "ReplicaSet"}


@pytest.fixture
def run(run_module: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return partial(run_module, node_maintenance, node="w1")


def test_check_run_repeat_and_undo_restore_the_node(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1)], [pod("gpu", **SET)])
    params = {"state": "begin", "reason": "driver 580", "_ansible_diff": True}
    checked = run(cluster, _ansible_check_mode=True, **params)
    done = run(cluster, **params)
    assert checked["changed"] is done["changed"] is True
    assert checked["diff"] == done["diff"]
    assert done["diff"]["before"] == {"cordoned": False, ANNOTATION: None, "pods": ["default/gpu"]}
    assert done["diff"]["after"] == {
        "cordoned": True,
        ANNOTATION: {"reason": "driver 580", "was_schedulable": True},
        "pods": [],
    }
    assert (done["was_schedulable"], done["schedulable"], done["resumed"]) == (True, False, False)
    assert (done["evicted"], done["waited_for"], done["left"]) == (["default/gpu"], [], [])
    again = run(cluster, **{**params, "reason": "other"})
    assert (again["changed"], again["resumed"], again["reason"]) == (False, True, "driver 580")
    assert again["since"] == done["since"]
    assert run(cluster, _ansible_check_mode=True, **params)["changed"] is False
    ended = run(cluster, state="end", _ansible_check_mode=True)
    assert (ended["changed"], ended["was_schedulable"], ended["schedulable"]) == (True, True, True)
    assert run(cluster, state="end")["changed"] is True
    last = run(cluster, state="end")
    assert (last["changed"], last["was_schedulable"], last["schedulable"], last["since"]) == (False, None, True, None)


def test_end_of_node_cordoned_before_keeps_the_cordon(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1, unschedulable=True)])
    assert run(cluster, state="end")["changed"] is False
    assert run(cluster, state="begin")["was_schedulable"] is False
    ended = run(cluster, state="end")
    assert (ended["changed"], ended["was_schedulable"], ended["schedulable"]) == (True, False, False)


def test_parameters_are_passed_on(run: Any) -> None:
    own = [{"name": "c", "resources": {"limits": {"example.com/npu": "1"}}}]
    cluster = FakeCluster([node("w1")], [pod("npu", on="w1", containers=own), pod("gpu", **SET)])
    done = run(cluster, state="begin", resources=["example.com/*"], force=True, grace_period=7, jobs_timeout=0)
    assert done["evicted"] == ["default/npu"]
    assert cluster.evictions == [{"pod": "default/npu", "grace_period": 7}]
    assert run(cluster, state="begin", scope="all", evict_timeout=10)["evicted"] == ["default/gpu"]


def test_scope_none_only_cordons(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1)], [pod("gpu", **SET), pod("bare", on="w1", gpus=1)])
    done = run(cluster, state="begin", scope="none")
    assert (done["changed"], done["schedulable"], done["evicted"], done["waited_for"]) == (True, False, [], [])
    assert cluster.evictions == []
    assert run(cluster, state="end")["schedulable"] is True


def test_blockers_are_returned_and_named_in_the_message(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1)], [pod("bare", on="w1", gpus=1)])
    result = run(cluster, state="begin")
    assert result["failed"] is True
    assert result["msg"].startswith(
        "The drain of node w1 is blocked by 1 pod, and the node stays cordoned: default/bare has no controller"
    )
    assert "\n" not in result["msg"]
    (blocker,) = result["blockers"]
    assert sorted(blocker) == ["pod", "reason", "remedy"]
    assert (result["changed"], result["schedulable"], result["evicted"]) == (True, False, [])


def test_failure_during_drain_returns_what_was_done(run: Any) -> None:
    cluster = FakeCluster([node("w1", 2)], [pod("a", **SET), pod("b", **SET)])

    def forbid(item: Any) -> bool:
        if item["metadata"]["name"] == "b":
            raise ApiError("The Kubernetes API answered 403: no.", 403, {MISSING_RIGHT: "create pods/eviction"})
        return True

    cluster.on_evict = forbid
    result = run(cluster, state="begin")
    assert result["msg"] == (
        "The Kubernetes API answered 403: no. Node w1 stays cordoned; run again, which resumes the drain."
    )
    assert (result["changed"], result["evicted"], "blockers" in result) == (True, ["default/a"], False)


def test_unknown_node_fails(run: Any) -> None:
    result = run(FakeCluster([]), state="begin")
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].startswith("Node w1 is not in the cluster")
    result = run(FakeCluster([]), state="end")
    assert (result.get("failed", False), result["changed"]) == (False, False)


@pytest.mark.parametrize("name", ["jobs_timeout", "evict_timeout", "grace_period"])
def test_negative_times_fail(run: Any, name: str) -> None:
    cluster = FakeCluster([node("w1")])
    assert name in run(cluster, state="begin", **{name: -1})["msg"]
    assert cluster.calls == []
