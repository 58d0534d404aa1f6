# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit tests, the playbooks' syntax and one role scenario under the ansible-cores that are supported: ``python -m gates.matrix``.

    python -m gates.matrix [--core X.Y ...] [--no-scenario] [--scenario NAME]

Each ansible-core gets an environment of its own in .nox, on the Python that fits it, with the tools pinned in requirements-dev.txt and
with kubernetes.core as the only other collection. The one of .venv, with which all other gates run, is left out unless it is asked
for. A deprecation that ansible-core announces about our content is a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

from . import _pythons
from ._common import PARALLEL, REPORTS, ROOT, finish, link_dependencies, not_run
from ._report import Case, plain, run, why, write

TOOLS = (
    "hypothesis",
    "jsonschema",
    "kubernetes",
    "molecule",
    "pytest",
    "pytest-testinfra",
    "pytest-xdist",
    "PyYAML",
    "rich",
    "ruamel.yaml",
)
PIN = re.compile(r"^(?P<name>[\w.-]+) == (?P<version>[\w.]+)", re.MULTILINE)
# The tests of what imports no Ansible (gates.floors says so): an ansible-core cannot change a thing about them. The gate `units` runs
# them on the Python of .venv, `nodes` on the oldest ones, and the newest one is here.
GROUND = ("--ignore-glob=*/module_utils/_*", "--ignore-glob=*/module_utils/test__[!k]*")
# The tests that run playbooks take the longest. .venv's ansible-core runs all of them; the oldest one, whose templates are another engine's, runs a case
# of each (tests/unit/playbooks/conftest.py). What the newer ones make of playbooks is shown by their syntax and the scenario.
PLAYBOOKS = ("--ignore=tests/unit/playbooks",)
# An ansible-core that is neither the oldest nor the newest has nothing to tell modules that those two have not; it runs no scenario either.
MODULES = ("--ignore=tests/unit/plugins/modules",)
# The machine of the scenario, for the oldest ansible-core and the newest: each with a line of containerd that the gate `machines` does not meet.
MACHINES = {"2.18": "t4@debian", "2.21": "t4@2.1.4"}
# One of them, with containerd 2, gets the runtime in a file of its own.
DROP_INS = {"2.21": "/etc/containerd/conf.d/99-nvidia.toml"}
# Molecule draws a border to the left of what Ansible says and breaks lines. What kubernetes.core still imports is not ours to mend.
FOREIGN = r": Importing 'to_(bytes|native|text)'"
DEPRECATION = re.compile(rf"[\s│]*\[DEPRECATION WARNING\](?!{FOREIGN})")


def pins() -> list[str]:
    """``name==version`` of each tool that an environment gets."""
    found = {
        match["name"]: match["version"]
        for match in PIN.finditer((ROOT / "requirements-dev.txt").read_text(encoding="utf-8"))
    }
    return [f"{name}=={found[name]}" for name in TOOLS]


def environment(core: str, python: Path) -> Path:
    """The bin folder of the environment for one ansible-core, made or refreshed; raises CalledProcessError with what uv said."""
    version = f"{core}-{python.name}"
    venv = ROOT / ".nox" / f"core-{version}"
    interpreter = venv / "bin" / "python"
    if not interpreter.exists():
        uv("venv", "--clear", "--python", str(python), str(venv))
    # The newest patch release of the series, so that its next deprecation shows here first.
    uv("pip", "install", "--python", str(interpreter), f"ansible-core=={core}.*", *pins())
    question = "import sysconfig; print(sysconfig.get_path('purelib'))"
    answer = subprocess.run([interpreter, "-c", question], check=True, capture_output=True, text=True).stdout
    link_dependencies(Path(answer.strip()) / "ansible_collections")
    return interpreter.parent


def uv(*arguments: str) -> None:
    """Run uv, silent unless it fails."""
    subprocess.run(
        ["uv", *arguments, "--quiet"], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def surroundings(bin_folder: Path) -> dict[str, str]:
    """The environment for the tools of one ansible-core; what belongs to another Ansible or environment is left out."""
    foreign = ("ANSIBLE_", "MOLECULE_", "VIRTUAL_ENV", "PYTHONHOME")
    return {key: value for key, value in os.environ.items() if not key.startswith(foreign)} | {
        "PATH": os.pathsep.join([str(bin_folder), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / ".ansible" / "collections")]),
        "HYPOTHESIS_PROFILE": "quick",
        "ANSIBLE_DEPRECATION_WARNINGS": "1",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    }


