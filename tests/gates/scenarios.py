# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule scenarios, one after the other: ``python -m gates.scenarios [--name REPORT] [--on cluster|machines] [SCENARIO ...]``.

Some have machines of their own; those that need a cluster share one: the first that creates it pays for it, the last leaves it to us to
take down. The tests of each run (pytest-testinfra, from outside) leave their counts in build/reports/REPORT-SCENARIO-N.xml, the
scenarios in REPORT-scenarios.xml.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from lab import forge

from ._common import CACHE, ROOT, finish
from ._report import Case, run, why, write

FIRST = "default"  # it proves the whole path on a cluster that nobody touched


def known() -> list[str]:
    """Names of the scenarios, the whole path first."""
    names = {path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")}
    return sorted(names, key=lambda name: (name != FIRST, name))


def lab_of(name: str) -> dict[str, str]:
    """The lab of a scenario, as the environment that tells the lab its name and subnet."""
    places = (ROOT / ".config" / "molecule" / "config.yml", ROOT / "molecule" / name / "molecule.yml")
    return {key: value for path in places for key, value in provisioner(path).items()}


def by_lab(names: list[str]) -> list[tuple[dict[str, str], list[str]]]:
    """The scenarios by their labs."""
    groups: dict[str, tuple[dict[str, str], list[str]]] = {}
    for name in names:
        lab = lab_of(name)
        groups.setdefault(lab["LAB_NAME"], (lab, []))[1].append(name)
    return list(groups.values())


def on(place: str) -> list[str]:
    """Names of the scenarios on the shared cluster, or of those on machines of their own."""
    shared = lab_of(FIRST)["LAB_NAME"]
    return [name for name in known() if (lab_of(name)["LAB_NAME"] == shared) is (place == "cluster")]


@contextmanager
def reserved(name: str) -> Iterator[None]:
    """Keep the lab of this name to this process: the gate `matrix` runs a scenario that the gate `machines` runs too."""
    (CACHE / "molecule").mkdir(parents=True, exist_ok=True)
    with open(CACHE / "molecule" / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def provisioner(path: Path) -> dict[str, str]:
    """What a molecule configuration gives to the lab."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    environment = settings.get("provisioner", {}).get("env", {})
    return {key: str(value) for key, value in environment.items() if key in {"LAB_NAME", "LAB_SUBNET"}}


@contextmanager
def swift() -> Iterator[str]:
    """PATH with the lab's quick ``ansible-playbook`` (lab.forge), unless it has one of another environment than this Python's: those of the matrix."""
    path = os.environ["PATH"]
    if Path(shutil.which("ansible-playbook") or "").parent != Path(sys.executable).parent:
        yield path
        return
    with forge.commands() as folder:
        yield os.pathsep.join([folder, path])


def surroundings(**more: str) -> dict[str, str]:
    """This process's environment, in which the packages of tests/ are found.

    Molecule installs the collection and what it depends on below ANSIBLE_HOME, that is, a copy into the user's own and before the
    checkout. In the checkout's .ansible it meets the link to the checkout and leaves it at that.
    """
    paths = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "ANSIBLE_HOME": str(ROOT / ".ansible"), **more}


def test(name: str, report: str, path: str) -> tuple[Case, float]:
    """Run one scenario with the programs of PATH; how it ended, and its seconds."""
    # Molecule notes here what it has created: after a run that was killed it would create nothing.
    scratch = CACHE / "molecule" / f"{report}-{name}"
    shutil.rmtree(scratch, ignore_errors=True)
    environment = surroundings(
        LAB_KEEP="1",
        GATES_REPORT=f"{report}-{name}",
        PYTEST_PLUGINS="gates.pytest_report",
        MOLECULE_EPHEMERAL_DIRECTORY=str(scratch),
        PATH=path,
    )
    begin = time.monotonic()
    status, said = run(["molecule", "test", "--scenario-name", name], env=environment)
    case = Case(report, f"scenario {name}", "failed" if status else "passed", "\n".join(why(said)))
    return case, time.monotonic() - begin


def main() -> int:
    """Run the scenarios that were named, else all; take the lab down whatever happened."""
    parser = argparse.ArgumentParser(prog="gates.scenarios", description=__doc__)
    parser.add_argument("--name", default="molecule", help="how the reports are named")
    parser.add_argument(
        "--on", choices=["cluster", "machines"], help="those on the shared cluster, or on machines of their own"
    )
    parser.add_argument("scenarios", nargs="*", help="default: all")
    arguments = parser.parse_args()
    names = arguments.scenarios or (on(arguments.on) if arguments.on else known())
    cases, seconds = [], []
    for lab, those in by_lab(names):
        with reserved(lab["LAB_NAME"]), swift() as path:
            try:
                for name in those:
                    case, took = test(name, arguments.name, os.environ["PATH"] if name == FIRST else path)
                    cases.append(case)
                    seconds.append(f"{name} {took:.0f} s")
                    write(f"{arguments.name}-scenarios", cases)
            finally:
                if not os.environ.get("LAB_KEEP"):
                    subprocess.run(
                        [sys.executable, "-m", "lab", "down"], cwd=ROOT, env=surroundings(**lab), check=False
                    )
    found = [f"{case.name} failed" for case in cases if case.outcome == "failed"]
    return finish(arguments.name, found or ([] if names else ["there is no scenario"]), ", ".join(seconds) or "nothing")


if __name__ == "__main__":
    sys.exit(main())
