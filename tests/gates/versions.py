# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The versions of ansible-core and Python that the collection supports, and the tests under each of them.

Each ansible-core other than that of .venv gets an environment in .cache, on a Python that it supports, with the tools pinned in
requirements-dev.txt and with kubernetes.core as the only other collection.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import version as installed
from pathlib import Path

from lab.shell import DOWNLOAD_TRIES
from lab.shell import run as shell

from ._common import (
    CACHE,
    PARALLEL,
    ROOT,
    SITE_PACKAGES,
    api_modules,
    collection_tree,
    link_dependencies,
    lock_file,
    not_run,
)
from ._report import run, strip_escapes

TESTS = Path("tests") / "unit" / "plugins"

# ansible-core on the controller -> Python to run it on. 2.18 to 2.21 is the support claim of the collection.
CONTROLLERS = {"2.18": "3.11", "2.19": "3.11", "2.20": "3.12", "2.21": "3.13"}
# ansible-core -> the oldest Python on nodes that it supports.
OLDEST = {"2.18": "3.8", "2.19": "3.8", "2.20": "3.9", "2.21": "3.9"}
# The Pythons on which the code for nodes is tested: the two oldest, and the newest.
NODE_PYTHONS = ("3.8", "3.9", "3.13")
# Python 3.14 is missing although ansible-core 2.20 and 2.21 run on it: the guide on support says that it is not supported yet.
PYTHONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13")
# The gates require these; a full sanity run also uses the others of PYTHONS that the machine has.
NEEDED = tuple(version for version in PYTHONS if version in {*NODE_PYTHONS, *CONTROLLERS.values()})

# The packages of requirements-dev.txt that the tests and the scenario need.
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
# The last versions for Python 3.8.
NODE_TOOLS = ("hypothesis==6.113.0", "pytest==8.3.5", "pytest-xdist==3.6.1", "PyYAML==6.0.3")
# Tools of the repository that are not part of the collection; ruff and mypy check them.
OUTSIDE = (
    "molecule",
    "tests/lab",
    "tests/fakes",
    "tests/gates",
    "tests/gpu",
    "tests/toml_suite",
    "tests/browser",
    "tests/rulebook",
    "docs/conf.py",
)
# The machine of the scenario containerd_nvidia under an ansible-core, and the drop-in that the role writes (None: the main file).
MACHINES = {
    "2.18": ("t4@debian", ""),
    "2.20": ("t4", ""),
    "2.21": ("t4@2.1.4", "/etc/containerd/conf.d/99-nvidia.toml"),
}
# Molecule prints a border to the left of Ansible's output. The imports of kubernetes.core cannot be fixed here.
OTHERS = r": Importing 'to_(bytes|native|text)'"
DEPRECATION = re.compile(rf"[\s│]*\[DEPRECATION WARNING\](?!{OTHERS})")
# ansible-test installs pip by a script, which it downloads unless its cache has it.
PIP_SCRIPT = "import ensurepip\n\nensurepip.bootstrap()\n"
PIP_VERSIONS = """
import sys
from ansible_test._internal.host_configs import NativePythonConfig
from ansible_test._internal.python_requirements import get_venv_packages
print(*{get_venv_packages(NativePythonConfig(version=version, path=""))["pip"] for version in sys.argv[1:]})
"""


def _version(python: Path) -> str | None:
    """``X.Y`` of an interpreter; None if it does not run (such as a pyenv shim without the version) or cannot create environments."""
    question = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


def _candidates(version: str) -> list[Path]:
    # As in the Makefile: the distribution's first.
    folders = [Path(entry) for entry in ("/usr/bin", *os.environ.get("PATH", os.defpath).split(os.pathsep)) if entry]
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    data = Path(os.environ.get("XDG_DATA_HOME", home / ".local" / "share"))
    folders += sorted(pyenv.glob(f"versions/{version}.*/bin"), reverse=True)
    folders += sorted((data / "uv" / "python").glob(f"cpython-{version}.*/bin"), reverse=True)
    return [folder / f"python{version}" for folder in folders]


@lru_cache
def find_python(version: str) -> Path | None:
    """The interpreter of Python *version* (``3.8``) of the distribution, on PATH, in pyenv or among uv's, outside virtual environments."""
    for candidate in _candidates(version):
        inside = (candidate.parent.parent / "pyvenv.cfg").exists()
        if not inside and os.access(candidate, os.X_OK) and _version(candidate) == version:
            return candidate.resolve()
    return None


def install_pythons() -> int:
    """Let uv install those of NEEDED that the machine lacks; exit status. Without them, gates are not run."""
    missing = [version for version in NEEDED if find_python(version) is None]
    if missing:
        shell([Path(sys.executable).parent / "uv", "python", "install", *missing], retries=DOWNLOAD_TRIES)
    print(f"Pythons {', '.join(NEEDED)}: {len(missing)} installed")
    return 0


