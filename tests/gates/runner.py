# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs gates as parallel jobs and ends with a summary, also after the time limit or a signal.

The first job has priority on the processors; the others get the rest. Each gate is a process, whose output goes to build/reports/GATE.log. Verdicts,
counts and seconds go to build/reports/TIER.json.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import _report
from ._common import REPORTS, ROOT, missing_is_failure
from .selection import git

# Faults of test-all mostly wait for timers of nodes.
JOBS = {"test": 2, "test-all": 3}
GRACE_SECONDS = 60  # for a terminated gate to remove its lab
# A tier that takes longer than its budget gets a warning; at its limit it ends.
BUDGETS = {"test": 15 * 60, "test-all": 70 * 60}
LIMITS = {"test": 75 * 60, "test-all": 150 * 60}
NICE = ("nice", "-n", "5")
# Linux may share processors by session, and each worker of Ansible is a session: then only a control group prevents that the others slow the first
# one and its lab. For version 1 and 2 of control groups: their folder, and the setting of a twentieth of the usual share.
CONTROL_GROUPS = ((Path("/sys/fs/cgroup/cpu"), "cpu.shares", "51"), (Path("/sys/fs/cgroup"), "cpu.weight", "5"))
FAILED_LINES = 200  # of the output of a failed gate, on the terminal


@dataclass
class Runner:
    """The gates of one run. *main* are those of the first job, one after the other; a free job takes the next of the others."""

    tier: str
    main: Sequence[str]
    others: Sequence[str]
    limit_seconds: float
    reports: Path = REPORTS
    command: tuple[str, ...] = (sys.executable, "-m", "gates")
    every: Sequence[str] = ()  # gates of the tier, where this run has a part of them
    results: list[_report.Result] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lock = threading.RLock()  # a signal may come while it is held
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._end_reason = ""

    def run(self) -> int:
        """Run all gates, print the summary, write the result file; exit status."""
        begin = time.monotonic()
        for name in self.others:
            self._waiting.put(name)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda received, _frame: self.end(f"ended by {signal.Signals(received).name}"))
        timer = threading.Timer(
            self.limit_seconds, self.end, [f"ended after {self.limit_seconds:.0f} s, the limit of a run"]
        )
        timer.daemon = True
        timer.start()
        group = make_control_group()
        jobs = [
            threading.Thread(target=self._job, args=(self.main, (), None)),
            *(
                threading.Thread(target=self._job, args=((), NICE, group))
                for _other in range(JOBS.get(self.tier, 2) - 1)
            ),
        ]
        for job in jobs:
            job.start()
        for job in jobs:
            while job.is_alive():  # a join without a limit would block signals
                job.join(0.5)
        timer.cancel()
        if group:
            with contextlib.suppress(OSError):  # not empty: processes of a gate remain
                group.rmdir()
        return self._finish(time.monotonic() - begin)

    def end(self, reason: str) -> None:
        """Start no further gate and terminate the running ones; after GRACE_SECONDS they are killed."""
        with self._lock:
            self._end_reason = self._end_reason or reason
            running = list(self._running.values())
        self._print(f"{reason}: terminating {len(running)} gates")
        for process in running:
            _signal(process, signal.SIGTERM)
            killer = threading.Timer(GRACE_SECONDS, _signal, [process, signal.SIGKILL])
            killer.daemon = True
            killer.start()

    def _job(self, first: Sequence[str], nice: tuple[str, ...], group: Path | None) -> None:
        for name in first:
            self._gate(name, nice, group)
        while True:
            try:
                name = self._waiting.get_nowait()
            except queue.Empty:
                return
            self._gate(name, nice, group)

    def _gate(self, name: str, nice: tuple[str, ...], group: Path | None) -> None:
        begin = time.monotonic()
        log = self.reports / f"{name}.log"
        with self._lock:
            if self._end_reason:
                self.results.append(_report.collect(name, "not run", 0, 0, self.reports))
                return
            with open(log, "wb") as output:
                process = subprocess.Popen(
                    [*nice, *self.command, name],
                    cwd=ROOT,
                    env={**os.environ, "GATES_NAME": name},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._running[name] = process
        if group:
            with contextlib.suppress(OSError):  # it has ended already
                (group / "cgroup.procs").write_text(str(process.pid), encoding="ascii")
        self._print(f"{name}: started")
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        with self._lock:
            del self._running[name]
            verdict = "ended" if self._end_reason else "failed" if process.returncode else "passed"
        seconds, cpu = time.monotonic() - begin, usage.ru_utime + usage.ru_stime
        result = _report.collect(name, verdict, seconds, cpu, self.reports)
        if verdict == "passed" and result.count("failed"):
            result = _report.Result(name, "failed", seconds, cpu, result.cases)
        with self._lock:
            self.results.append(result)
        numbers = ", ".join(
            f"{result.count(outcome)} {outcome}" for outcome in _report.OUTCOMES if result.count(outcome)
        )
        self._print(f"{name}: {result.verdict} in {seconds:.0f} s ({cpu:.0f} CPU s), {numbers}")
        if result.verdict != "passed":
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-FAILED_LINES:]
            self._print("\n".join(f"{name} | {line}" for line in lines))

    def _print(self, text: str) -> None:
        print(text, flush=True)

    def _finish(self, seconds: float) -> int:
        order = [*self.main, *self.others]
        for name in set(order) - {result.name for result in self.results}:
            lost = _report.Case(name, "gate", "failed", "the runner lost it; see its exception above")
            self.results.append(_report.Result(name, "lost", 0, 0, [lost]))
        self.results.sort(key=lambda result: order.index(result.name))
        status, lines = _report.summarize(self.results, self.reports)
        if self._end_reason:
            lines.insert(-1, self._end_reason)
        cpu = sum(result.cpu_seconds for result in self.results)
        lines.insert(-1, f"{self.tier}: {seconds:.0f} s of wall time, {cpu:.0f} s of CPU time")
        if seconds > BUDGETS.get(self.tier, seconds):
            lines.insert(-1, f"WARNING: {self.tier} took longer than its budget of {BUDGETS[self.tier]} s")
        facts = {"tier": self.tier, "commit": git("rev-parse", "HEAD"), "modified": bool(git("status", "--porcelain"))}
        path = self.reports / f"{self.tier}.json"
        parts = _report.gates_of(path, facts) + _report.as_gates(self.results, seconds)
        path.write_text(_report.as_json(parts, self.every, **facts, ci=missing_is_failure()), encoding="utf-8")
        (self.reports / "summary.txt").write_text(f"{lines[-1]}\n", encoding="utf-8")
        print("\n".join(lines), flush=True)
        return 1 if self._end_reason else status


def make_control_group() -> Path | None:
    """A control group of this process with a small share of the processors; None if it cannot be created."""
    for root, setting, share in CONTROL_GROUPS:
        group = root / f"gpu-kubernetes-gates-{os.getpid()}"
        with contextlib.suppress(OSError):
            if not (root / "cgroup.procs").exists():
                continue
            group.mkdir()
            (group / setting).write_text(share, encoding="ascii")
            return group
        with contextlib.suppress(OSError):
            group.rmdir()
    return None


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a gate and its descendants."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
