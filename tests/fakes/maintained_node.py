# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in maintenance on the fake API server: what happens when, and answers that refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import (
    ANNOTATION,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.runner import (
    Blocked,
    DrainParams,
    Outcome,
    begin_maintenance,
    end_maintenance,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing

PARAMS = DrainParams("w1", reason="driver 580")
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
        self.pace = Timing(self.time, self._sleep, lambda: datetime(2026, 8, 23, 7, tzinfo=timezone.utc))  # noqa: UP017 - Python 3.8 runs it too

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

    def begin(self, params: DrainParams = PARAMS, check_mode: bool = False, **changes: Any) -> Outcome:
        outcome = Outcome()
        begin_maintenance(self.cluster, replace(params, **changes), outcome, self.pace, check_mode)
        return outcome

    def end(self, check_mode: bool = False, reason: str = "") -> Outcome:
        outcome = Outcome()
        end_maintenance(self.cluster, DrainParams("w1", reason), outcome, self.pace, check_mode)
        return outcome

    def blocked(self, check_mode: bool = False, **changes: Any) -> tuple[Blocked, Outcome]:
        outcome = Outcome()
        with pytest.raises(Blocked) as caught:
            begin_maintenance(self.cluster, replace(PARAMS, **changes), outcome, self.pace, check_mode)
        assert self.cordoned is not check_mode
        assert bool(self.annotation) is not check_mode
        return caught.value, outcome


def refuse(times: int, status: int = 429, cause: str = "DisruptionBudget") -> Callable[[Any], bool]:
    """An answer to evictions that rejects so many times, and then accepts."""
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
