# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drain of a node with an unreliable API server, concurrent runs and interrupted runs."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from fakes.drain_cluster import JOB, PARAMS, SET, DrainCluster, Killed, fail_calls, refuse_evictions
from fakes.kubernetes_api import pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import MISSING_RIGHT, ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import (
    MaintenanceError,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.runner import (
    Outcome,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import API_SECONDS


@pytest.mark.parametrize("only", ["", "node", "patch", "pods", "evict"])
def test_begin_and_end_with_server_unreachable_for_a_moment_succeed(only: str) -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_call = fail_calls(4, only)
    outcome = drain.begin()
    assert (outcome.evicted, outcome.resumed, drain.pod_names) == (["default/gpu"], False, [])
    drain.cluster.on_call = fail_calls(4)
    assert drain.end().changed
    assert not drain.is_cordoned


def test_begin_with_server_unreachable_during_jobs_retries() -> None:
    drain = DrainCluster(pod("train", **JOB))
    drain.call_at(300, lambda: setattr(drain.cluster, "on_call", fail_calls(50)))
    drain.call_at(900, lambda: drain.finish_pod("train"))
    assert drain.begin().evicted == []


@pytest.mark.parametrize("only", ["node", "pods"])
def test_begin_with_server_that_stays_unreachable_raises(only: str) -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_call = fail_calls(10**6, only)
    with pytest.raises(ApiError, match="cannot be reached"):
        drain.begin(jobs_timeout=0)
    assert API_SECONDS <= drain.time() <= API_SECONDS + 1


@pytest.mark.parametrize("kind", ["patch", "evict"])
def test_begin_and_end_with_lost_response_report_the_change(kind: str) -> None:
    """The server carried out the request, and its response was lost."""
    drain = DrainCluster(pod("gpu", **SET))
    lost = fail_calls(1, kind)
    drain.cluster.on_change = lost
    outcome = drain.begin()
    assert (outcome.evicted, outcome.changed, outcome.resumed) == (["default/gpu"], True, False)
    drain.cluster.on_change = fail_calls(1, "patch")
    assert drain.end().changed
    assert (drain.is_cordoned, drain.annotation) == (False, None)


@pytest.mark.parametrize("status", [401, 403])
def test_begin_with_permanent_error_does_not_retry(status: int) -> None:
    drain = DrainCluster(pod("gpu", **SET))
    drain.cluster.on_evict = refuse_evictions(10**6, status, MISSING_RIGHT)
    with pytest.raises(ApiError):
        drain.begin()
    assert drain.time() == 0
    assert drain.annotation


def test_begin_with_conflict_reads_the_node_again() -> None:
    drain = DrainCluster(pod("gpu", **SET))
    races = []

    def race(_name: str) -> None:
        races.append(1)
        if len(races) == 1:
            drain.node["metadata"]["resourceVersion"] = "7"
            drain.node["spec"]["unschedulable"] = True  # an administrator was faster

    drain.cluster.on_patch = race
    assert drain.begin().resumed is False
    assert (len(races), drain.annotation["was_schedulable"]) == (2, False)
    drain.end()
    assert drain.is_cordoned


def test_begin_with_endless_conflicts_raises() -> None:
    drain = DrainCluster()
    drain.cluster.on_patch = lambda _name: drain.node["metadata"].update(resourceVersion=str(drain.time() + 100))
    with pytest.raises(ApiError, match="conflict"):
        drain.begin()
    assert drain.time() == API_SECONDS


@pytest.mark.parametrize("words", ["the other", PARAMS.reason])
def test_begin_with_concurrent_run_keeps_one_record(words: str) -> None:
    """The other run cordons the node between the read and the patch; both record that it was schedulable."""
    drain = DrainCluster(pod("gpu", **SET))
    others: list[Outcome] = []

    def other(_name: str) -> None:
        drain.cluster.on_patch = lambda _name: None
        others.append(drain.begin(reason=words))

    drain.cluster.on_patch = other
    own = drain.begin()
    assert (own.resumed, own.changed, own.evicted) == (True, False, [])
    assert (others[0].resumed, others[0].evicted) == (False, ["default/gpu"])
    assert drain.annotation == {"was_schedulable": True, "reason": words, "since": "2026-08-23T07:00:00Z"}
    assert drain.end().changed is True
    assert drain.end().changed is False
    assert not drain.is_cordoned


@pytest.mark.parametrize(
    ("interfere", "words"),
    [
        (lambda drain: drain.node["spec"].pop("unschedulable"), "Node w1 was uncordoned"),
        (lambda drain: drain.end(), "The maintenance of node w1 was ended"),
    ],
)
def test_begin_with_interference_stops_evictions(interfere: Callable[[DrainCluster], Any], words: str) -> None:
    drain = DrainCluster(pod("train", **JOB), pod("gpu", **SET))
    drain.call_at(60, lambda: interfere(drain))
    with pytest.raises(MaintenanceError, match=words):
        drain.begin()
    assert drain.pod_names == ["train", "gpu"]
    assert not drain.is_cordoned


def begin_and_end(drain: DrainCluster) -> None:
    drain.begin()
    drain.end()


def make_faulty_drain(schedulable: bool) -> DrainCluster:
    spec = {} if schedulable else {"unschedulable": True}
    drain = DrainCluster(pod("a", **SET), pod("b", **SET), pod("train", **JOB), pod("web", on="w1"), **spec)
    drain.call_at(50, lambda: drain.finish_pod("train"))
    return drain


def kill_at_call(number: int) -> Callable[[str], None]:
    """Return a hook that raises Killed at the call of this number, counted from 1."""
    left = [number]

    def kill(_call: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    return kill


@pytest.mark.parametrize("schedulable", [True, False])
@pytest.mark.parametrize("hook", ["on_call", "on_change"])
def test_begin_and_end_killed_at_any_request_resume(schedulable: bool, hook: str) -> None:
    """A run that is killed before or after any request is completed by the next one."""
    calls: list[str] = []
    drain = make_faulty_drain(schedulable)
    setattr(drain.cluster, hook, calls.append)
    begin_and_end(drain)
    assert len(calls) >= (10 if hook == "on_call" else 4)
    for number in range(1, len(calls) + 1):
        drain = make_faulty_drain(schedulable)
        setattr(drain.cluster, hook, kill_at_call(number))
        with pytest.raises(Killed):
            begin_and_end(drain)
        setattr(drain.cluster, hook, lambda _call: None)
        half = drain.annotation
        assert half is None or half["was_schedulable"] is schedulable
        # The annotation and the cordon are set by one patch.
        assert drain.is_cordoned is (half is not None or not schedulable)
        drain.begin()
        assert sorted(drain.pod_names) == ["train", "web"]
        assert drain.is_cordoned
        drain.end()
        assert (drain.is_cordoned, drain.annotation) == (not schedulable, None)
