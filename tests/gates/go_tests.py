# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vet and test the fakes of the lab that are written in Go.

Writes a JUnit file build/reports/REPORT.xml, which the summary counts like those of pytest.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable

from lab.shell import DOWNLOAD_TRIES
from lab.shell import run as shell

from ._common import ROOT
from ._report import Case, run, write

MODULE = ROOT / "tests" / "lab" / "fakes"
OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def cases(lines: Iterable[str]) -> list[Case]:
    """The result of each test in the lines of ``go test -json``, sorted by package and name.

    Subtests count; tests that only contain subtests do not. A package that fails without a failing test, for example because it
    cannot be built, is a failure with the name of the package.
    """
    found: dict[tuple[str, str], str] = {}
    output: dict[tuple[str, str], list[str]] = defaultdict(list)
    for event in (json.loads(line) for line in lines if line.startswith("{")):
        # The output of the compiler has the import path, "PACKAGE [PACKAGE.test]".
        key = event.get("Package") or event.get("ImportPath", "").partition(" ")[0], event.get("Test", "")
        output[key].append(event.get("Output", ""))
        if event.get("Action") in OUTCOMES:
            found[key] = OUTCOMES[event["Action"]]
    holders = {(package, name.rpartition("/")[0]) for package, name in found if "/" in name}
    failed = {package for (package, name), outcome in found.items() if name and outcome == "failed"}
    return [
        Case(package, name or "package", outcome, "".join(output[package, name]).strip())
        for (package, name), outcome in sorted(found.items())
        if (name and (package, name) not in holders) or (not name and outcome == "failed" and package not in failed)
    ]


def test(report: str) -> int:
    """Run the tests, print those that did not pass, write the report; returns an exit status."""
    command = ["go", "test", "-json", "./..."]
    print(f"$ {' '.join(command)}  # in {MODULE.relative_to(ROOT)}", flush=True)
    result = subprocess.run(command, cwd=MODULE, stdout=subprocess.PIPE, text=True, check=False)
    found = cases(result.stdout.splitlines())
    for case in found:
        if case.outcome != "passed":
            print(f"{case.outcome}: {case.suite} {case.name}\n{case.detail}")
    print(f"{len(found)} Go tests in {MODULE.relative_to(ROOT)}", flush=True)
    write(report, found)
    return result.returncode


def main(report: str) -> int:
    """Download the modules, vet, then test. Raises LabError if the download fails."""
    shell(["go", "mod", "download"], cwd=MODULE, retries=DOWNLOAD_TRIES)
    vetted, _output = run(["go", "vet", "./..."], cwd=MODULE, note=f"  # in {MODULE.relative_to(ROOT)}")
    return test(report) or vetted
