# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates, a row each. A gate is a function of arguments (those of its tool) that returns an exit status.

In `make test` (GATES_TIER=merge) a gate covers the selection of the change; alone and in `make test-all` it covers all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lab import binaries
from lab.settings import from_environment
from lab.shell import LabError

from . import (
    action_groups,
    all_hosts,
    argument_specs,
    artifact,
    changelog,
    codes,
    docs,
    galaxy,
    go_tests,
    layers,
    lengths,
    licences,
    private_variables,
    scenarios,
    selection,
    shell,
    tables,
    unit_tests,
    versions,
    words,
)
from ._common import CACHE, PARALLEL, REPORTS, ROOT, finish, not_run, thorough
from ._report import UNCONCERNED, Case, write
from .selection import Selection

TIERS = ("test", "test-all")
BOTH, ALL = frozenset(TIERS), frozenset(TIERS[1:])
MAIN = ("cluster", "scenarios")  # one lab, on which each mostly waits for kubelets and pods
SCENARIO = "containerd_nvidia"  # runs under each ansible-core
PACKAGE = "ansible_collections.gpu.kubernetes.plugins"
MEMORY, MEMORY_NEEDED = Path("/dev/shm"), 2 * 1024**3  # bytes, for the folder of temporary files
# Real programs that verify what the modules write: those of the lab, and other versions that nodes have.
CONTAINERDS, OTHER_CONTAINERDS = ("", "debian"), ("2.1.4", "1.7.29")
OTHER_SCHEDULERS = ("1.30.4", "1.36.3")
OTHER_PROMETHEUSES = ("trixie", "forky")  # suites of Debian
BROWSERS = ("chromium-headless-shell", "chromium")
RULEBOOK = "ansible-rulebook==1.3.2"  # has an environment of its own: it needs Java


@dataclass(frozen=True)
class Gate:
    """One gate: its name, its function, and the tiers that run it."""

    name: str
    run: Callable[[list[str]], int]
    tiers: frozenset[str] = BOTH


def read_selection() -> Selection | None:
    """The selection of the change, in `make test`; else None, which covers everything."""
    return None if thorough() else selection.select()


def record_skip(gate: str, what: str, reason: str) -> int:
    """Record what a gate leaves out as skipped, for the summary; returns exit status 0."""
    print(f"{what}: {reason}")
    write(gate, [Case(gate, what, "skipped", f"{UNCONCERNED}: {reason}")])
    return 0


def call(*command: str, **environment: str) -> int:
    """Run a tool of .venv in the checkout; its exit status."""
    print(f"$ {' '.join(command)}", flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False).returncode


@contextmanager
def open_memory_folder() -> Iterator[str]:
    """A folder for temporary files, in memory if there is enough: tests write thousands of files and synchronize each one."""
    enough = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    with TemporaryDirectory(prefix="gpu-kubernetes-", dir=MEMORY if enough else None) as folder:
        yield folder


