# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drain of a node with an unreliable API server, concurrent runs and interrupted runs."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from fakes.kubernetes_api import pod
from fakes.maintained_node import JOB, PARAMS, SET, Killed, Scene, away, refuse

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
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_call = away(4, only)
    outcome = scene.begin()
    assert (outcome.evicted, outcome.resumed, scene.names) == (["default/gpu"], False, [])
    scene.cluster.on_call = away(4)
    assert scene.end().changed
    assert not scene.cordoned


def test_begin_with_server_unreachable_during_jobs_retries() -> None:
    scene = Scene(pod("train", **JOB))
    scene.at(300, lambda: setattr(scene.cluster, "on_call", away(50)))
    scene.at(900, lambda: scene.finished("train"))
    assert scene.begin().evicted == []


@pytest.mark.parametrize("only", ["node", "pods"])
def test_begin_with_server_that_stays_unreachable_raises(only: str) -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_call = away(10**6, only)
    with pytest.raises(ApiError, match="cannot be reached"):
        scene.begin(jobs_timeout=0)
    assert API_SECONDS <= scene.time() <= API_SECONDS + 1


@pytest.mark.parametrize("kind", ["patch", "evict"])
def test_begin_and_end_with_lost_response_report_the_change(kind: str) -> None:
    """The server carried out the request, and its response was lost."""
    scene = Scene(pod("gpu", **SET))
    lost = away(1, kind)
    scene.cluster.on_done = lost
    outcome = scene.begin()
    assert (outcome.evicted, outcome.changed, outcome.resumed) == (["default/gpu"], True, False)
    scene.cluster.on_done = away(1, "patch")
    assert scene.end().changed
    assert (scene.cordoned, scene.annotation) == (False, None)


@pytest.mark.parametrize("status", [401, 403])
def test_begin_with_permanent_error_does_not_retry(status: int) -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = refuse(10**6, status, MISSING_RIGHT)
    with pytest.raises(ApiError):
        scene.begin()
    assert scene.time() == 0
    assert scene.annotation


def test_begin_with_conflict_reads_the_node_again() -> None:
    scene = Scene(pod("gpu", **SET))
    races = []

    def race(_name: str) -> None:
        races.append(1)
        if len(races) == 1:
            scene.node["metadata"]["resourceVersion"] = "7"
            scene.node["spec"]["unschedulable"] = True  # an administrator was faster

    scene.cluster.on_patch = race
    assert scene.begin().resumed is False
    assert (len(races), scene.annotation["was_schedulable"]) == (2, False)
    scene.end()
    assert scene.cordoned


def test_begin_with_endless_conflicts_raises() -> None:
    scene = Scene()
    scene.cluster.on_patch = lambda _name: scene.node["metadata"].update(resourceVersion=str(scene.time() + 100))
    with pytest.raises(ApiError, match="conflict"):
        scene.begin()
    assert scene.time() == API_SECONDS


@pytest.mark.parametrize("words", ["the other", PARAMS.reason])
def test_begin_with_concurrent_run_keeps_one_record(words: str) -> None:
    """The other run cordons the node between the read and the patch; both keep that it was schedulable."""
    scene = Scene(pod("gpu", **SET))
    others: list[Outcome] = []

    def other(_name: str) -> None:
        scene.cluster.on_patch = lambda _name: None
        others.append(scene.begin(reason=words))

    scene.cluster.on_patch = other
    own = scene.begin()
    assert (own.resumed, own.changed, own.evicted) == (True, False, [])
    assert (others[0].resumed, others[0].evicted) == (False, ["default/gpu"])
    assert scene.annotation == {"was_schedulable": True, "reason": words, "since": "2026-08-23T07:00:00Z"}
    assert scene.end().changed is True
    assert scene.end().changed is False
    assert not scene.cordoned


@pytest.mark.parametrize(
    ("interfere", "words"),
    [
        (lambda scene: scene.node["spec"].pop("unschedulable"), "Node w1 was uncordoned"),
        (lambda scene: scene.end(), "The maintenance of node w1 was ended"),
    ],
)
def test_begin_with_interference_stops_evictions(interfere: Callable[[Scene], Any], words: str) -> None:
    scene = Scene(pod("train", **JOB), pod("gpu", **SET))
    scene.at(60, lambda: interfere(scene))
    with pytest.raises(MaintenanceError, match=words):
        scene.begin()
    assert scene.names == ["train", "gpu"]
    assert not scene.cordoned


def whole(scene: Scene) -> None:
    scene.begin()
    scene.end()


def scene_of_faults(schedulable: bool) -> Scene:
    spec = {} if schedulable else {"unschedulable": True}
    scene = Scene(pod("a", **SET), pod("b", **SET), pod("train", **JOB), pod("web", on="w1"), **spec)
    scene.at(50, lambda: scene.finished("train"))
    return scene


def killer(victim: int) -> Callable[[str], None]:
    """A hook that kills at the call of this number, counted from 1."""
    left = [victim]

    def kill(_call: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    return kill


@pytest.mark.parametrize("schedulable", [True, False])
@pytest.mark.parametrize("hook", ["on_call", "on_done"])
def test_begin_and_end_killed_at_any_request_resume(schedulable: bool, hook: str) -> None:
    """A run that is killed before or after any request is completed by the next one."""
    calls: list[str] = []
    scene = scene_of_faults(schedulable)
    setattr(scene.cluster, hook, calls.append)
    whole(scene)
    assert len(calls) >= (10 if hook == "on_call" else 4)
    for victim in range(1, len(calls) + 1):
        scene = scene_of_faults(schedulable)
        setattr(scene.cluster, hook, killer(victim))
        with pytest.raises(Killed):
            whole(scene)
        setattr(scene.cluster, hook, lambda _call: None)
        half = scene.annotation
        assert half is None or half["was_schedulable"] is schedulable
        # The annotation and the cordon are set by one patch.
        assert scene.cordoned is (half is not None or not schedulable)
        scene.begin()
        assert sorted(scene.names) == ["train", "web"]
        assert scene.cordoned
        scene.end()
        assert (scene.cordoned, scene.annotation) == (not schedulable, None)
