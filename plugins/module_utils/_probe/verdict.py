# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides from what was seen whether a container runtime is well, apart from asking it and apart from the clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Optional

from .errors import CriMissingError, QueryError


@dataclass(frozen=True)
class Desired:
    """What the running daemon has to have; None asks nothing. ``reloaded``: it may still be taking its configuration over."""

    runtime: str | None = None
    default_runtime: str | None = None
    runtime_path: str | None = None
    reloaded: bool = False


@dataclass(frozen=True)
class Observation:
    """One look at the daemon.

    ``unit`` is what unit.parse_show returns, empty if systemd was not queried. ``answer`` and ``effective`` are what
    query.query returns; ``answer`` is None if the query failed with ``failure``. ``api`` names the interface in words.
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


def _check_unit_exists(seen: Observation, _desired: Desired) -> Verdict | None:
    if seen.unit.get("LoadState") in (None, "loaded"):
        return None
    return Verdict(False, f"systemd knows no service {seen.service}", "install it, or name the right one")


def _check_unit_runs(seen: Observation, _desired: Desired) -> Verdict | None:
    state = seen.unit.get("ActiveState", "active")
    if state == "active":
        return None
    detail = ", ".join(part for part in (seen.unit.get("SubState"), seen.unit.get("Result")) if part)
    final = state in ("failed", "inactive")
    return Verdict(False, f"the service {seen.service} is {state} ({detail})", "read its log", final)


def _check_cri_plugin(seen: Observation, _desired: Desired) -> Verdict | None:
    if not isinstance(seen.failure, CriMissingError):
        return None
    cause = f"{seen.service} runs without its CRI plugin ({seen.failure})"
    return Verdict(False, cause, "look for cri in disabled_plugins and for errors of the plugin in its log")


def _check_cri_answers(seen: Observation, _desired: Desired) -> Verdict | None:
    if seen.failure is None:
        return None
    remedy = seen.failure.remedy or f"read the log of {seen.service}"
    return Verdict(False, f"{seen.api} does not answer ({seen.failure})", remedy, final=False)


def _check_ready(seen: Observation, _desired: Desired) -> Verdict | None:
    ready = ((seen.answer or {}).get("conditions") or {}).get("RuntimeReady")
    if ready and ready["status"]:
        return None
    words = (ready or {}).get("message") or "no reason given"
    return Verdict(False, f"the CRI says that its runtime is not ready ({words})", "read its log", final=False)


def _build_mismatch(seen: Observation, desired: Desired, cause: str) -> Verdict:
    """Blame a daemon that answers, but not with what is desired; after a reload it may still come to it."""
    remedy = f"write it into the configuration and restart {seen.service}"
    return Verdict(False, cause, remedy, final=not desired.reloaded)


def _check_runtime(seen: Observation, desired: Desired) -> Verdict | None:
    known = list_handlers(seen)
    if desired.runtime is None or not known or desired.runtime in known:
        return None
    return _build_mismatch(
        seen, desired, f"{seen.service} runs without the runtime {desired.runtime} (it has {', '.join(known)})"
    )


def _check_program(seen: Observation, desired: Desired) -> Verdict | None:
    found = ((seen.effective.get("runtimes") or {}).get(desired.runtime) or {}).get("binary")
    if desired.runtime_path is None or found is None or found == desired.runtime_path:
        return None
    cause = f"{seen.service} runs the runtime {desired.runtime} with {found} and not with {desired.runtime_path}"
    return _build_mismatch(seen, desired, cause)


def _check_default(seen: Observation, desired: Desired) -> Verdict | None:
    found = seen.effective.get("default_runtime")
    if desired.default_runtime is None or found is None or found == desired.default_runtime:
        return None
    return _build_mismatch(
        seen, desired, f"the default runtime of {seen.service} is {found} and not {desired.default_runtime}"
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


def list_handlers(seen: Observation) -> list[str]:
    """Return the names of the runtimes that the running daemon offers, from its answer or its configuration."""
    answered = (seen.answer or {}).get("handlers") or []
    return sorted(set(answered) | set(seen.effective.get("runtimes") or {}))


def judge_daemon(seen: Observation, desired: Desired) -> Verdict:
    """Return the first complaint, or a good verdict."""
    complaints = (check(seen, desired) for check in CHECKS)
    return next((complaint for complaint in complaints if complaint), Verdict(True))


def list_remarks(seen: Observation) -> list[str]:
    """Return what is not a failure: clients that were not used, no pod network yet, deprecated settings."""
    found = list((seen.answer or {}).get("remarks") or [])
    for name, condition in sorted(((seen.answer or {}).get("conditions") or {}).items()):
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
    """Look until the verdict is good or final, the daemon has crashed twice meanwhile, or the time is over."""
    end = clock() + seconds
    first_restarts: int | None = None
    for pause in _yield_pauses():
        seen = observe()
        verdict = judge_daemon(seen, desired)
        restarts = int(seen.unit.get("NRestarts") or 0)
        first_restarts = restarts if first_restarts is None else first_restarts
        if verdict.ok or verdict.final or restarts >= first_restarts + 2 or clock() + pause > end:
            return seen, verdict
        sleep(pause)
    raise AssertionError("unreachable")


def _yield_pauses() -> Iterator[float]:
    """Yield 0.1 s, growing to 1 s."""
    pause = 0.1
    while True:
        yield pause
        pause = min(pause * 1.5, 1.0)


def build_facts(seen: Observation) -> dict[str, Any]:
    """Return what the daemon reports of itself; every value is None without an answer."""
    answer = seen.answer or {}
    return {
        "source": answer.get("source"),
        "runtime_name": answer.get("runtime_name"),
        "runtime_version": answer.get("runtime_version"),
        "api_version": answer.get("api_version"),
        "default_runtime": seen.effective.get("default_runtime"),
        "enable_cdi": seen.effective.get("enable_cdi"),
        "live_restore": seen.effective.get("live_restore"),
        "containers_running": seen.effective.get("containers_running"),
        "runtimes": seen.effective.get("runtimes"),
    }