def pytest(report: str, *arguments: str, **environment: str) -> int:
    """Run pytest and write build/reports/REPORT.xml; its exit status."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT / ".ansible" / "collections")])
    with open_memory_folder() as folder:
        # In pytest's own folder, the paths of sockets would be too long.
        options = ("-q", f"--junitxml={REPORTS / report}.xml", f"--basetemp={folder}/t")
        command = (sys.executable, "-m", "pytest", *options, *arguments)
        profile = {"HYPOTHESIS_PROFILE": "thorough"} if thorough() else {}
        return call(*command, PYTHONPATH=paths, TMPDIR=folder, **{**profile, **environment})


def build_programs(what: str, names: tuple[str, ...], make: Callable[[str], Path]) -> tuple[list[Path], int]:
    """The programs that can be built here, and 1 if a program is missing and that is a failure."""
    found, status = [], 0
    for name in names:
        try:
            found.append(make(name))
        except (LabError, OSError) as error:
            status |= not_run(f"tests with {what} {name}: {' '.join(str(error).split())[:200]}")
    return found, status


def find_reference_programs(
    *containerds: str, schedulers: tuple[str, ...] = (), prometheuses: tuple[str, ...] = ()
) -> tuple[dict[str, str], int]:
    """Environment variables with real programs for the tests: those of the lab, and more versions; 1 if a required program is missing."""
    settings = from_environment()
    found, status = build_programs(
        "containerd",
        (*CONTAINERDS, *containerds),
        lambda version: binaries.containerd(settings, version) / "containerd",
    )
    others, failed = build_programs(
        "kube-scheduler",
        (settings.kubernetes, *schedulers),
        lambda version: (
            binaries.kubernetes(replace(settings, kubernetes=version), ["kube-scheduler"]) / "kube-scheduler"
        ),
    )
    kubelets, absent = build_programs(
        "kubelet", (settings.kubernetes,), lambda _version: binaries.kubernetes(settings, ["kubelet"]) / "kubelet"
    )
    servers, missing = build_programs(
        "Debian's Prometheus", ("", *prometheuses), lambda suite: binaries.prometheus(settings, suite)
    )
    environment = {
        "PATH": os.pathsep.join([*(str(program.parent) for program in found[:1]), os.environ["PATH"]]),
        "PROMETHEUS": os.pathsep.join(map(str, servers)),
        "CONTAINERDS": os.pathsep.join(map(str, found)),
        "KUBE_SCHEDULERS": os.pathsep.join(map(str, others)),
        "KUBELETS": os.pathsep.join(map(str, kubelets)),
    }
    return environment, status | failed | absent | missing


def cluster(arguments: list[str]) -> int:
    """Molecule scenarios: `default`, the lab end to end, with its guests, or with what the change selects (ARGS="NAME ...": these)."""
    choice = read_selection()
    return scenarios.run_all(
        "cluster", arguments or (choice.scenarios if choice else [scenarios.FIRST, *scenarios.GUESTS])
    )


def other_scenarios(arguments: list[str]) -> int:
    """Molecule scenarios that need a cluster without `default`'s changes (ARGS="NAME ...": these)"""
    others = (name for name in scenarios.list_scenarios() if name not in (scenarios.FIRST, *scenarios.GUESTS))
    return scenarios.run_all("scenarios", arguments or [name for name in others if scenarios.has_cluster(name)])


def machine(name: str) -> Callable[[list[str]], int]:
    """The gate of one Molecule scenario with its own machines."""

    def run(_arguments: list[str]) -> int:
        return scenarios.run_all(f"machine-{name}", [name])

    run.__doc__ = f"Molecule scenario {name}, on machines without Kubernetes"
    return run


def lint(_arguments: list[str]) -> int:
    """yamllint, ruff, shellcheck, and ansible-lint (profile production) on what changed"""
    status = call("yamllint", "--strict", ".") | call("ruff", "check", "--output-format", "concise", ".")
    status |= call("ruff", "format", "--check", ".") | shell.main()
    choice = read_selection()
    if choice is None or choice.concerns(
        ".ansible-lint", ".config/ansible-lint-ignore.txt", "meta", "requirements-dev.txt"
    ):
        return status | call("ansible-lint", "--offline", "--strict", "--profile", "production")
    changed = {
        "/".join(Path(name).parts[:2])
        for name in choice.changed
        if name.startswith(("roles/", "playbooks/", "molecule/"))
    }
    paths = sorted(path for path in changed if (ROOT / path).exists())
    return status | (call("ansible-lint", "--offline", "--strict", "--profile", "production", *paths) if paths else 0)


def types(_arguments: list[str]) -> int:
    """mypy: strict on the plugins, sensible on the tools"""
    return call("mypy", "--package", PACKAGE) | call("mypy", "tests/gates", "tests/lab")


def contract(_arguments: list[str]) -> int:
    """Argument specs, licences, action groups, data of all hosts, layers, lengths, private variables, words, age of tables, scenarios.yml, changelog, codes"""
    status = (
        argument_specs.main()
        | licences.main()
        | action_groups.main()
        | all_hosts.main()
        | layers.main()
        | lengths.main()
        | private_variables.main()
        | words.main()
        | tables.main()
        | changelog.main([])
        | codes.main([])
    )
    status |= finish("scenarios.yml", selection.problems(), f"{len(selection.table())} scenarios")
    return status | call("antsibull-changelog", "lint")


