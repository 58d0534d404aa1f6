# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides from observations whether a container runtime works."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Optional

from .errors import CriMissingError, QueryError


@dataclass(frozen=True)
class Desired:
    """What the running daemon must have; None requires nothing. ``reloaded``: it may still be reading its configuration."""

    runtime: str | None = None
    default_runtime: str | None = None
    runtime_path: str | None = None
    reloaded: bool = False


@dataclass(frozen=True)
class Observation:
    """One observation of the daemon.

    ``unit`` is what clients.parse_show returns, empty if systemd was not queried. ``answer`` and ``effective`` are what
    query.query returns; ``answer`` is None if the query failed with ``failure``. ``api`` is the name of the interface in messages.
    """

    service: str
    unit: Mapping[str, str] = field(default_factory=dict)
    answer: Mapping[str, Any] | None = None
    effective: Mapping[str, Any] = field(default_factory=dict)
    failure: QueryError | None = None
    api: str = "the CRI"


@dataclass(frozen=True)
class Verdict:
    """``final`` says that waiting longer does not help."""

    ok: bool
    cause: str = ""
    remedy: str = ""
    final: bool = True

    @property
    def sentence(self) -> str:
        """Return cause and remedy in one piece, without a full stop."""
        return "; ".join(part for part in (self.cause, self.remedy) if part)


Check = Callable[[Observation, Desired], Optional[Verdict]]


def _check_unit_exists(observation: Observation, _desired: Desired) -> Verdict | None:
    if observation.unit.get("LoadState") in (None, "loaded"):
        return None
    return Verdict(False, f"systemd has no service {observation.service}", "install it, or correct its name")


def _check_unit_runs(observation: Observation, _desired: Desired) -> Verdict | None:
    state = observation.unit.get("ActiveState", "active")
    if state == "active":
        return None
    detail = ", ".join(part for part in (observation.unit.get("SubState"), observation.unit.get("Result")) if part)
    final = state in ("failed", "inactive")
    return Verdict(False, f"the service {observation.service} is {state} ({detail})", "read its log", final)


def _check_cri_plugin(observation: Observation, _desired: Desired) -> Verdict | None:
    if not isinstance(observation.failure, CriMissingError):
        return None
    cause = f"{observation.service} runs without its CRI plugin ({observation.failure})"
    return Verdict(False, cause, "check disabled_plugins for cri, and its log for errors of the plugin")


def _check_cri_answers(observation: Observation, _desired: Desired) -> Verdict | None:
    if observation.failure is None:
        return None
    remedy = observation.failure.remedy or f"read the log of {observation.service}"
    return Verdict(False, f"{observation.api} does not answer ({observation.failure})", remedy, final=False)


def _check_ready(observation: Observation, _desired: Desired) -> Verdict | None:
    ready = ((observation.answer or {}).get("conditions") or {}).get("RuntimeReady")
    if ready and ready["status"]:
        return None
    message = (ready or {}).get("message") or "no reason given"
    return Verdict(False, f"the CRI reports that its runtime is not ready ({message})", "read its log", final=False)


def _build_mismatch(observation: Observation, desired: Desired, cause: str) -> Verdict:
    """Return the verdict on a daemon that answers but differs from the desired state; after a reload it may still change."""
    remedy = f"write it into the configuration and restart {observation.service}"
    return Verdict(False, cause, remedy, final=not desired.reloaded)


def _check_runtime(observation: Observation, desired: Desired) -> Verdict | None:
    known = list_handlers(observation)
    if desired.runtime is None or not known or desired.runtime in known:
        return None
    return _build_mismatch(
        observation,
        desired,
        f"{observation.service} runs without the runtime {desired.runtime} (it has {', '.join(known)})",
    )


def _check_program(observation: Observation, desired: Desired) -> Verdict | None:
    found = ((observation.effective.get("runtimes") or {}).get(desired.runtime) or {}).get("binary")
    if desired.runtime_path is None or found is None or found == desired.runtime_path:
        return None
    cause = f"{observation.service} runs the runtime {desired.runtime} with {found} and not with {desired.runtime_path}"
    return _build_mismatch(observation, desired, cause)


def _check_default(observation: Observation, desired: Desired) -> Verdict | None:
    found = observation.effective.get("default_runtime")
    if desired.default_runtime is None or found is None or found == desired.default_runtime:
        return None
    return _build_mismatch(
        observation,
        desired,
        f"the default runtime of {observation.service} is {found} and not {desired.default_runtime}",
    )


CHECKS: tuple[Check, ...] = (
    _check_unit_exists,
    _check_unit_runs,
    _check_cri_plugin,
    _check_cri_answers,
    _check_ready,
    _check_runtime,
    _check_program,
    _check_default,
)


def list_handlers(observation: Observation) -> list[str]:
    """Return the names of the runtimes that the running daemon offers, from its answer or its configuration."""
    answered = (observation.answer or {}).get("handlers") or []
    return sorted(set(answered) | set(observation.effective.get("runtimes") or {}))


def judge_daemon(observation: Observation, desired: Desired) -> Verdict:
    """Return the verdict on the first failed check, else a good one."""
    failures = (check(observation, desired) for check in CHECKS)
    return next((failure for failure in failures if failure), Verdict(True))


def list_remarks(observation: Observation) -> list[str]:
    """Return remarks that are not failures: clients that were not used, no pod network yet, deprecated settings."""
    found = list((observation.answer or {}).get("remarks") or [])
    for name, condition in sorted(((observation.answer or {}).get("conditions") or {}).items()):
        if name != "RuntimeReady" and not condition["status"]:
            found.append(f"{name}: {condition['message'] or condition['reason'] or 'not given'}")
    return found


def wait_for_verdict(
    observe: Callable[[], Observation],
    desired: Desired,
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> tuple[Observation, Verdict]:
    """Observe until the verdict is good or final, the daemon has crashed twice since, or the time is over."""
    end = clock() + seconds
    first_restarts: int | None = None
    for pause in _yield_pauses():
        observation = observe()
        verdict = judge_daemon(observation, desired)
        restarts = int(observation.unit.get("NRestarts") or 0)
        first_restarts = restarts if first_restarts is None else first_restarts
        if verdict.ok or verdict.final or restarts >= first_restarts + 2 or clock() + pause > end:
            return observation, verdict
        sleep(pause)
    raise AssertionError("unreachable")


def _yield_pauses() -> Iterator[float]:
    """Yield 0.1 s, growing to 1 s."""
    pause = 0.1
    while True:
        yield pause
        pause = min(pause * 1.5, 1.0)


def build_facts(observation: Observation) -> dict[str, Any]:
    """Return what the daemon reports of itself; every value is None without an answer."""
    answer = observation.answer or {}
    return {
        "source": answer.get("source"),
        "runtime_name": answer.get("runtime_name"),
        "runtime_version": answer.get("runtime_version"),
        "api_version": answer.get("api_version"),
        "default_runtime": observation.effective.get("default_runtime"),
        "enable_cdi": observation.effective.get("enable_cdi"),
        "live_restore": observation.effective.get("live_restore"),
        "containers_running": observation.effective.get("containers_running"),
        "runtimes": observation.effective.get("runtimes"),
    }