def own_core() -> str:
    """The ansible-core of .venv, as ``2.19``."""
    return ".".join(installed("ansible-core").split(".")[:2])


def _report_missing(what: str, pythons: Iterable[str]) -> int | None:
    """Report missing Pythons; returns the exit status of a gate that could not run, or None if the machine has them all."""
    missing = [version for version in pythons if find_python(version) is None]
    return not_run(f"{what}: no Python {', '.join(missing)} on this machine") if missing else None


def install_tools(folder: Path, python: Path | None, *packages: str) -> Path:
    """The bin folder of an environment of the interpreter *python* with these packages, created or refreshed."""
    interpreter = folder / "bin" / "python"
    uv = Path(sys.executable).parent / "uv"
    with lock_file(folder.with_suffix(f"{folder.suffix}.lock")):  # two gates have the same environment
        if not interpreter.exists():
            shell([uv, "venv", "--quiet", "--clear", "--python", str(python), folder])
        shell([uv, "pip", "install", "--quiet", "--python", interpreter, *packages], retries=DOWNLOAD_TRIES)
    return interpreter.parent


def read_pins() -> dict[str, str]:
    """Package -> version, from requirements-dev.txt."""
    return dict(PIN.findall((ROOT / "requirements-dev.txt").read_text(encoding="utf-8")))


def core_environment(core: str) -> Path:
    """The bin folder of the environment for an ansible-core. Raises LabError with the output of uv."""
    if core == own_core():
        return Path(sys.executable).parent
    pins = read_pins()
    # The newest patch release of the series, whose deprecations show here first.
    packages = [f"ansible-core=={core}.*", *(f"{name}=={pins[name]}" for name in TOOLS)]
    bin_folder = install_tools(CACHE / f"core-{core}", find_python(CONTROLLERS[core]), *packages)
    library = shell([bin_folder / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
    link_dependencies(Path(library) / "ansible_collections")
    return bin_folder


def _build_environment(bin_folder: Path) -> dict[str, str]:
    """The environment variables for the programs of one environment, without those of another Ansible or environment.

    Hypothesis searches in depth on the Python of .venv only.
    """
    # Without cached bytecode, each start of Ansible or a module takes twice as long.
    others = ("ANSIBLE_", "MOLECULE_", "PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    return inherited | {"PATH": os.pathsep.join([str(bin_folder), os.environ["PATH"]]), "HYPOTHESIS_PROFILE": "merge"}


def _build_core_environment(core: str) -> dict[str, str]:
    return _build_environment(core_environment(core)) | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / ".ansible" / "collections")]),
        "ANSIBLE_DEPRECATION_WARNINGS": "1",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    }


def find_deprecations(lines: Iterable[str]) -> list[str]:
    """The deprecation warnings of ansible-core about this collection."""
    return [line for line in lines if DEPRECATION.match(strip_escapes(line))]


def scenario_environment(core: str) -> dict[str, str]:
    """The environment variables in which the scenario containerd_nvidia runs under an ansible-core of MACHINES.

    Faults on a node do not depend on the version of the controller: their tests are left out.
    """
    gpus, drop_in = MACHINES[core]
    settings = {"SCENARIO_GPUS": gpus, "SCENARIO_DROP_IN": drop_in, "PYTEST_ADDOPTS": "-k 'not test_faults'"}
    return _build_core_environment(core) | settings


def units(core: str, report: Path, **environment: str) -> int:
    """Under an ansible-core: the unit tests of code that imports Ansible, the syntax of the playbooks, no deprecation warning.

    Writes REPORT.xml; returns an exit status. *environment* extends the environment variables.
    """
    if (status := _report_missing(f"units under ansible-core {core}", [CONTROLLERS[core]])) is not None:
        return status
    env = _build_core_environment(core) | environment
    # module_utils import no Ansible (gates.layers), except the API client.
    tests = [str(path) for path in sorted((ROOT / TESTS).iterdir()) if path.is_dir() and path.name != "module_utils"]
    tests.append(str(TESTS / "module_utils" / "test__kube_api.py"))
    playbooks = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "playbooks").glob("*.yml"))
    version, printed = run(["ansible-playbook", "--version"], env=env)
    if not any(f"[core {core}." in line for line in printed):
        print(f"this is not ansible-core {core}")
        version = 1
    tested, lines = run(["python", "-m", "pytest", "-q", *PARALLEL, f"--junitxml={report}.xml", *tests], env=env)
    syntax, more = run(["ansible-playbook", "--inventory", "localhost,", "--syntax-check", *playbooks], env=env)
    warnings = find_deprecations([*lines, *more])
    print(f"ansible-core {core}: {len(warnings)} deprecation warnings about this collection")
    return int(any([version, tested, syntax, warnings]))


