# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule scenarios, one after the other, each with a fingerprint of nodes and cluster before and after.

Scenarios on a cluster share one lab. If the fingerprint differs after a scenario, that scenario has failed and the next one gets a new lab. The tests of
GUESTS run on the cluster that `default` has converged, before `default` undoes it. JUnit files are build/reports/GATE-*.xml.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

import yaml
from lab import fingerprint
from lab.settings import Settings
from lab.shell import LabError

from ._common import CACHE, ROOT, lock_file
from ._report import Case, explain_failure, run, write
from .versions import find_deprecations

FIRST = "default"
# A guest and the variable with which molecule/default/molecule.yml runs its tests, in this order.
GUESTS = {
    "sharing": "LAB_GUEST",
    "nvidia_sharing": "LAB_SECOND_GUEST",
    "monitoring": "LAB_THIRD_GUEST",
    "vendors": "LAB_FOURTH_GUEST",
}
SETTINGS = ("LAB_NAME", "LAB_SUBNET")


def list_scenarios() -> list[str]:
    """Names of all scenarios, `default` first."""
    names = {path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")}
    return sorted(names, key=lambda name: (name != FIRST, name))


def lab_of(name: str) -> dict[str, str]:
    """LAB_NAME and LAB_SUBNET of a scenario, from the shared configuration and its own."""
    found: dict[str, str] = {}
    for path in (ROOT / ".config" / "molecule" / "config.yml", ROOT / "molecule" / name / "molecule.yml"):
        settings = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        environment = settings.get("provisioner", {}).get("env", {})
        found.update({key: str(value) for key, value in environment.items() if key in SETTINGS})
    return found


def has_cluster(name: str) -> bool:
    """Whether a scenario runs on the shared cluster and not on its own machines."""
    return lab_of(name) == lab_of(FIRST)


def build_environment(**more: str) -> dict[str, str]:
    """The environment of this process, with the packages of tests/ and the checkout's link to the collection."""
    paths = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "ANSIBLE_HOME": str(ROOT / ".ansible"), **more}


def molecule(
    gate: str, name: str, environment: Mapping[str, str], check: Callable[[list[str]], list[str]] = lambda _lines: []
) -> Case:
    """Run one scenario from its first step to its last; *environment* extends that of this process.

    *check* returns the problems of the output of a run that passed.
    """
    # Molecule stores here what it has created: after a killed run it would create nothing.
    scratch = CACHE / "molecule" / f"{gate}-{name}"
    shutil.rmtree(scratch, ignore_errors=True)
    begin = time.monotonic()
    settings = build_environment(
        GATES_REPORT=f"{gate}-{name}", MOLECULE_EPHEMERAL_DIRECTORY=str(scratch), **environment
    )
    status, printed = run(["molecule", "test", "--scenario-name", name], env=settings)
    problems = (explain_failure(printed) or ["it printed nothing"]) if status else check(printed)
    return Case("scenario", name, "failed" if problems else "passed", "\n".join(problems), time.monotonic() - begin)


def reserve_lab(settings: Mapping[str, str]) -> AbstractContextManager[None]:
    """Lock the lab of these settings: several gates have scenarios on machines with the same names."""
    return lock_file(CACHE / f"{settings['LAB_NAME']}.lock")


def start(settings: Mapping[str, str]) -> None:
    """Start the lab of these settings; raises LabError if it fails."""
    status, printed = run([sys.executable, "-m", "lab", "up"], env=build_environment(**settings))
    if status:
        raise LabError("\n".join(explain_failure(printed)))


def remove(settings: Mapping[str, str]) -> None:
    """Remove the lab of these settings, also an incomplete one."""
    subprocess.run([sys.executable, "-m", "lab", "down"], cwd=ROOT, env=build_environment(**settings), check=False)


def check_guests(guests: Sequence[str], printed: list[str]) -> list[str]:
    """The problems of the output of `default` with guests: Molecule ignores a folder without tests."""
    tested = [guest for guest in guests if any(f"/{guest}/present/test_" in line for line in printed)]
    return [f"error: the tests of {guest} did not run" for guest in guests if guest not in tested]


def run_and_compare(gate: str, name: str, settings: Mapping[str, str], guests: Sequence[str] = ()) -> Case:
    """Run one scenario, with the tests of guests, on the cluster, and compare nodes and cluster with their state before it."""
    where = Settings(name=settings["LAB_NAME"], subnet=settings["LAB_SUBNET"])
    case = Case("scenario", name, "failed")
    try:
        start(settings)
        before = fingerprint.take(where)
        environment = {"LAB_KEEP": "1", **{GUESTS[guest]: guest for guest in guests}}
        case = molecule(gate, name, environment, partial(check_guests, guests))
        if case.outcome == "failed":
            return case
        differences = fingerprint.remaining(before, where)
    except LabError as error:
        differences = [str(error)]
    if not differences:
        return case
    print(f"{name} left differences on nodes or cluster:", *differences, sep="\n  ", flush=True)
    return replace(case, outcome="failed", detail="\n".join(["error: it left differences:", *differences]))


def run_on_cluster(gate: str, names: Sequence[str]) -> list[Case]:
    """Run scenarios on the shared cluster; each has to restore nodes and cluster. After a failure the next one gets a new lab."""
    settings, keep = lab_of(FIRST), bool(os.environ.get("LAB_KEEP"))
    guests = [name for name in GUESTS if name in names and FIRST in names]
    cases: list[Case] = []
    with reserve_lab(settings):
        try:
            if not keep:
                remove(settings)  # the lab of a killed run
            for name in (name for name in names if name not in guests):
                cases.append(run_and_compare(gate, name, settings, guests if name == FIRST else ()))
                write(f"{gate}-scenarios", cases)
                if cases[-1].outcome == "failed":
                    remove(settings)
        finally:
            if not keep:
                remove(settings)
    return cases


def run_on_machines(
    gate: str,
    names: Sequence[str],
    environment: Mapping[str, str] | None = None,
    check: Callable[[list[str]], list[str]] = lambda _lines: [],
) -> list[Case]:
    """Run scenarios on their own machines; each removes them. *environment* and *check* as in ``molecule``."""
    cases: list[Case] = []
    for name in names:
        with reserve_lab(lab_of(name)):
            try:
                cases.append(molecule(gate, name, environment or {}, check))
            finally:
                remove(lab_of(name))
        write(f"{gate}-scenarios", cases)
    return cases


def report(cases: Sequence[Case]) -> int:
    """Print the outcome of scenarios; returns an exit status."""
    for case in cases:
        print(f"scenario {case.name}: {case.outcome} in {case.seconds:.0f} s")
    return int(not cases or any(case.outcome == "failed" for case in cases))


def run_all(gate: str, names: Sequence[str]) -> int:
    """Run the named scenarios, those on the cluster first; exit status."""
    if unknown := set(names) - set(list_scenarios()):
        print(
            f"There is no scenario {', '.join(sorted(unknown))}; choose from {', '.join(list_scenarios())}.",
            file=sys.stderr,
        )
        return 2
    cluster = [name for name in names if has_cluster(name)]
    cases = run_on_cluster(gate, cluster) if cluster else []
    return report(cases + run_on_machines(f"{gate}-machines", [name for name in names if name not in cluster]))


def run_under_core(gate: str, name: str, environment: Mapping[str, str]) -> int:
    """Run a machine scenario with the *environment* of another ansible-core, and reject deprecation warnings; returns an exit status."""
    return report(run_on_machines(gate, [name], environment, check=find_deprecations))
