# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the summary reads: outcomes of checks as JUnit, and why a command failed, in its own words."""

from __future__ import annotations

import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ._common import REPORTS, ROOT

DETAIL = 15  # lines that tell why something failed
ELEMENTS = {"failed": "failure", "skipped": "skipped"}
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# How ansible, molecule, pytest, compilers and this project begin to say what went wrong; molecule draws a border to the left.
TROUBLE = re.compile(
    r"[\s│|]*(fatal: |failed: \[|\[ERROR\]|ERROR\b|E   |✗|Traceback \(|FAILED\b|FAIL\b|(.*: )?error: )"
)


@dataclass(frozen=True)
class Case:
    """One check: what it belongs to, its name, passed, failed or skipped, and why."""

    suite: str
    name: str
    outcome: str
    detail: str = ""


def plain(text: str) -> str:
    """A text without colours and without what XML cannot hold."""
    return ESCAPES.sub("", text)


def why(lines: Iterable[str], most: int = DETAIL) -> list[str]:
    """The lines from the first on that says what went wrong, else the last ones; at most *most*, none of them empty."""
    told = [line.rstrip() for line in map(plain, lines) if line.strip(" \t\r\n│")]
    first = next((number for number, line in enumerate(told) if TROUBLE.match(line)), len(told) - most)
    return list(islice(told, max(first, 0), max(first, 0) + most))


def run(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: object = ROOT, note: str = ""
) -> tuple[int, list[str]]:
    """Run a command and show what it says as it comes; its exit status and its lines."""
    print(f"$ {' '.join(command)}{note}", flush=True)
    said = []
    with subprocess.Popen(
        command, cwd=str(cwd), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            said.append(line.rstrip("\n"))
    return process.returncode, said


def write(report: str, cases: Sequence[Case]) -> None:
    """Leave the cases in build/reports/REPORT.xml."""
    counts = {outcome: sum(case.outcome == outcome for case in cases) for outcome in ELEMENTS}
    numbers = {"tests": len(cases), "failures": counts["failed"], "skipped": counts["skipped"], "errors": 0}
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", {"name": report} | {key: str(value) for key, value in numbers.items()})
    for case in cases:
        element = ET.SubElement(suite, "testcase", {"classname": case.suite, "name": case.name})
        if case.outcome in ELEMENTS:
            detail = plain(case.detail)
            message = {"message": detail.partition("\n")[0]}
            ET.SubElement(element, ELEMENTS[case.outcome], message).text = detail
    REPORTS.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(suites).write(REPORTS / f"{report}.xml", encoding="utf-8", xml_declaration=True)
