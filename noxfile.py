# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates of this collection, one session each: those with machines, those that fail fastest, longer ones, and short ones to fill the lanes
in the end. `make test` runs them all, three at a time (gates.lanes).

Sessions use the tools of .venv (`make venv`); only the matrix makes environments of its own. Every pytest run leaves a JUnit file named
after its session in build/reports, where gates.summary counts.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import nox
from nox.command import CommandFailed

sys.path.insert(0, str(Path(__file__).parent / "tests"))

from gates._common import PARALLEL
from gates.lanes import FIRST
from gates.matrix import others

ROOT = Path(__file__).parent
REPORTS = ROOT / "build" / "reports"
PACKAGE = "ansible_collections.gpu.kubernetes.plugins"
MEMORY, MEMORY_NEEDED = Path("/dev/shm"), 2 * 1024**3  # noqa: S108 - bytes; a folder of our own is made there
# Unit tests ask a real containerd, the lab's, what it makes of the files that the collection writes.
CONTAINERD = ("python", "-m", "gates.with_containerd")
SCHEDULERS = ("python", "-m", "gates.with_schedulers")
REAL_SCHEDULERS = "tests/unit/plugins/module_utils/_scheduler/test_real.py"

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "none"
nox.options.error_on_external_run = False


def run(session: nox.Session, *command: str, **environment: str) -> None:
    """Run one tool of .venv from the root of the checkout."""
    surroundings = {"PYTHONPATH": str(ROOT / "tests"), "GATES_SESSION": session.name, **environment}
    session.run(*command, external=True, env=surroundings)


def run_all(session: nox.Session, *commands: str) -> None:
    """Run every tool whatever the others say, so that one run tells all; the session fails if one did."""
    failed = []
    for command in commands:
        try:
            run(session, *command.split())
        except CommandFailed:
            failed.append(command)
    if failed:
        session.error(f"failed: {'; '.join(failed)}")


@contextmanager
def in_memory(wanted: bool = True) -> Iterator[dict[str, str]]:
    """A TMPDIR in memory where there is one: the unit tests make thousands of files safe on disk, and wait for it."""
    place = MEMORY if wanted and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED else None
    with TemporaryDirectory(prefix="gpu-kubernetes-", dir=place) as folder:
        yield {"TMPDIR": folder}


def gate(session: nox.Session, name: str, *arguments: str, after: tuple[str, ...] = ()) -> None:
    """Run one of the project's own checks, tests/gates/NAME.py, perhaps AFTER another program; that one runs unit tests."""
    with in_memory(wanted=bool(after)) as temporary:
        run(session, *after, "python", "-m", f"gates.{name}", *arguments, **temporary)


def pytest(session: nox.Session, name: str, *arguments: str, after: tuple[str, ...] = ()) -> None:
    """Run pytest, perhaps AFTER another program, and leave its counts in build/reports/NAME.xml."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT / ".ansible" / "collections")])
    command = ("python", "-m", "pytest", "-q", f"--junitxml={REPORTS / name}.xml", *arguments)
    with in_memory() as temporary:
        run(session, *after, *command, PYTHONPATH=paths, **temporary)


@nox.session(tags=[FIRST])
def molecule(session: nox.Session) -> None:
    """Molecule scenarios on a cluster, verified from outside by pytest-testinfra."""
    gate(session, "scenarios", "--on", "cluster", *session.posargs)


@nox.session
def machines(session: nox.Session) -> None:
    """Molecule scenarios on machines of their own, without Kubernetes."""
    gate(session, "scenarios", "--name", "machines", "--on", "machines", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Yamllint, ruff, shellcheck, ansible-lint with profile production."""
    run_all(
        session,
        "yamllint --strict .",
        "ruff check --output-format concise .",
        "ruff format --check .",
        "python -m gates.shell",
        "ansible-lint --offline --strict --profile production",
    )


@nox.session
def types(session: nox.Session) -> None:
    """Mypy: strict on the plugins, sensible on the tools."""
    run_all(session, f"mypy --package {PACKAGE}", "mypy tests/gates tests/lab noxfile.py")


@nox.session
def contract(session: nox.Session) -> None:
    """What no linter knows: specs, licences, action groups, floors, changelog."""
    gates = ("argument_specs", "licences", "action_groups", "floors")
    run_all(session, *(f"python -m gates.{name}" for name in gates), "antsibull-changelog lint")


@nox.session
def units(session: nox.Session) -> None:
    """Unit tests on the Python of .venv."""
    pytest(session, "units", *PARALLEL, *(session.posargs or ["tests/unit"]), after=CONTAINERD)


@nox.session
def schedulers(session: nox.Session) -> None:
    """Real kube-schedulers of several versions read what kube_scheduler_manifest writes."""
    pytest(session, "schedulers", *PARALLEL, *(session.posargs or [REAL_SCHEDULERS]), after=SCHEDULERS)


def matrix(core: str) -> None:
    """Make the gate matrix-CORE: units and one role scenario under an ansible-core that is supported."""

    @nox.session(name=f"matrix-{core}")
    def under(session: nox.Session) -> None:
        gate(session, "matrix", "--core", core, *session.posargs, after=CONTAINERD)


for core in others():
    matrix(core)


@nox.session
def nodes(session: nox.Session) -> None:
    """Ansible-test units on the Pythons of nodes."""
    gate(session, "ansible_test", "units", *session.posargs, after=CONTAINERD)


@nox.session
def sanity(session: nox.Session) -> None:
    """Ansible-test sanity, on every Python of controllers and nodes."""
    gate(session, "ansible_test", "sanity", *session.posargs)


@nox.session(name="toml-suite")
def toml_suite(session: nox.Session) -> None:
    """The public TOML suite against the lossless editor."""
    run(session, "python", "tests/toml_suite/run.py", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Guides and generated reference."""
    gate(session, "docs")


@nox.session
def artifact(session: nox.Session) -> None:
    """The built collection: content, installation, ansible-doc."""
    gate(session, "artifact")


@nox.session(name="stand-ins")
def stand_ins(session: nox.Session) -> None:
    """What the lab itself is made of: go vet, Go tests, pytest; and NVML as NVIDIA's header has it."""
    gate(session, "go_tests", "stand-ins-go")
    pytest(session, "stand-ins", *(session.posargs or ["tests/lab", "tests/fakes"]))
