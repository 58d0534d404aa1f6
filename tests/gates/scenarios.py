# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Molecule scenarios, one after the other: ``python -m gates.scenarios [--name REPORT] [SCENARIO ...]``.

Scenarios that need a cluster share one: the first that creates it pays for it, the last leaves it to us to take down. The tests of each
run (pytest-testinfra, from outside) leave their counts in build/reports/REPORT-SCENARIO-N.xml.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import yaml

from ._common import ROOT, finish

FIRST = "default"  # it proves the whole path on a cluster that nobody touched


def known() -> list[str]:
    """Names of the scenarios, the whole path first."""
    names = {path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")}
    return sorted(names, key=lambda name: (name != FIRST, name))


def labs(names: list[str]) -> list[dict[str, str]]:
    """The labs that the scenarios leave behind, each as the environment that tells the lab its name and subnet."""
    shared = provisioner(ROOT / ".config" / "molecule" / "config.yml")
    found = {}
    for name in names:
        settings = {**shared, **provisioner(ROOT / "molecule" / name / "molecule.yml")}
        found[settings.get("LAB_NAME")] = settings
    return list(found.values())


def provisioner(path: Path) -> dict[str, str]:
    """What a molecule configuration gives to the lab."""
    settings = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    environment = settings.get("provisioner", {}).get("env", {})
    return {key: str(value) for key, value in environment.items() if key in {"LAB_NAME", "LAB_SUBNET"}}


def surroundings(**more: str) -> dict[str, str]:
    """This process's environment, in which the packages of tests/ are found."""
    paths = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def test(name: str, report: str) -> tuple[bool, float]:
    """Run one scenario; whether it succeeded, and its seconds."""
    environment = surroundings(LAB_KEEP="1", GATES_REPORT=f"{report}-{name}", PYTEST_PLUGINS="gates.pytest_report")
    begin = time.monotonic()
    command = ["molecule", "test", "--scenario-name", name]
    print(f"$ {' '.join(command)}", flush=True)
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    return status == 0, time.monotonic() - begin


def main() -> int:
    """Run the scenarios that were named, else all; take the lab down whatever happened."""
    parser = argparse.ArgumentParser(prog="gates.scenarios", description=__doc__)
    parser.add_argument("--name", default="molecule", help="how the reports are named")
    parser.add_argument("scenarios", nargs="*", help="default: all")
    arguments = parser.parse_args()
    names = arguments.scenarios or known()
    found, told = [], []
    try:
        for name in names:
            good, seconds = test(name, arguments.name)
            told.append(f"{name} {seconds:.0f} s")
            if not good:
                found.append(f"scenario {name} failed")
    finally:
        for lab in [] if os.environ.get("LAB_KEEP") else labs(names):
            subprocess.run([sys.executable, "-m", "lab", "down"], cwd=ROOT, env=surroundings(**lab), check=False)
    return finish("molecule", found or ([] if names else ["there is no scenario"]), ", ".join(told) or "nothing")


if __name__ == "__main__":
    sys.exit(main())
