# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule scenarios, one after the other, each with a fingerprint of nodes and cluster before and after.

Scenarios on a cluster share one lab. Where the fingerprint differs after a scenario, that scenario has failed and the next one gets a new lab. `sharing` runs
on the cluster that `default` has converged, before `default` undoes it. JUnit files are build/reports/GATE-*.xml.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import yaml
from lab import fingerprint
from lab.settings import Settings
from lab.shell import LabError

from ._common import CACHE, ROOT
from ._report import Case, run, why, write
from .versions import deprecations

FIRST, GUEST = "default", "sharing"
SETTINGS = ("LAB_NAME", "LAB_SUBNET")


def known() -> list[str]:
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
    """Whether a scenario runs on the shared cluster, and not on machines of its own."""
    return lab_of(name) == lab_of(FIRST)


def surroundings(**more: str) -> dict[str, str]:
    """This process's environment, in which the packages of tests/ and the checkout's own link to the collection are found."""
    paths = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "ANSIBLE_HOME": str(ROOT / ".ansible"), **more}


def molecule(
    gate: str, name: str, environment: Mapping[str, str], check: Callable[[list[str]], list[str]] = lambda _lines: []
) -> Case:
    """Run one scenario from its first step to its last, with *environment* on top of this process's.

    *check* returns what is wrong with the output of a run that passed.
    """
    # Molecule keeps here what it has created: after a run that was killed it would create nothing.
    scratch = CACHE / "molecule" / f"{gate}-{name}"
    shutil.rmtree(scratch, ignore_errors=True)
    begin = time.monotonic()
    settings = surroundings(GATES_REPORT=f"{gate}-{name}", MOLECULE_EPHEMERAL_DIRECTORY=str(scratch), **environment)
    status, printed = run(["molecule", "test", "--scenario-name", name], env=settings)
    wrong = (why(printed) or ["it printed nothing"]) if status else check(printed)
    return Case("scenario", name, "failed" if wrong else "passed", "\n".join(wrong), time.monotonic() - begin)


@contextmanager
def reserved(settings: Mapping[str, str]) -> Iterator[None]:
    """Keep other gates off the lab of these settings: several gates have scenarios on machines of the same names."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{settings['LAB_NAME']}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def start(settings: Mapping[str, str]) -> None:
    """Start the lab of these settings; raises LabError where it fails."""
    status, printed = run([sys.executable, "-m", "lab", "up"], env=surroundings(**settings))
    if status:
        raise LabError("\n".join(why(printed)))


def remove(settings: Mapping[str, str]) -> None:
    """Remove the lab of these settings, also one that is there in part."""
    subprocess.run([sys.executable, "-m", "lab", "down"], cwd=ROOT, env=surroundings(**settings), check=False)


def has_run_guest(printed: list[str]) -> list[str]:
    """What is wrong with the output of `default` where it had a guest: Molecule passes over a folder without tests."""
    tested = any(f"/{GUEST}/present/test_" in line for line in printed)
    return [] if tested else [f"error: the tests of {GUEST} did not run"]


def compared(gate: str, name: str, settings: Mapping[str, str], *, guest: bool) -> Case:
    """Run one scenario on the cluster, and compare nodes and cluster with what they were before it."""
    where = Settings(name=settings["LAB_NAME"], subnet=settings["LAB_SUBNET"])
    case = Case("scenario", name, "failed")
    try:
        start(settings)
        before = fingerprint.take(where)
        environment = {"LAB_KEEP": "1", **({"LAB_GUEST": GUEST} if guest else {})}
        case = molecule(gate, name, environment, *([has_run_guest] if guest else []))
        if case.outcome == "failed":
            return case
        left = fingerprint.remaining(before, where)
    except LabError as error:
        left = [str(error)]
    if not left:
        return case
    print(f"{name} left differences on nodes or cluster:", *left, sep="\n  ", flush=True)
    return replace(case, outcome="failed", detail="\n".join(["error: it left differences:", *left]))


def on_cluster(gate: str, names: Sequence[str]) -> list[Case]:
    """Run scenarios on the shared cluster; each has to leave nodes and cluster as it found them. After a failure the next one gets a new lab."""
    settings, keep = lab_of(FIRST), bool(os.environ.get("LAB_KEEP"))
    guest = GUEST in names and FIRST in names
    cases: list[Case] = []
    with reserved(settings):
        try:
            if not keep:
                remove(settings)  # what a run that was killed has left
            for name in (name for name in names if not (guest and name == GUEST)):
                cases.append(compared(gate, name, settings, guest=guest and name == FIRST))
                write(f"{gate}-scenarios", cases)
                if cases[-1].outcome == "failed":
                    remove(settings)
        finally:
            if not keep:
                remove(settings)
    return cases


def on_machines(
    gate: str,
    names: Sequence[str],
    environment: Mapping[str, str] | None = None,
    check: Callable[[list[str]], list[str]] = lambda _lines: [],
) -> list[Case]:
    """Run scenarios that have machines of their own; each removes them. *environment* and *check* as of ``molecule``."""
    cases: list[Case] = []
    for name in names:
        with reserved(lab_of(name)):
            try:
                cases.append(molecule(gate, name, environment or {}, check))
            finally:
                remove(lab_of(name))
        write(f"{gate}-scenarios", cases)
    return cases


def report(cases: Sequence[Case]) -> int:
    """Print what became of scenarios; exit status."""
    for case in cases:
        print(f"scenario {case.name}: {case.outcome} in {case.seconds:.0f} s")
    return int(not cases or any(case.outcome == "failed" for case in cases))


def run_all(gate: str, names: Sequence[str]) -> int:
    """Run the named scenarios, those on the cluster first; exit status."""
    if unknown := set(names) - set(known()):
        print(f"There is no scenario {', '.join(sorted(unknown))}; choose from {', '.join(known())}.", file=sys.stderr)
        return 2
    cluster = [name for name in names if has_cluster(name)]
    cases = on_cluster(gate, cluster) if cluster else []
    return report(cases + on_machines(f"{gate}-machines", [name for name in names if name not in cluster]))


def under(gate: str, name: str, environment: Mapping[str, str]) -> int:
    """Run one machine scenario with *environment*, that of another ansible-core, which must announce no deprecation; exit status."""
    return report(on_machines(gate, [name], environment, check=deprecations))
