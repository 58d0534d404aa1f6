# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emptying a node against an API server that refuses, goes away and changes, and by runs that are cut off anywhere."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Callable

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import MISSING_RIGHT, ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.maintaining import (
    API_SECONDS,
    LONGEST_PAUSE_FOR_JOBS,
    Blocked,
    Outcome,
    Pace,
    Wish,
    begin,
    diff_of,
    end,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.maintenance import (
    ANNOTATION,
    MaintenanceError,
    Rules,
)

WISH = Wish("w1", reason="driver 580")
SET = {"on": "w1", "gpus": 1, "owner": "r", "owner_kind": "ReplicaSet"}
JOB = {"on": "w1", "gpus": 1, "owner": "j", "owner_kind": "Job", "restartPolicy": "Never"}
BARE = {"on": "w1", "gpus": 1, "restartPolicy": "Never"}


class Killed(BaseException):
    """What SIGKILL is to a test."""


class Scene:
    """A cluster, its time, and what happens when."""

    def __init__(self, *pods: Any, **spec: Any) -> None:
        self.cluster = FakeCluster([node("w1", 2, **spec), node("w2", 2)], list(pods))
        self.time = FakeClock()
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.pace = Pace(self.time, self._sleep, lambda: datetime(2026, 8, 23, 7, tzinfo=timezone.utc))

    def _sleep(self, seconds: float) -> None:
        self.time.sleep(seconds)
        due = [step for step in self.later if step[0] <= self.time()]
        self.later = [step for step in self.later if step not in due]
        for _when, act in due:
            act()

    def at(self, seconds: float, act: Callable[[], None]) -> None:
        self.later.append((seconds, act))

    def gone(self, name: str) -> None:
        self.cluster.store_pods = [item for item in self.cluster.store_pods if item["metadata"]["name"] != name]

    def finished(self, name: str) -> None:
        for item in self.cluster.store_pods:
            if item["metadata"]["name"] == name:
                item["status"]["phase"] = "Succeeded"

    @property
    def node(self) -> dict[str, Any]:
        return self.cluster.store_nodes["w1"]

    @property
    def cordoned(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))

    @property
    def annotation(self) -> Any:
        text = self.node["metadata"].get("annotations", {}).get(ANNOTATION)
        return json.loads(text) if text else None

    @property
    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.cluster.store_pods]

    def begin(self, wish: Wish = WISH, check_mode: bool = False, **changes: Any) -> Outcome:
        outcome = Outcome()
        begin(self.cluster, replace(wish, **changes), outcome, self.pace, check_mode)
        return outcome

    def end(self, check_mode: bool = False) -> Outcome:
        outcome = Outcome()
        end(self.cluster, "w1", outcome, self.pace, check_mode)
        return outcome

    def blocked(self, **changes: Any) -> tuple[Blocked, Outcome]:
        outcome = Outcome()
        with pytest.raises(Blocked) as caught:
            begin(self.cluster, replace(WISH, **changes), outcome, self.pace)
        assert self.cordoned
        assert self.annotation
        return caught.value, outcome


def refuse(times: int, status: int = 429, cause: str = "DisruptionBudget") -> Callable[[Any], bool]:
    """An answer to evictions that is no so often, and then yes."""
    left = [times]

    def answer(_pod: Any) -> bool:
        if left[0]:
            left[0] -= 1
            raise ApiError("it answered no.", status, {cause: "The disruption budget web needs 1 healthy pods"})
        return True

    return answer


def away(times: int, only: str = "") -> Callable[[str], None]:
    """A server that cannot be reached for so many calls of a kind."""
    left = [times]

    def call(name: str) -> None:
        if left[0] and name.startswith(only):
            left[0] -= 1
            raise ApiError("The Kubernetes API cannot be reached.")

    return call


def test_gpu_pods_go_and_others_stay() -> None:
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


def test_all_pods_go_before_a_reboot() -> None:
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


