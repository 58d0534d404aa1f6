# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The unit tests, the playbooks' syntax and one role scenario under each ansible-core that is supported: ``python -m gates.matrix``.

    python -m gates.matrix [--core X.Y ...] [--no-scenario] [--scenario NAME]

Each ansible-core gets an environment of its own in .nox, on the Python that fits it, with the tools pinned in requirements-dev.txt and
with kubernetes.core as the only other collection. A deprecation that ansible-core announces about our content is a failure.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from . import _pythons
from ._common import REPORTS, ROOT, link_dependencies, not_run

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
DEPRECATION = re.compile(r"^\[DEPRECATION WARNING\].*", re.MULTILINE)


def pins() -> list[str]:
    """``name==version`` of each tool that an environment gets."""
    found = {
        match["name"]: match["version"]
        for match in PIN.finditer((ROOT / "requirements-dev.txt").read_text(encoding="utf-8"))
    }
    return [f"{name}=={found[name]}" for name in TOOLS]


def environment(core: str, python: Path) -> Path:
    """The bin folder of the environment for one ansible-core, made or refreshed; raises CalledProcessError."""
    venv = ROOT / ".nox" / f"core-{core}"
    bin_folder = venv / "bin"
    if not (bin_folder / "python").exists():
        subprocess.run(["uv", "venv", "--quiet", "--python", python, venv], check=True)
    # The newest patch release of the series, so that its next deprecation shows here first.
    wanted = [f"ansible-core=={core}.*", *pins()]
    subprocess.run(["uv", "pip", "install", "--quiet", "--python", bin_folder / "python", *wanted], check=True)
    question = f"import sysconfig; print(sysconfig.get_path('purelib', vars={{'base': {str(venv)!r}}}))"
    purelib = subprocess.run(
        [bin_folder / "python", "-c", question], check=True, capture_output=True, text=True
    ).stdout.strip()
    link_dependencies(Path(purelib) / "ansible_collections")
    return bin_folder


def told(command: list[str], surroundings: dict[str, str]) -> bool:
    """Run a command with its output shown as it comes; True if it succeeded and ansible-core announced no deprecation of ours."""
    print(f"$ {' '.join(command)}", flush=True)
    deprecations = 0
    with subprocess.Popen(
        command, cwd=ROOT, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            deprecations += bool(DEPRECATION.match(line))
    if deprecations:
        print(
            f"{deprecations} deprecation warning(s): this content is not clean under that ansible-core", file=sys.stderr
        )
    return process.returncode == 0 and not deprecations


def commands(core: str, scenario: str | None) -> list[list[str]]:
    """What runs under one ansible-core."""
    report = REPORTS / f"matrix-{core}-units.xml"
    found = [["python", "-m", "pytest", "-q", "--numprocesses=auto", f"--junitxml={report}", "tests/unit"]]
    if playbooks := sorted(str(path.relative_to(ROOT)) for path in (ROOT / "playbooks").glob("*.yml")):
        found.append(["ansible-playbook", "--inventory", "localhost,", "--syntax-check", *playbooks])
    if scenario:
        found.append([sys.executable, "-m", "gates.scenarios", "--name", f"matrix-{core}", scenario])
    return found


def run(core: str, python: str, scenario: str | None) -> int:
    """All of one ansible-core; an exit status."""
    interpreter = _pythons.find(python)
    if interpreter is None:
        return not_run(f"matrix: ansible-core {core}: no Python {python} on this machine")
    begin = time.monotonic()
    bin_folder = environment(core, interpreter)
    surroundings = {
        **os.environ,
        "PATH": os.pathsep.join([str(bin_folder), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / ".ansible" / "collections")]),
        "HYPOTHESIS_PROFILE": "quick",
        "ANSIBLE_DEPRECATION_WARNINGS": "1",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    }
    outcomes = [told(command, surroundings) for command in commands(core, scenario)]
    good = all(outcomes)
    print(
        f"matrix: ansible-core {core} on Python {python}: {'ok' if good else 'failed'} in {time.monotonic() - begin:.0f} s\n",
        flush=True,
    )
    return 0 if good else 1


def main() -> int:
    """Parse the command line; run what it selects."""
    parser = argparse.ArgumentParser(prog="gates.matrix", description=__doc__)
    parser.add_argument("--core", action="append", choices=[core for core, _python in _pythons.CONTROLLERS])
    parser.add_argument("--scenario", default="containerd_nvidia", help="the role scenario to run")
    parser.add_argument("--no-scenario", dest="scenario", action="store_const", const=None)
    arguments = parser.parse_args()
    REPORTS.mkdir(parents=True, exist_ok=True)
    chosen = [entry for entry in _pythons.CONTROLLERS if not arguments.core or entry[0] in arguments.core]
    return max([run(core, python, arguments.scenario) for core, python in chosen])


if __name__ == "__main__":
    sys.exit(main())
