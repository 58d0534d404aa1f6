# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import CriMissingError, QueryError
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.verdict import (
    Desired,
    Observation,
    build_facts,
    judge_daemon,
    list_handlers,
    list_remarks,
    wait_for_verdict,
)

ACTIVE = {"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "NRestarts": "0"}
READY = {"RuntimeReady": {"status": True, "reason": "", "message": ""}}


def make_observation(
    unit: dict[str, str] | None = None,
    failure: QueryError | None = None,
    conditions: dict[str, Any] | None = None,
    runtimes: Iterable[str] | Mapping[str, str | None] = ("runc",),
) -> Observation:
    if failure:
        return Observation("containerd", unit or ACTIVE, failure=failure)
    programs = runtimes if isinstance(runtimes, Mapping) else dict.fromkeys(runtimes)
    answer: dict[str, Any] = {
        "conditions": READY if conditions is None else conditions,
        "handlers": [],
        "runtime_version": "2.1.4",
    }
    effective = {
        "default_runtime": "runc",
        "enable_cdi": None,
        "runtimes": {name: {"binary": path} for name, path in programs.items()},
    }
    return Observation("containerd", unit or ACTIVE, answer, effective)


STARTING = {**ACTIVE, "ActiveState": "activating", "SubState": "auto-restart", "Result": "exit-code"}
FAILED = {**ACTIVE, "ActiveState": "failed", "SubState": "failed", "Result": "exit-code"}
MISSING = {"LoadState": "not-found", "ActiveState": "inactive"}
NO_SOCKET = QueryError("/run/c.sock: No such file or directory")
NO_CLIENT = QueryError("crictl is not installed", "install crictl")
NO_CRI = CriMissingError("unknown service runtime.v1.RuntimeService")
NOT_READY = {"RuntimeReady": {"status": False, "reason": "x", "message": "no runtime"}}


@pytest.mark.parametrize(
    ("observation", "desired", "ok", "final", "words"),
    [
        (make_observation(), Desired(), True, True, ""),
        (make_observation(runtimes=("nvidia", "runc")), Desired("nvidia", "runc"), True, True, ""),
        (make_observation(unit=MISSING), Desired(), False, True, "systemd has no service containerd"),
        (make_observation(unit=FAILED, failure=NO_SOCKET), Desired(), False, True, "is failed (failed, exit-code)"),
        (
            make_observation(unit=STARTING, failure=NO_SOCKET),
            Desired(),
            False,
            False,
            "is activating (auto-restart, exit-code)",
        ),
        (make_observation(failure=NO_SOCKET), Desired(), False, False, "No such file or directory"),
        (make_observation(failure=NO_CLIENT), Desired(), False, False, "does not answer (crictl is not installed)"),
        (make_observation(failure=NO_CRI), Desired(), False, True, "without its CRI plugin"),
        (make_observation(conditions=NOT_READY), Desired(), False, False, "not ready (no runtime)"),
        (make_observation(conditions={}), Desired(), False, False, "no reason given"),
        (make_observation(), Desired("nvidia"), False, True, "without the runtime nvidia (it has runc)"),
        (make_observation(), Desired("runc", "nvidia"), False, True, "is runc and not nvidia"),
        (make_observation(runtimes={"nvidia": "/new"}), Desired("nvidia", None, "/new"), True, True, ""),
        (
            make_observation(runtimes={"nvidia": "/old"}),
            Desired("nvidia", None, "/new"),
            False,
            True,
            "nvidia with /old and not with /new",
        ),
        (make_observation(runtimes={"nvidia": None}), Desired("nvidia", None, "/new"), True, True, ""),
        # a daemon that does not report its runtimes is accepted
        (make_observation(runtimes=()), Desired("nvidia"), True, True, ""),
    ],
)
def test_judge_daemon_of_each_observation(
    observation: Observation, desired: Desired, ok: bool, final: bool, words: str
) -> None:
    verdict = judge_daemon(observation, desired)
    assert (verdict.ok, verdict.final) == (ok, final)
    assert words in verdict.cause
    assert bool(verdict.remedy) is not ok
    assert verdict.sentence == ("" if ok else f"{verdict.cause}; {verdict.remedy}")


class Clock:
    """A clock that advances only by sleep."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def run(observations: Iterator[Observation], seconds: float, desired: Desired | None = None) -> tuple[bool, float, int]:
    """Return whether the verdict is good, the seconds, and the number of observations."""
    clock, count = Clock(), 0

    def observe() -> Observation:
        nonlocal count
        count += 1
        return next(observations)

    _last, verdict = wait_for_verdict(observe, desired or Desired(), seconds, clock, clock.sleep)
    return verdict.ok, clock.now - 100, count


def repeat(observation: Observation) -> Iterator[Observation]:
    while True:
        yield observation


def test_wait_for_verdict_waits_for_start() -> None:
    ok, took, count = run(iter([make_observation(failure=NO_SOCKET)] * 3 + [make_observation()]), 60)
    assert (ok, count) == (True, 4)
    assert 0 < took < 2


def test_wait_for_verdict_without_time_observes_once() -> None:
    assert run(repeat(make_observation(failure=NO_SOCKET)), 0) == (False, 0.0, 1)


def test_wait_for_verdict_ends_with_its_time() -> None:
    ok, took, _count = run(repeat(make_observation(failure=NO_SOCKET)), 10)
    assert not ok
    assert 8 < took <= 10


@pytest.mark.parametrize(
    "last", [make_observation(unit=FAILED, failure=NO_SOCKET), make_observation(failure=NO_CRI), make_observation()]
)
def test_wait_for_verdict_with_final_failure_does_not_wait(last: Observation) -> None:
    ok, _took, count = run(iter([make_observation(failure=NO_SOCKET), last]), 60, Desired("nvidia"))
    assert (ok, count) == (False, 2)


def test_wait_for_verdict_waits_for_reload() -> None:
    observations = [make_observation(runtimes={"nvidia": "/old"})] * 2 + [make_observation(runtimes={"nvidia": "/new"})]
    assert run(iter(observations), 60, Desired("nvidia", None, "/new", reloaded=True))[::2] == (True, 3)
    assert run(iter(observations), 60, Desired("nvidia", None, "/new"))[::2] == (False, 1)


def test_wait_for_verdict_with_repeated_crashes_ends() -> None:
    states = [
        make_observation(unit={**STARTING, "NRestarts": str(3 + count // 10)}, failure=NO_SOCKET) for count in range(60)
    ]
    ok, _took, count = run(iter(states), 600)
    assert (ok, count) == (False, 21)


def test_build_facts_and_remarks_of_an_answer() -> None:
    conditions = {**READY, "NetworkReady": {"status": False, "reason": "", "message": "no CNI"}}
    observation = make_observation(conditions=conditions, runtimes=("nvidia", "runc"))
    assert list_remarks(observation) == ["NetworkReady: no CNI"]
    assert list_handlers(observation) == ["nvidia", "runc"]
    assert build_facts(observation)["default_runtime"] == "runc"
    assert set(build_facts(make_observation(failure=NO_SOCKET)).values()) == {None}


def test_judge_daemon_without_client_returns_its_remedy() -> None:
    assert judge_daemon(make_observation(failure=NO_CLIENT), Desired()).remedy == "install crictl"
    assert judge_daemon(make_observation(failure=NO_SOCKET), Desired()).remedy == "read the log of containerd"


def test_build_facts_and_remarks_name_the_client() -> None:
    answer = {"conditions": READY, "source": "ctr", "remarks": ["crictl is not installed"]}
    observation = Observation("containerd", ACTIVE, answer)
    assert build_facts(observation)["source"] == "ctr"
    assert list_remarks(observation) == ["crictl is not installed"]
