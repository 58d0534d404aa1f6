# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` ends with: a table of the gates with their seconds, what was not run, and one line of counts.

Reads build/reports: nox.json (one entry a session), NAME*.xml (JUnit, of session NAME), not-run.txt (one line each).
A gate without a JUnit file counts as one check.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import _pythons
from ._common import NOT_RUN, REPORTS


@dataclass(frozen=True)
class Counts:
    """Checks of one gate."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


@dataclass(frozen=True)
class Gate:
    """One nox session: its outcome as nox tells it, wall time in seconds, its checks."""

    name: str
    result: str
    seconds: float
    counts: Counts


def junit(path: Path) -> Counts:
    """Counts of one JUnit file; a file that is cut short counts as one failure."""
    try:
        suites = ET.parse(path).getroot().iter("testsuite")  # noqa: S314 - our own pytest wrote it
        total = Counts()
        for suite in suites:
            tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            total += Counts(tests - skipped - failed, failed, skipped)
    except ET.ParseError:
        return Counts(failed=1)
    return total


def gate(session: dict[str, object], reports: Path) -> Gate:
    """One entry of nox's report, with the JUnit files that its session left."""
    name, result = str(session["name"]), str(session["result"])
    files = sorted(reports.glob(f"{name}.xml")) + sorted(reports.glob(f"{name}-*.xml"))
    counts = sum((junit(path) for path in files), Counts())
    good = result == "success"
    if counts == Counts() and result != "skipped":
        counts = Counts(passed=int(good), failed=int(not good))
    elif not good and not counts.failed:
        counts += Counts(failed=1)
    return Gate(name, result, float(str(session.get("duration") or 0)), counts)


def table(gates: list[Gate]) -> Table:
    """The gates as people read them."""
    view = Table(title="Gates", title_justify="left", show_footer=True)
    total = sum((each.counts for each in gates), Counts())
    view.add_column("gate", footer="total")
    view.add_column("result")
    view.add_column("seconds", justify="right", footer=f"{sum(each.seconds for each in gates):.0f}")
    for column in ("passed", "failed", "skipped"):
        view.add_column(column, justify="right", footer=str(getattr(total, column)))
    for each in gates:
        colour = "green" if each.result == "success" else "red"
        numbers = (str(each.counts.passed), str(each.counts.failed), str(each.counts.skipped))
        view.add_row(each.name, f"[{colour}]{each.result}[/]", f"{each.seconds:.1f}", *numbers)
    return view


def main(reports: Path = REPORTS) -> int:
    """Print the summary; 0 only if every gate succeeded and, on CI, everything ran."""
    report = reports / "nox.json"
    if not report.is_file():
        print(f"No {report.name}: nox ended before its first session\n\n0 passed, 1 failed")
        return 1
    gates = [gate(session, reports) for session in json.loads(report.read_text(encoding="utf-8"))["sessions"]]
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table(gates))
    missing = (reports / NOT_RUN).read_text(encoding="utf-8").splitlines() if (reports / NOT_RUN).is_file() else []
    for line in missing:
        console.print(f"NOT RUN: {line}", markup=False)
    total = sum((each.counts for each in gates), Counts())
    print(f"\n{total.passed} passed, {total.failed} failed")
    bad = total.failed or not gates or any(each.result != "success" for each in gates)
    return 1 if bad or (missing and _pythons.missing_is_failure()) else 0


if __name__ == "__main__":
    sys.exit(main())
