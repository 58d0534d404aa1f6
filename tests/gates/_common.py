# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Code that the gates share: paths, source files, and the output of findings."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE, NAME = "gpu", "kubernetes"
FQCN = f"{NAMESPACE}.{NAME}"
REPORTS = ROOT / "build" / "reports"
NOT_RUN = "not-run.txt"
CACHE = ROOT / ".cache"
SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
# For pytest: a process for each core; an idle process takes tests of another, since some tests take minutes.
PARALLEL = ("--numprocesses=auto", "--dist=worksteal")


class AnsibleLoader(yaml.SafeLoader):
    """Reads Ansible's ``!unsafe`` as a text."""


def _read_text(loader: AnsibleLoader, node: yaml.ScalarNode) -> Any:
    return loader.construct_scalar(node)


AnsibleLoader.add_constructor("!unsafe", _read_text)


@contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold the lock of a file, which is created, as soon as no other process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def source_files(root: Path = ROOT) -> list[Path]:
    """Paths relative to *root* of every file that git tracks or would track; sorted; links count as files."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
    ).stdout.decode()
    names = {name for name in listing.split("\0") if name}
    return sorted(Path(name) for name in names if os.path.lexists(root / name))


def copy_source(target: Path, keep: Callable[[Path], bool] = lambda _path: True) -> int:
    """Copy the source files for which *keep* holds to *target*, links as links; returns their number."""
    files = [path for path in source_files() if keep(path)]
    for path in files:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, target / path, follow_symlinks=False)
    return len(files)


def collection_tree(parent: Path, keep: Callable[[Path], bool] = lambda _path: True) -> Path:
    """A fresh ``ansible_collections`` tree below *parent*: a copy of this collection beside links to what it depends on.

    Returns the folder of the copy. ansible-test requires this layout, without links in the path.
    """
    base = parent / "ansible_collections"
    target = base / NAMESPACE / NAME
    for old in target.glob("*"):
        # ansible-test keeps its environments in tests/output.
        if old.name != "tests":
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    for old in target.glob("tests/*"):
        if old.name != "output":
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    target.mkdir(parents=True, exist_ok=True)
    copy_source(target, keep)
    link_dependencies(base)
    return target


def link_dependencies(base: Path) -> None:
    """Link kubernetes.core, as installed with this Python, into the ``ansible_collections`` folder *base*."""
    core = SITE_PACKAGES / "ansible_collections" / "kubernetes" / "core"
    if not core.is_dir():
        raise SystemExit(f"kubernetes.core is not in {SITE_PACKAGES}: run `make venv`")
    link = base / "kubernetes" / "core"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(core)


def write_empty_config(folder: Path) -> str:
    """Path of an empty ansible.cfg in *folder*, for tools that must not find the checkout's or the user's."""
    path = folder / "empty.cfg"
    path.write_text("", encoding="utf-8")
    return str(path)


def plugin_names(folder: str) -> list[str]:
    """Names of the plugins in ``plugins/FOLDER``, private ones (leading underscore) left out; sorted."""
    return sorted(path.stem for path in (ROOT / "plugins" / folder).glob("*.py") if not path.stem.startswith("_"))


def api_modules() -> list[str]:
    """Names of the modules that run on the controller and talk to the API server: the action group ``api``."""
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    return list(runtime["action_groups"]["api"])


def roles() -> list[Path]:
    """Folders of all roles but _hosts, which has no tasks, sorted by name; the name of an internal one begins with an underscore."""
    return sorted(path for path in (ROOT / "roles").glob("[!.]*") if path.is_dir() and path.name != "_hosts")


def finish(title: str, findings: Iterable[str], checked: str) -> int:
    """Print the findings, then one line that says what was checked; returns the exit status (0 without findings)."""
    problems = list(findings)
    for problem in problems:
        print(f"  {problem}", file=sys.stderr)
    verdict = "ok" if not problems else f"{len(problems)} problem(s)"
    print(f"{title}: {checked}: {verdict}")
    return 1 if problems else 0


def missing_is_failure() -> bool:
    """Whether a gate that could not run is a failure: on CI. On a developer's machine it is only reported."""
    return os.environ.get("CI", "") not in {"", "0", "false"}


def thorough() -> bool:
    """Whether all of a gate is run, as in `make test-all` and where a gate is run by itself; not in `make test` and `make quick`."""
    return os.environ.get("GATES_TIER") != "merge"


def not_run(what: str) -> int:
    """Report, here and in the summary, what this machine could not check; returns 1 on CI, else 0.

    A line of the report has the gate, a tab, and what was not run.
    """
    print(f"NOT RUN: {what}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    with (REPORTS / NOT_RUN).open("a", encoding="utf-8") as report:
        report.write(f"{os.environ.get('GATES_NAME', '')}\t{what}\n")
    return int(missing_is_failure())


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a text file, from 1; nothing for a file that is not UTF-8 text."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    yield from enumerate(text.splitlines(), start=1)