def units(arguments: list[str]) -> int:
    """Unit tests of what changed on the Python of .venv, with real containerds, kube-schedulers, a kubelet and a Prometheus"""
    choice = read_selection()
    more = (OTHER_CONTAINERDS, OTHER_SCHEDULERS, OTHER_PROMETHEUSES) if thorough() else ((), (), ())
    environment, status = find_reference_programs(*more[0], schedulers=more[1], prometheuses=more[2])
    tests = unit_tests.list_tests() if choice is None else unit_tests.find_tests(choice.changed)
    return status | pytest("units", *PARALLEL, *(arguments or map(str, tests)), **environment)


def roles(arguments: list[str]) -> int:
    """Tests that run roles and playbooks on fake machines, of the roles that changed"""
    choice = read_selection()
    if arguments or choice is None:
        return pytest("roles", *PARALLEL, *(arguments or ("tests/unit/roles", "tests/unit/playbooks")))
    paths = [f"tests/unit/roles/{role}" for role in choice.roles]
    paths += ["tests/unit/playbooks"] if choice.concerns("playbooks", "roles/_hosts", "tests/unit/playbooks") else []
    sampled = [f"tests/unit/roles/{role}" for role in choice.sampled]
    if not (paths or sampled):
        return record_skip("roles", "playbook tests", "no role and no playbook changed")
    status = pytest("roles", *PARALLEL, *paths) if paths else 0
    return status | (pytest("roles-first", *PARALLEL, *sampled, FIRST_TESTS="1") if sampled else 0)


def nodes(_arguments: list[str]) -> int:
    """Unit tests of the code for nodes that changed, on Python 3.8; in `make test-all` of all, on all of NODE_PYTHONS"""
    choice = read_selection()
    tests = versions.select_node_tests(
        unit_tests.list_tests() if choice is None else unit_tests.find_tests(choice.changed)
    )
    pythons = versions.NODE_PYTHONS if thorough() else versions.NODE_PYTHONS[:1]
    with open_memory_folder() as folder:
        environment, status = find_reference_programs()
        del environment["PATH"]  # that of the Python under test
        for python in pythons:
            status |= versions.node_python(python, REPORTS / f"nodes-{python}", tests, TMPDIR=folder, **environment)
    return status


def fakes(arguments: list[str]) -> int:
    """The fakes of the lab: go vet, go test, pytest"""
    if (choice := read_selection()) and not choice.concerns("tests/lab/fakes", "tests/fakes", "tests/lab/versions.yml"):
        return record_skip("fakes", "tests of the fakes", "no fake changed")
    return go_tests.main("fakes-go") | pytest("fakes", *(arguments or ("tests/lab", "tests/fakes")))


def toml_suite(arguments: list[str]) -> int:
    """The TOML reader and writer against the public test suite"""
    if (choice := read_selection()) and not choice.concerns("plugins/module_utils/_toml", "tests/toml_suite"):
        return record_skip("toml-suite", "toml-test", "neither the TOML editor nor its suite changed")
    return call(sys.executable, "tests/toml_suite/run.py", *arguments)


def run_in_browser(report: str, *arguments: str) -> int:
    """Run tests in Debian's chromium; their exit status."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        return not_run(f"tests in a browser: install Debian's package {BROWSERS[0]}")
    return pytest(report, *arguments, CHROMIUM=program)


def browser(arguments: list[str]) -> int:
    """The page of the report in Debian's chromium, offline"""
    places = ("plugins/module_utils/_report", "plugins/plugin_utils/_html_report", "tests/browser")
    if (choice := read_selection()) and not choice.concerns(*places):
        return record_skip("browser", "tests in a browser", "the page of the report did not change")
    return run_in_browser("browser", *(arguments or ("tests/browser/test_html_report.py",)))


def rulebook(arguments: list[str]) -> int:
    """The example for ansible-rulebook, from an alert to a cordoned node of a fake API server"""
    if shutil.which("java") is None:
        return not_run("the example for ansible-rulebook: install Debian's package default-jre-headless")
    programs = versions.install_tools(CACHE / "rulebook", Path(sys.executable), RULEBOOK)
    return pytest("rulebook", *(arguments or ("tests/rulebook",)), RULEBOOK=str(programs))


