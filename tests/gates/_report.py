# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Results: checks as JUnit files, the lines of a command that explain its failure, and the table at the end of a run."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from ._common import NOT_RUN, REPORTS, ROOT, missing_is_failure

DETAIL = 15  # lines that explain a failure
NAMES = 25  # failed checks of one gate that are named
SLOWEST = 10
OUTCOMES = ("passed", "failed", "skipped")
ELEMENTS = {"failed": "failure", "skipped": "skipped"}
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# How ansible, molecule, pytest, compilers and this project begin a failure; molecule prints a border to the left.
TROUBLE = re.compile(
    r"[\s│|]*(fatal: |failed: \[|\[ERROR\]|ERROR\b|E   |✗|Traceback \(|FAILED\b|FAIL\b|(.*: )?error: )"
)
# A skip with these words leaves out what the change does not concern. On CI every other skip is a failure: the machine lacks something. In the environments
# of MINIMAL, packages are missing by design, and their tests are skipped; the gate units runs them.
UNCONCERNED = "not concerned"
MINIMAL = ("nodes", "sanity-", "core-")


@dataclass(frozen=True)
class Case:
    """One check: what it belongs to, its name, one of OUTCOMES, why, and its wall time in seconds."""

    suite: str
    name: str
    outcome: str
    detail: str = ""
    seconds: float = 0


@dataclass(frozen=True)
class Result:
    """One gate: its verdict, wall and CPU time in seconds, its checks."""

    name: str
    verdict: str
    seconds: float
    cpu_seconds: float
    cases: list[Case] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """Number of checks with this outcome."""
        return sum(case.outcome == outcome for case in self.cases)


def strip_escapes(text: str) -> str:
    """A text without colours and without characters that XML forbids."""
    return ESCAPES.sub("", text)


def explain_failure(lines: Iterable[str], most: int = DETAIL) -> list[str]:
    """The lines from the first failure on, else the last ones; at most *most*, none of them empty."""
    read = [line.rstrip() for line in map(strip_escapes, lines) if line.strip(" \t\r\n│")]
    first = next((number for number, line in enumerate(read) if TROUBLE.match(line)), len(read) - most)
    return list(islice(read, max(first, 0), max(first, 0) + most))


