# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in maintenance on the fake API server, with scheduled events and failing calls."""

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
    """A SIGKILL in a test."""


class DrainCluster:
    """A cluster, its clock, and events at given times."""

    def __init__(self, *pods: Any, **spec: Any) -> None:
        self.cluster = FakeCluster([node("w1", 2, **spec), node("w2", 2)], list(pods))
        self.time = FakeClock()
        self.scheduled: list[tuple[float, Callable[[], None]]] = []
        self.timing = Timing(self.time, self._sleep, lambda: datetime(2026, 8, 23, 7, tzinfo=timezone.utc))  # noqa: UP017 - Python 3.8 runs it too

    def _sleep(self, seconds: float) -> None:
        self.time.sleep(seconds)
        due = [step for step in self.scheduled if step[0] <= self.time()]
        self.scheduled = [step for step in self.scheduled if step not in due]
        for _when, act in due:
            act()

    def call_at(self, seconds: float, act: Callable[[], None]) -> None:
        self.scheduled.append((seconds, act))

    def delete_pod(self, name: str) -> None:
        self.cluster.store_pods = [item for item in self.cluster.store_pods if item["metadata"]["name"] != name]

    def finish_pod(self, name: str) -> None:
        for item in self.cluster.store_pods:
            if item["metadata"]["name"] == name:
                item["status"]["phase"] = "Succeeded"

    @property
    def node(self) -> dict[str, Any]:
        return self.cluster.store_nodes["w1"]

    @property
    def is_cordoned(self) -> bool:
        return bool(self.node["spec"].get("unschedulable"))

    @property
    def annotation(self) -> Any:
        text = self.node["metadata"].get("annotations", {}).get(ANNOTATION)
        return json.loads(text) if text else None

    @property
    def pod_names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.cluster.store_pods]

    def begin(self, params: DrainParams = PARAMS, check_mode: bool = False, **changes: Any) -> Outcome:
        outcome = Outcome()
        begin_maintenance(self.cluster, replace(params, **changes), outcome, self.timing, check_mode)
        return outcome

    def end(self, check_mode: bool = False, reason: str = "") -> Outcome:
        outcome = Outcome()
        end_maintenance(self.cluster, DrainParams("w1", reason), outcome, self.timing, check_mode)
        return outcome

    def begin_blocked(self, check_mode: bool = False, **changes: Any) -> tuple[Blocked, Outcome]:
        outcome = Outcome()
        with pytest.raises(Blocked) as caught:
            begin_maintenance(self.cluster, replace(PARAMS, **changes), outcome, self.timing, check_mode)
        assert self.is_cordoned is not check_mode
        assert bool(self.annotation) is not check_mode
        return caught.value, outcome


def refuse_evictions(times: int, status: int = 429, cause: str = "DisruptionBudget") -> Callable[[Any], bool]:
    """Return a hook for evictions that refuses that many times, and then accepts."""
    remaining = [times]

    def answer(_pod: Any) -> bool:
        if remaining[0]:
            remaining[0] -= 1
            raise ApiError("it answered no.", status, {cause: "The disruption budget web needs 1 healthy pods"})
        return True

    return answer


def fail_calls(times: int, only: str = "") -> Callable[[str], None]:
    """Return a hook for calls that fails that many calls of a kind, as an unreachable server."""
    remaining = [times]

    def call(name: str) -> None:
        if remaining[0] and name.startswith(only):
            remaining[0] -= 1
            raise ApiError("The Kubernetes API cannot be reached.")

    return call