def select_node_tests(tests: Iterable[Path]) -> list[str]:
    """Those of the files of *tests* (relative to the checkout) that test code for nodes."""
    apart = {TESTS / "modules" / f"test_{name}.py" for name in api_modules()}
    places = (TESTS / "module_utils", TESTS / "modules")
    return [str(path) for path in tests if any(map(path.is_relative_to, places)) and path not in apart]


def node_python(version: str, report: Path, tests: Iterable[str], **environment: str) -> int:
    """Run *tests* on one of the nodes' Pythons, where of Ansible only ansible.module_utils can be imported.

    Writes REPORT.xml; returns an exit status. *environment* extends the environment variables.
    """
    if (status := _report_missing("unit tests of what runs on nodes", [version])) is not None:
        return status
    bin_folder = install_tools(CACHE / f"node-{version}", find_python(version), *NODE_TOOLS)
    ansible = CACHE / "node-python" / "ansible"
    ansible.mkdir(parents=True, exist_ok=True)
    (ansible / "__init__.py").touch()
    for name in ("release.py", "module_utils"):
        link = ansible / name
        link.unlink(missing_ok=True)
        link.symlink_to(SITE_PACKAGES / "ansible" / name)
    command = ["python", "-m", "pytest", "-q", *PARALLEL, f"--junitxml={report}.xml", *tests]
    env = _build_environment(bin_folder) | {"PYTHONPATH": str(ansible.parent)} | environment
    return run(command, env=env)[0]


def _sanity_environment(work: Path, bin_folder: Path) -> dict[str, str]:
    """For ansible-test: a folder of working interpreters (pyenv's shims may fail), and a HOME with links to the user's caches."""
    pythons, home = work / "python", work / "home"
    cache = home / ".ansible" / "test" / "cache"
    for folder in (pythons, cache):
        folder.mkdir(parents=True, exist_ok=True)
    for version in PYTHONS:
        link = pythons / f"python{version}"
        link.unlink(missing_ok=True)
        if found := find_python(version):
            link.symlink_to(found)
    for pip in shell([bin_folder / "python", "-c", PIP_VERSIONS, *PYTHONS]).split():
        (cache / f"get_pip_{pip.replace('.', '_')}.py").write_text(PIP_SCRIPT, encoding="utf-8")
    for name in (".config", ".pip", ".cache"):
        users = Path.home() / name
        if users.exists() and not (home / name).is_symlink():
            (home / name).symlink_to(users)
    env = _build_environment(bin_folder)
    path = [entry for entry in env["PATH"].split(os.pathsep) if not entry.endswith("/shims")]
    return env | {"PATH": os.pathsep.join([str(pythons), *path]), "HOME": str(home)}


def _sanity_pythons(core: str, quick: bool) -> list[str]:
    """The Pythons of compile and import: all under the ansible-core of .venv; the oldest and the newest under the others."""
    if quick:
        return [OLDEST[core]]
    return list(PYTHONS[PYTHONS.index(OLDEST[core]) :]) if core == own_core() else [OLDEST[core], CONTROLLERS[core]]


def sanity(core: str, report: Path, *, quick: bool = False) -> int:
    """ansible-test sanity of an ansible-core, on a fresh copy of the collection: ansible-test requires its layout, without links in the path.

    *quick* is for every change: no pylint, and compile and import on the oldest Python only. pylint runs under two ansible-cores, that of .venv
    and the newest. Writes REPORT-*.xml; returns an exit status.
    """
    pythons = _sanity_pythons(core, quick)
    needed = [python for python in pythons if python in NEEDED]
    if (status := _report_missing(f"sanity under ansible-core {core}", needed)) is not None:
        return status
    bin_folder = core_environment(core)
    work = CACHE / f"sanity-{core}"
    collection = collection_tree(work, lambda path: not any(path.is_relative_to(place) for place in OUTSIDE))
    # Below a checkout, ansible-test gets the files from git, and the checkout's git ignores this folder.
    shell(["git", "init", "--quiet", collection])
    env = _sanity_environment(work, bin_folder)
    shutil.rmtree(collection / "tests" / "output" / "junit", ignore_errors=True)
    targets = [word for python in pythons if find_python(python) for word in ("--target-python", python)]
    skipped = ["--skip-test", "pylint"] if quick or core not in (own_core(), list(CONTROLLERS)[-1]) else []
    command = ["ansible-test", "sanity", "--color", "no", "--junit", *targets, *skipped]
    shell([*command, "--prime-venvs"], cwd=collection, env=env, retries=DOWNLOAD_TRIES)
    status, _printed = run(command, env=env, cwd=collection)
    report.parent.mkdir(parents=True, exist_ok=True)
    for result in sorted((collection / "tests" / "output" / "junit").glob("*.xml")):
        shutil.copy(result, f"{report}-{result.name}")
    return status