def test_calls_are_few() -> None:
    scene = Scene(*(pod(f"p{number}", **SET) for number in range(3)))
    scene.begin()
    looks = ["node", "pods"]
    assert scene.cluster.calls == ["node", "patch w1", *looks, *(f"evict default/p{n}" for n in range(3)), *looks]


@pytest.mark.parametrize("schedulable", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_quartet_and_undo(schedulable: bool, check: bool) -> None:
    """Check, run, check, run; end the same way; and then the node is what it was."""
    spec = {} if schedulable else {"unschedulable": True}
    scene = Scene(pod("gpu", **SET), **spec)
    before = copy.deepcopy(scene.node)
    predicted = scene.begin(check_mode=True)
    assert scene.node == before
    assert not [call for call in scene.cluster.calls if call.startswith(("patch", "evict"))]
    done = scene.begin()
    assert diff_of(predicted) == diff_of(done)
    assert (predicted.changed, done.changed, predicted.evicted) == (True, True, done.evicted)
    assert scene.begin(check_mode=check).changed is False
    foreseen, ended = scene.end(check_mode=True), scene.end()
    assert diff_of(foreseen) == diff_of(ended) != {"before": {}, "after": {}}
    assert scene.end(check_mode=check).changed is False
    assert scene.cordoned is not schedulable
    assert scene.annotation is None
    for seen in (scene.node, before):
        seen["metadata"].pop("resourceVersion")
        seen["metadata"].pop("annotations", None)
    assert scene.node == before


def test_a_budget_that_allows_it_later() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = refuse(4)
    assert scene.begin().evicted == ["default/gpu"]
    assert [call for call in scene.cluster.calls if call.startswith("evict")] == ["evict default/gpu"] * 5
    assert scene.time() == 1 + 2 + 4 + 8 + 10  # pauses grow, up to ten seconds


def test_a_budget_that_never_allows_it() -> None:
    scene = Scene(pod("gpu", **SET), pod("other", **SET))
    scene.cluster.on_evict = lambda item: refuse(1)(item) if item["metadata"]["name"] == "gpu" else True
    error, outcome = scene.blocked()
    assert [item.pod for item in error.blockers] == ["default/gpu"]
    assert "default/gpu is kept by a PodDisruptionBudget (The disruption budget web needs 1" in str(error)
    assert (outcome.evicted, outcome.changed) == (["default/other"], True)
    assert scene.time() == WISH.evict_timeout
    scene.cluster.on_evict = lambda _pod: True
    healed = scene.begin()
    assert (healed.evicted, healed.resumed) == (["default/gpu"], True)
    assert scene.end().changed
    assert not scene.cordoned


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_a_pod_without_a_controller_blocks_before_anybody_is_evicted(policy: str) -> None:
    scene = Scene(pod("bare", **{**BARE, "restartPolicy": policy}), pod("gpu", **SET))
    error, outcome = scene.blocked(jobs_timeout=600)
    assert [item.pod for item in error.blockers] == ["default/bare"]
    assert (outcome.evicted, scene.cluster.evictions) == ([], [])
    assert scene.time() == (600 if policy == "Never" else 0)  # one that never ends is not waited for
    assert ("has not ended in 600 s" in str(error)) is (policy == "Never")
    assert scene.begin(rules=Rules(force=True), jobs_timeout=0).evicted == ["default/bare", "default/gpu"]


def test_nobody_waits_for_jobs_in_vain() -> None:
    scene = Scene(pod("bare", **{**BARE, "restartPolicy": "Always"}), pod("train", **JOB))
    error, outcome = scene.blocked()
    assert [item.pod for item in error.blockers] == ["default/bare"]
    assert (scene.time(), outcome.waited_for) == (0, [])


def test_without_patience_there_is_one_try_and_one_more_look() -> None:
    scene = Scene(pod("gpu", **SET), pod("gone", **SET))
    scene.cluster.on_call = lambda call: scene.gone("gone") if call == "evict default/gone" else None
    assert scene.begin(evict_timeout=0, jobs_timeout=0).evicted == ["default/gpu"]


def test_a_job_that_ends_in_time() -> None:
    scene = Scene(pod("train", **JOB), pod("bare", **BARE), pod("gpu", **SET))
    scene.at(100, lambda: scene.finished("train"))
    scene.at(200, lambda: scene.finished("bare"))
    outcome = scene.begin()
    assert (outcome.waited_for, outcome.evicted) == (["default/bare", "default/train"], ["default/gpu"])
    assert 200 <= scene.time() <= 200 + LONGEST_PAUSE_FOR_JOBS


def test_a_job_that_does_not_end_in_time() -> None:
    scene = Scene(pod("train", **JOB))
    outcome = scene.begin(jobs_timeout=100)
    assert (outcome.waited_for, outcome.evicted) == (["default/train"], ["default/train"])
    assert scene.time() == 101
    scene = Scene(pod("train", **JOB))
    assert scene.begin(jobs_timeout=0).waited_for == []


def test_grace_periods_are_waited_for() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = lambda _pod: False
    scene.at(40, lambda: scene.gone("gpu"))
    assert scene.begin().evicted == ["default/gpu"]
    assert scene.time() >= 40
    assert len(scene.cluster.evictions) == 1


def test_a_pod_that_does_not_go() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = lambda _pod: False
    error, outcome = scene.blocked(evict_timeout=50)
    assert "default/gpu is to be gone by 2026-01-01T00:00:30Z and is not: give it more than 50 s" in str(error)
    assert outcome.evicted == ["default/gpu"]
    second, _outcome = scene.blocked(evict_timeout=0)
    assert second.blockers[0].pod == "default/gpu"


def test_a_pod_of_the_same_name_that_started_elsewhere_is_safe() -> None:
    scene = Scene(pod("db-0", **SET))

    def moved(call: str) -> None:
        if call == "evict default/db-0" and scene.cluster.store_pods[0]["spec"]["nodeName"] == "w1":
            scene.cluster.store_pods[0]["metadata"]["uid"] = "new"
            scene.cluster.store_pods[0]["spec"]["nodeName"] = "w2"

    scene.cluster.on_call = moved
    assert scene.begin().evicted == []
    assert scene.names == ["db-0"]


def test_a_pod_that_went_by_itself_is_not_counted() -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_call = lambda call: scene.gone("gpu") if call.startswith("evict") else None
    assert scene.begin().evicted == []


@pytest.mark.parametrize("only", ["", "node", "patch", "pods", "evict"])
def test_a_server_that_is_away_for_a_moment(only: str) -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_call = away(4, only)
    outcome = scene.begin()
    assert (outcome.evicted, outcome.resumed, scene.names) == (["default/gpu"], False, [])
    scene.cluster.on_call = away(4)
    assert scene.end().changed
    assert not scene.cordoned


def test_a_server_that_goes_away_while_jobs_are_waited_for() -> None:
    scene = Scene(pod("train", **JOB))
    scene.at(300, lambda: setattr(scene.cluster, "on_call", away(50)))
    scene.at(900, lambda: scene.finished("train"))
    assert scene.begin().evicted == []


@pytest.mark.parametrize("only", ["node", "pods"])
def test_a_server_that_stays_away(only: str) -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_call = away(10**6, only)
    with pytest.raises(ApiError, match="cannot be reached"):
        scene.begin(jobs_timeout=0)
    assert API_SECONDS <= scene.time() <= API_SECONDS + 1


@pytest.mark.parametrize("kind", ["patch", "evict"])
def test_an_answer_that_is_lost_is_no_other_truth(kind: str) -> None:
    """The server did what was asked, and nobody heard."""
    scene = Scene(pod("gpu", **SET))
    lost = away(1, kind)
    scene.cluster.on_done = lost
    outcome = scene.begin()
    assert (outcome.evicted, outcome.changed, outcome.resumed) == (["default/gpu"], True, False)
    scene.cluster.on_done = away(1, "patch")
    assert scene.end().changed
    assert (scene.cordoned, scene.annotation) == (False, None)


@pytest.mark.parametrize("status", [401, 403])
def test_what_may_not_be_done_is_not_tried_again(status: int) -> None:
    scene = Scene(pod("gpu", **SET))
    scene.cluster.on_evict = refuse(10**6, status, MISSING_RIGHT)
    with pytest.raises(ApiError):
        scene.begin()
    assert scene.time() == 0
    assert scene.annotation


def test_a_node_that_changes_meanwhile_is_read_again() -> None:
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


def test_a_node_that_changes_all_the_time() -> None:
    scene = Scene()
    scene.cluster.on_patch = lambda _name: scene.node["metadata"].update(resourceVersion=str(scene.time() + 100))
    with pytest.raises(ApiError, match="conflict"):
        scene.begin()
    assert scene.time() == API_SECONDS


@pytest.mark.parametrize("words", ["the other", WISH.reason])
def test_two_at_once_end_in_one_maintenance(words: str) -> None:
    """The other run takes the node between our look and our patch; neither forgets that it was schedulable."""
    scene = Scene(pod("gpu", **SET))
    others: list[Outcome] = []

    def other(_name: str) -> None:
        scene.cluster.on_patch = lambda _name: None
        others.append(scene.begin(reason=words))

    scene.cluster.on_patch = other
    mine = scene.begin()
    assert (mine.resumed, mine.changed, mine.evicted) == (True, False, [])
    assert (others[0].resumed, others[0].evicted) == (False, ["default/gpu"])
    assert scene.annotation == {"was_schedulable": True, "reason": words, "since": "2026-08-23T07:00:00Z"}
    assert scene.end().changed is True
    assert scene.end().changed is False
    assert not scene.cordoned


@pytest.mark.parametrize(
    ("interfere", "words"),
    [
        (lambda scene: scene.node["spec"].pop("unschedulable"), "Somebody uncordoned node w1"),
        (lambda scene: scene.end(), "Somebody ended the maintenance of node w1"),
    ],
)
def test_whoever_wants_the_node_back_gets_it(interfere: Callable[[Scene], Any], words: str) -> None:
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
def test_killed_between_any_two_requests(schedulable: bool, hook: str) -> None:
    """Wherever a run is cut off, before or after a request took effect, the next one ends where one alone would have."""
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
        # In maintenance and cordoned are one and the same, so that no half can be seen.
        assert scene.cordoned is (half is not None or not schedulable)
        scene.begin()
        assert sorted(scene.names) == ["train", "web"]
        assert scene.cordoned
        scene.end()
        assert (scene.cordoned, scene.annotation) == (not schedulable, None)


def test_check_mode_tells_what_waits_and_what_blocks() -> None:
    scene = Scene(pod("train", **JOB), pod("gpu", **SET))
    told = scene.begin(check_mode=True)
    assert (told.waited_for, told.evicted) == (["default/train"], ["default/gpu"])
    assert scene.begin(check_mode=True, jobs_timeout=0).evicted == ["default/gpu", "default/train"]
    scene = Scene(pod("bare", **BARE))
    assert scene.begin(check_mode=True).waited_for == ["default/bare"]
    with pytest.raises(
        Blocked, match="Node w1 would stay cordoned with 1 pod in the way: default/bare has no controller"
    ):
        scene.begin(check_mode=True, jobs_timeout=0)
    assert not scene.cordoned


def test_a_node_that_is_not_there() -> None:
    scene = Scene()
    scene.cluster.store_nodes.clear()
    for act in (scene.begin, scene.end):
        with pytest.raises(MaintenanceError, match="Node w1 is not in the cluster at https"):
            act()