def run(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: object = ROOT, note: str = ""
) -> tuple[int, list[str]]:
    """Run a command and print its output as it comes; its exit status and its lines."""
    print(f"$ {' '.join(command)}{note}", flush=True)
    read = []
    with subprocess.Popen(
        command, cwd=str(cwd), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            read.append(line.rstrip("\n"))
    return process.returncode, read


def write(report: str, cases: Sequence[Case]) -> None:
    """Write the cases to build/reports/REPORT.xml."""
    counts = {outcome: sum(case.outcome == outcome for case in cases) for outcome in ELEMENTS}
    numbers = {"tests": len(cases), "failures": counts["failed"], "skipped": counts["skipped"], "errors": 0}
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", {"name": report} | {key: str(value) for key, value in numbers.items()})
    for case in cases:
        attributes = {"classname": case.suite, "name": case.name, "time": f"{case.seconds:.3f}"}
        element = ET.SubElement(suite, "testcase", attributes)
        if case.outcome in ELEMENTS:
            detail = strip_escapes(case.detail)
            message = {"message": detail.partition("\n")[0]}
            ET.SubElement(element, ELEMENTS[case.outcome], message).text = detail
    REPORTS.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(suites).write(REPORTS / f"{report}.xml", encoding="utf-8", xml_declaration=True)


def _outcome(element: ET.Element) -> tuple[str, str]:
    for tag in ("failure", "error", "skipped"):
        if (found := element.find(tag)) is not None:
            message, text = found.get("message") or "", found.text or ""
            if tag == "skipped":
                return "skipped", message
            # The lines that pytest marks with E are longer than its message, which it truncates.
            return "failed", text if message.split("\n")[0] in text else f"{message}\n{text}"
    return "passed", ""


def read(path: Path) -> list[Case]:
    """The checks of one JUnit file; a truncated file is a failed check."""
    try:
        elements = ET.parse(path).getroot().iter("testcase")  # noqa: S314 - our own tools wrote it
        return [
            Case(
                element.get("classname", ""),
                element.get("name", ""),
                *_outcome(element),
                seconds=float(element.get("time") or 0),
            )
            for element in elements
        ]
    except (ET.ParseError, ValueError) as error:
        return [Case("", path.name, "failed", f"the report cannot be read: {error}")]


def files_of(name: str, reports: Path) -> list[Path]:
    """The files of the gate *name*: its output, and JUnit files."""
    return sorted({*reports.glob(f"{name}.log"), *reports.glob(f"{name}.xml"), *reports.glob(f"{name}-*.xml")})


def apply_ci_rule(case: Case, gate: str) -> Case:
    """The check; on CI a skip because of something missing becomes a failure."""
    allowed = case.outcome != "skipped" or case.detail.startswith(UNCONCERNED) or gate.startswith(MINIMAL)
    return case if allowed or not missing_is_failure() else replace(case, outcome="failed")


def collect(name: str, verdict: str, seconds: float, cpu_seconds: float, reports: Path = REPORTS) -> Result:
    """The result of the gate *name* from its files; a gate without a JUnit file is one check."""
    files = [path for path in files_of(name, reports) if path.suffix == ".xml"]
    cases = [apply_ci_rule(case, name) for path in files for case in read(path)]
    path = reports / NOT_RUN
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    outcome = "failed" if missing_is_failure() else "skipped"
    absent = [
        Case(name, "NOT RUN", outcome, what)
        for gate, _, what in (line.partition("\t") for line in lines)
        if gate == name
    ]
    if verdict != "passed" and not any(case.outcome == "failed" for case in cases + absent):
        cases.append(Case(name, "gate", "failed"))
    elif verdict == "passed" and not cases:
        cases.append(Case(name, "gate", "passed", seconds=seconds))
    return Result(name, verdict, seconds, cpu_seconds, cases + absent)


def reasons(result: Result, printed: Sequence[str]) -> list[str]:
    """Names of the failed checks of a gate, then the detail of the first of them, else the output of the gate."""
    failed = [case for case in result.cases if case.outcome == "failed" and case.name != "gate"]
    named = [f"{case.suite} {case.name}".strip() for case in failed]
    more = [f"and {len(named) - NAMES} more"] if len(named) > NAMES else []
    detail = next((case.detail.splitlines() for case in failed if case.detail), printed)
    return [
        *(f"failed: {name}" for name in named[:NAMES]),
        *more,
        *(f"  {line}" for line in explain_failure(detail, DETAIL)),
    ]


def table(results: Sequence[Result]) -> list[str]:
    """The gates with their seconds and counts, one a line."""
    rows = [f"{'gate':<26}{'verdict':<10}{'wall s':>8}{'CPU s':>8}{'passed':>8}{'failed':>8}{'skipped':>8}"]
    for result in results:
        counts = "".join(f"{result.count(outcome):>8}" for outcome in OUTCOMES)
        rows.append(f"{result.name:<26}{result.verdict:<10}{result.seconds:>8.0f}{result.cpu_seconds:>8.0f}{counts}")
    return rows


def slowest(results: Sequence[Result]) -> list[str]:
    """The slowest checks of all gates."""
    every = [(case.seconds, result.name, case) for result in results for case in result.cases if case.name != "gate"]
    every.sort(key=lambda each: -each[0])
    return [f"{seconds:7.1f} s  {gate}: {case.suite} {case.name}" for seconds, gate, case in every[:SLOWEST] if seconds]


def counts(results: Sequence[Result]) -> dict[str, int]:
    """Outcome -> number of checks, of all gates."""
    return {outcome: sum(result.count(outcome) for result in results) for outcome in OUTCOMES}


def summarize(results: Sequence[Result], logs: Path = REPORTS) -> tuple[int, list[str]]:
    """Exit status and the lines of the summary; the last line is the counts. 0 only if something passed and nothing failed."""
    lines = ["", *table(results), "", "slowest:", *slowest(results), ""]
    for result in results:
        reasons_of_skips = Counter(case.detail for case in result.cases if case.outcome == "skipped")
        lines += [f"skipped in {result.name}: {number} x {reason}" for reason, number in reasons_of_skips.items()]
    for result in results:
        if result.count("failed"):
            path = logs / f"{result.name}.log"
            printed = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
            lines += [
                "",
                f"✗ {result.name} (all it printed: {path.name})",
                *(f"  {line}" for line in reasons(result, printed)),
            ]
    total = counts(results)
    lines += ["", f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped"]
    return int(total["failed"] > 0 or not total["passed"]), lines


def as_gates(results: Sequence[Result], run_seconds: float) -> list[dict[str, object]]:
    """The results as data: for each gate its verdict, seconds and counts, and the wall time of the run that it was part of."""
    return [
        {
            "name": result.name,
            "verdict": result.verdict,
            "seconds": round(result.seconds, 1),
            "cpu_seconds": round(result.cpu_seconds, 1),
            "run_seconds": round(run_seconds, 1),
            **{outcome: result.count(outcome) for outcome in OUTCOMES},
        }
        for result in results
    ]


def gates_of(path: Path, facts: Mapping[str, object]) -> list[dict[str, object]]:
    """The gates of an earlier part of the same run, which is one with equal *facts* (tier, commit, modified); empty for another one."""
    earlier = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    same = all(earlier.get(key) == value for key, value in facts.items())
    return list(earlier.get("gates", [])) if same and not facts.get("modified") else []


def as_json(gates: Sequence[Mapping[str, object]], every: Sequence[str] = (), **facts: object) -> str:
    """The document of a run: its facts, counts, gates (of two with one name the last), and the gates of *every* that are missing."""
    by_name = {str(gate["name"]): gate for gate in gates}
    total = {outcome: sum(int(str(gate[outcome])) for gate in by_name.values()) for outcome in OUTCOMES}
    missing = [name for name in every if name not in by_name]
    return json.dumps({**facts, **total, "missing": missing, "gates": list(by_name.values())}, indent=2) + "\n"