def commands(core: str, python: str, scenario: str | None) -> dict[str, list[str]]:
    """What runs under one ansible-core, by what it is called in the report."""
    report = REPORTS / f"matrix-{core}-units.xml"
    newest = _pythons.CONTROLLERS[-1][1]
    left_out: tuple[str, ...] = (
        () if python == newest != f"{sys.version_info.major}.{sys.version_info.minor}" else GROUND
    )
    if core != _pythons.CONTROLLERS[0][0]:
        left_out += PLAYBOOKS
    if core not in MACHINES:
        left_out += MODULES
    pytest = ["python", "-m", "pytest", "-q", *PARALLEL, f"--junitxml={report}", *left_out, "tests/unit"]
    found = {"version": ["ansible-playbook", "--version"], "units": pytest}
    if playbooks := sorted(str(path.relative_to(ROOT)) for path in (ROOT / "playbooks").glob("*.yml")):
        found["syntax of playbooks"] = ["ansible-playbook", "--inventory", "localhost,", "--syntax-check", *playbooks]
    if scenario and core in MACHINES:
        # What goes wrong on a node is no matter of the controller's version: those tests run once, in the gate `machines`.
        drop_in = f"SCENARIO_DROP_IN={DROP_INS.get(core, '')}"
        settings = [f"SCENARIO_GPUS={MACHINES[core]}", drop_in, "PYTEST_ADDOPTS=-k 'not test_faults'"]
        command = ["env", *settings, sys.executable, "-m", "gates.scenarios", "--name", f"matrix-{core}", scenario]
        found[f"scenario {scenario}"] = command
    return found


def problems(core: str, step: str, status: int, said: list[str]) -> list[str]:
    """Why a step failed, in the words of its command; nothing for a step that is well."""
    found = why(said) or ["it said nothing"] if status else []
    announced = [line for line in map(plain, said) if DEPRECATION.match(line)]
    if announced:
        found += [f"{len(announced)} deprecation warning(s), so this content is not clean:", *announced[:5]]
    if step == "version" and not any(f"[core {core}." in line for line in said):
        found.append(f"this is not ansible-core {core}")
    return [f"{step}: exit status {status}", *found] if found else []


def check(core: str, python: str, interpreter: Path, scenario: str | None) -> Case:
    """All of one ansible-core; each step whatever the others say."""
    found: list[str] = []
    try:
        env = surroundings(environment(core, interpreter))
    except subprocess.CalledProcessError as error:
        found = [
            f"its environment: {' '.join(map(str, error.cmd[:3]))}: exit status {error.returncode}",
            *why(error.stdout.splitlines()),
        ]
    else:
        for step, command in commands(core, python, scenario).items():
            found += problems(core, step, *run(command, env=env))
    return Case("matrix", f"ansible-core {core} on Python {python}", "failed" if found else "passed", "\n".join(found))


def own() -> str:
    """The ansible-core that this process lies beside, as 2.19."""
    return ".".join(version("ansible-core").split(".")[:2])


def others() -> list[str]:
    """The ansible-cores that are supported, without that of .venv, which all other gates run with."""
    return [core for core, _python in _pythons.CONTROLLERS if core != own()]


def main() -> int:
    """Parse the command line; run what it selects."""
    parser = argparse.ArgumentParser(prog="gates.matrix", description=__doc__)
    parser.add_argument("--core", action="append", choices=[core for core, _python in _pythons.CONTROLLERS])
    parser.add_argument("--scenario", default="containerd_nvidia", help="the role scenario to run")
    parser.add_argument("--no-scenario", dest="scenario", action="store_const", const=None)
    arguments = parser.parse_args()
    cases: list[Case] = []
    status = 0
    for core, python in _pythons.CONTROLLERS:
        if core not in (arguments.core or others()):
            continue
        if not (interpreter := _pythons.find(python)):
            status |= not_run(f"ansible-core {core}: no Python {python} on this machine")
            continue
        begin = time.monotonic()
        case = check(core, python, interpreter, arguments.scenario)
        cases.append(case)
        write(f"matrix-{core}", [case])
        print(f"matrix: {case.name}: {case.outcome} in {time.monotonic() - begin:.0f} s\n{case.detail}\n", flush=True)
    names = ", ".join(case.name for case in cases)
    return finish("matrix", [f"{case.name} failed" for case in cases if case.outcome == "failed"], names) or status


if __name__ == "__main__":
    sys.exit(main())