def documentation(_arguments: list[str]) -> int:
    """Guides and reference as HTML in build/docs/html, and pages of them in a browser"""
    return docs.main() or run_in_browser("docs", "tests/browser/test_docs.py")


def built(_arguments: list[str]) -> int:
    """Build the collection, check its files, install it, show its documentation"""
    return artifact.main()


def published(_arguments: list[str]) -> int:
    """Make a release twice, install and upgrade it, import it as Galaxy does; licences by REUSE"""
    choice = read_selection()
    return galaxy.main(choice is None or choice.concerns(*galaxy.READ))


def sanity(core: str) -> Callable[[list[str]], int]:
    """The gate that runs ansible-test sanity under one ansible-core."""

    def run(_arguments: list[str]) -> int:
        name = os.environ["GATES_NAME"]
        return versions.sanity(core, REPORTS / name, quick=not thorough())

    run.__doc__ = f"ansible-test sanity under ansible-core {core}"
    return run


def core(version: str) -> Callable[[list[str]], int]:
    """The gate that tests the code that imports Ansible, under one ansible-core."""

    def run(_arguments: list[str]) -> int:
        name = f"core-{version}"
        with open_memory_folder() as folder:
            environment, status = find_reference_programs()
            del environment["PATH"]  # that of the environment under test
            status |= versions.units(version, REPORTS / f"{name}-units", TMPDIR=folder, **environment)
        if versions.find_python(versions.CONTROLLERS[version]) is None:  # the gate has reported it
            return status
        return status | scenarios.run_under_core(name, SCENARIO, versions.scenario_environment(version))

    run.__doc__ = f"Units that import Ansible, syntax of playbooks and one scenario under ansible-core {version}"
    return run


OWN = versions.own_core()
# In the order of their start: fast gates first, gates that need programs of the first job last.
GATES = {
    gate.name: gate
    for gate in (
        Gate("cluster", cluster),
        Gate("scenarios", other_scenarios, ALL),
        Gate("lint", lint),
        Gate("types", types),
        Gate("contract", contract),
        Gate("docs", documentation),
        Gate("artifact", built),
        Gate("galaxy", published),
        Gate(f"sanity-{OWN}", sanity(OWN)),
        Gate("roles", roles),
        Gate("units", units),
        Gate("nodes", nodes),
        Gate("toml-suite", toml_suite),
        Gate("browser", browser),
        Gate("fakes", fakes),
        Gate("rulebook", rulebook, ALL),
        *(
            Gate(f"machine-{name}", machine(name), ALL)
            for name in scenarios.list_scenarios()
            if not scenarios.has_cluster(name)
        ),
        *(
            gate
            for each in versions.CONTROLLERS
            if each != OWN  # by turns: the gates core-* have the same machine
            for gate in (Gate(f"core-{each}", core(each), ALL), Gate(f"sanity-{each}", sanity(each), ALL))
        ),
    )
}
# Parts of `make test-all`, for a machine each (`make test-all ARGS=lab`), by how the names of their gates begin; code has the rest.
_NAMES = {"lab": ["cluster"], "machines": ["scenarios", "machine-"], "cores": ["core-", "sanity-"], "roles": ["roles"]}
PARTS: dict[str, list[str]] = {part: [] for part in (*_NAMES, "code")}
for _name in GATES:
    PARTS[next((part for part, prefixes in _NAMES.items() if _name.startswith(tuple(prefixes))), "code")].append(_name)


def quick() -> int:
    """ruff, mypy, the contract, and the unit tests of changed packages: the edit loop, under two minutes."""
    os.environ["GATES_TIER"] = "merge"
    choice = selection.select()
    status = call("ruff", "check", "--output-format", "concise", ".") | call("ruff", "format", "--check", ".")
    status |= types([]) | contract([])
    folders = sorted({path for name in choice.changed if (path := unit_tests.tests_of(name))})
    return status | (pytest("quick", *PARALLEL, *folders) if folders else 0)
