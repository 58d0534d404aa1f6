# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module's face: arguments in; changes, pods and blockers out, also when it fails."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import MISSING_RIGHT, ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.maintenance import ANNOTATION
from ansible_collections.gpu.kubernetes.plugins.modules import node_maintenance

SET = {"on": "w1", "gpus": 1, "owner": "r", "owner_kind": "ReplicaSet"}


@pytest.fixture
def run(run_module: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return partial(run_module, node_maintenance, node="w1")


def test_quartet_and_undo(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1)], [pod("gpu", **SET)])
    asked = {"state": "begin", "reason": "driver 580", "_ansible_diff": True}
    checked = run(cluster, _ansible_check_mode=True, **asked)
    done = run(cluster, **asked)
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
    again = run(cluster, **{**asked, "reason": "other"})
    assert (again["changed"], again["resumed"], again["reason"]) == (False, True, "driver 580")
    assert again["since"] == done["since"]
    assert run(cluster, _ansible_check_mode=True, **asked)["changed"] is False
    ended = run(cluster, state="end", _ansible_check_mode=True)
    assert (ended["changed"], ended["was_schedulable"], ended["schedulable"]) == (True, True, True)
    assert run(cluster, state="end")["changed"] is True
    last = run(cluster, state="end")
    assert (last["changed"], last["was_schedulable"], last["schedulable"], last["since"]) == (False, None, True, None)


def test_what_an_administrator_cordoned_stays_cordoned(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1, unschedulable=True)])
    assert run(cluster, state="end")["changed"] is False
    assert run(cluster, state="begin")["was_schedulable"] is False
    ended = run(cluster, state="end")
    assert (ended["changed"], ended["was_schedulable"], ended["schedulable"]) == (True, False, False)


def test_options_reach_their_place(run: Any) -> None:
    own = [{"name": "c", "resources": {"limits": {"example.com/npu": "1"}}}]
    cluster = FakeCluster([node("w1")], [pod("npu", on="w1", containers=own), pod("gpu", **SET)])
    done = run(cluster, state="begin", resources=["example.com/*"], force=True, grace_period=7, jobs_timeout=0)
    assert done["evicted"] == ["default/npu"]
    assert cluster.evictions == [{"pod": "default/npu", "grace_period": 7}]
    assert run(cluster, state="begin", scope="all", evict_timeout=10)["evicted"] == ["default/gpu"]


def test_a_node_may_be_cordoned_alone(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1)], [pod("gpu", **SET), pod("bare", on="w1", gpus=1)])
    done = run(cluster, state="begin", scope="none")
    assert (done["changed"], done["schedulable"], done["evicted"], done["waited_for"]) == (True, False, [], [])
    assert cluster.evictions == []
    assert run(cluster, state="end")["schedulable"] is True


def test_blockers_are_data_and_a_sentence(run: Any) -> None:
    cluster = FakeCluster([node("w1", 1)], [pod("bare", on="w1", gpus=1)])
    result = run(cluster, state="begin")
    assert result["failed"] is True
    assert result["msg"].startswith("Node w1 stays cordoned with 1 pod in the way: default/bare has no controller")
    assert "\n" not in result["msg"]
    (blocker,) = result["blockers"]
    assert sorted(blocker) == ["pod", "reason", "remedy"]
    assert (result["changed"], result["schedulable"], result["evicted"]) == (True, False, [])


def test_a_failure_in_the_middle_tells_what_was_done(run: Any) -> None:
    cluster = FakeCluster([node("w1", 2)], [pod("a", **SET), pod("b", **SET)])

    def forbid(item: Any) -> bool:
        if item["metadata"]["name"] == "b":
            raise ApiError("The Kubernetes API answered 403: no.", 403, {MISSING_RIGHT: "create pods/eviction"})
        return True

    cluster.on_evict = forbid
    result = run(cluster, state="begin")
    assert result["msg"] == (
        "The Kubernetes API answered 403: no. Node w1 stays cordoned; run again, which goes on from there."
    )
    assert (result["changed"], result["evicted"], "blockers" in result) == (True, ["default/a"], False)


def test_an_unknown_node(run: Any) -> None:
    result = run(FakeCluster([]), state="begin")
    assert (result["failed"], result["changed"]) == (True, False)
    assert result["msg"].startswith("Node w1 is not in the cluster")
    result = run(FakeCluster([]), state="end")
    assert (result.get("failed", False), result["changed"]) == (False, False)


@pytest.mark.parametrize("name", ["jobs_timeout", "evict_timeout", "grace_period"])
def test_times_are_not_negative(run: Any, name: str) -> None:
    cluster = FakeCluster([node("w1")])
    assert name in run(cluster, state="begin", **{name: -1})["msg"]
    assert cluster.calls == []
