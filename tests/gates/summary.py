# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make test` ends with: a table of the gates, what was skipped or not run, why each failed gate failed, one line of counts.

Reads build/reports: gates.txt (the gates), GATE.nox.json (what nox tells of it), GATE.log (all that it printed), GATE*.xml (JUnit) and
not-run.txt (lines of gate, tab, what). A gate without a JUnit file counts as one check. What was not run counts as skipped, on CI as failed;
so does a test that was skipped because the machine lacks something, which says "there is no …" or "needs …".
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from . import _pythons
from ._common import NOT_RUN, REPORTS
from ._report import DETAIL, Case, plain, why
from .lanes import GATES

LACKING = re.compile(r"\b(there is no|needs)\b")
NAMES = 25  # failed tests that are told by name for one gate


@dataclass(frozen=True)
class Gate:
    """One nox session: its outcome as nox tells it, wall time in seconds, its checks."""

    name: str
    result: str
    seconds: float
    cases: list[Case] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """Number of checks with this outcome."""
        return sum(case.outcome == outcome for case in self.cases)


def outcome_of(element: ET.Element) -> tuple[str, str]:
    """Outcome and reason of one JUnit testcase."""
    for tag in ("failure", "error", "skipped"):
        if (found := element.find(tag)) is not None:
            message, text = found.get("message") or "", found.text or ""
            if tag == "skipped":
                lacking = LACKING.search(message) and _pythons.missing_is_failure()
                return ("failed" if lacking else "skipped"), message
            # What pytest marks with E says more than the message, which it cuts.
            return "failed", text if message.split("\n")[0] in text else f"{message}\n{text}"
    return "passed", ""


def junit(path: Path) -> list[Case]:
    """The checks of one JUnit file; a file that is cut short is one that failed."""
    try:
        elements = ET.parse(path).getroot().iter("testcase")  # noqa: S314 - our own tools wrote it
        return [
            Case(element.get("classname", ""), element.get("name", ""), *outcome_of(element)) for element in elements
        ]
    except ET.ParseError as error:
        return [Case("", path.name, "failed", f"the report cannot be read: {error}")]


def session(reports: Path, name: str) -> dict[str, object]:
    """What nox tells of the session of a gate; one that never came to its end has failed."""
    report = reports / f"{name}.nox.json"
    if not report.is_file():
        print(f"No {report.name}: nox ended before the gate {name} did")
        return {"name": name, "result": "failed"}
    told: dict[str, object] = json.loads(report.read_text(encoding="utf-8"))["sessions"][0]
    return told


def absences(reports: Path) -> list[Case]:
    """What could not be run here, each under the name of its gate."""
    path = reports / NOT_RUN
    told = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    outcome = "failed" if _pythons.missing_is_failure() else "skipped"
    return [Case(name, "NOT RUN", outcome, what) for name, _, what in (line.partition("\t") for line in told)]


def gate(session: dict[str, object], reports: Path, absent: list[Case]) -> Gate:
    """One entry of nox's report, with what its session left and what it could not run."""
    name, result = str(session["name"]), str(session["result"])
    files = sorted({*reports.glob(f"{name}.xml"), *reports.glob(f"{name}-*.xml")})
    cases = [case for path in files for case in junit(path)]
    missing = [case for case in absent if case.suite == name]
    failed = any(case.outcome == "failed" for case in cases + missing)
    if result != "success" and not failed:
        cases.append(Case(name, "gate", "failed"))
    elif result == "success" and not cases:
        cases.append(Case(name, "gate", "passed"))
    return Gate(name, result, float(str(session.get("duration") or 0)), cases + missing)


def output(path: Path) -> list[str]:
    """The lines that a gate printed."""
    return list(map(plain, path.read_text(encoding="utf-8", errors="replace").splitlines())) if path.is_file() else []


def reasons(each: Gate, printed: list[str]) -> list[str]:
    """Names of the failed checks of a gate, then what the first of them says, else what the gate printed."""
    failed = [case for case in each.cases if case.outcome == "failed" and case.name != "gate"]
    named = [f"{case.suite} {case.name}".strip() for case in failed]
    more = [f"and {len(named) - NAMES} more"] if len(named) > NAMES else []
    detail = next((case.detail.splitlines() for case in failed if case.detail), printed)
    return [*(f"failed: {name}" for name in named[:NAMES]), *more, *(f"  {line}" for line in why(detail, DETAIL))]


def table(gates: list[Gate]) -> Table:
    """The gates as people read them."""
    view = Table(title="Gates", title_justify="left", show_footer=True)
    view.add_column("gate", footer="total")
    view.add_column("result")
    view.add_column("seconds", justify="right", footer=f"{sum(each.seconds for each in gates):.0f}")
    for outcome in ("passed", "failed", "skipped"):
        view.add_column(outcome, justify="right", footer=str(total(gates, outcome)))
    for each in gates:
        colour = "green" if each.result == "success" and not each.count("failed") else "red"
        numbers = (str(each.count(outcome)) for outcome in ("passed", "failed", "skipped"))
        view.add_row(each.name, f"[{colour}]{each.result}[/]", f"{each.seconds:.1f}", *numbers)
    return view


def total(gates: list[Gate], outcome: str) -> int:
    """Number of checks of all gates with this outcome."""
    return sum(each.count(outcome) for each in gates)


def last_line(reports: Path, passed: int, failed: int, skipped: int) -> int:
    """Print the counts and leave them in summary.txt; 0 only if something passed and nothing failed."""
    told = f"{passed} passed, {failed} failed, {skipped} skipped"
    (reports / "summary.txt").write_text(f"{told}\n", encoding="utf-8")
    print(f"\n{told}", flush=True)
    return int(failed > 0 or not passed)


def main(reports: Path = REPORTS) -> int:
    """Print the summary; 0 only if every gate succeeded and, on CI, everything ran."""
    absent = absences(reports)
    names = (reports / GATES).read_text(encoding="utf-8").split() if (reports / GATES).is_file() else []
    gates = [gate(session(reports, name), reports, absent) for name in names or ["gates"]]
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table(gates))
    for case in absent:
        print(f"NOT RUN in {case.suite}: {case.detail}")
    for each in gates:
        skipped = Counter(case.detail for case in each.cases if case.outcome == "skipped" and case.name != "NOT RUN")
        for reason, number in skipped.items():
            print(f"skipped in {each.name}: {number} x {reason}")
    for each in gates:
        if each.count("failed"):
            print(
                "\n".join(
                    [
                        "",
                        f"✗ {each.name}",
                        *(f"  {line}" for line in reasons(each, output(reports / f"{each.name}.log"))),
                    ]
                )
            )
    return last_line(reports, *(total(gates, outcome) for outcome in ("passed", "failed", "skipped")))


if __name__ == "__main__":
    sys.exit(main())
