# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the unit tests that a change concerns: those that import a changed file or name its plugin, and those that may read other files.

The playbook tests of roles are chosen by gates.selection.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from ._common import ROOT
from .layers import COLLECTION, imports

UNIT = ROOT / "tests" / "unit"
APART = ("roles", "playbooks")  # of tests/unit
ALWAYS = Path("tests/unit/static")
HELPERS = ("fakes", "lab", "gates", "bench")  # packages of tests/
KINDS = ("modules", "action", "filter", "lookup", "inventory")  # plugins that tests run by name
# What changes all tests: their tools, and the real programs that they run.
ALL = frozenset(
    (
        "pyproject.toml",
        "requirements-dev.txt",
        "tests/gates/table.py",
        "tests/lab/binaries.py",
        "tests/lab/versions.yml",
    )
)
# A test with one of these names, or a conftest.py above it, reads roles, guides or files of all plugins, or runs playbooks.
READS = re.compile(
    r"\b(ROOT|CHECKOUT|PLUGINS|__file__|import_module|evaluate|evaluate_role|refusals|find_task|playbook_files)\b"
)


def list_tests() -> list[Path]:
    """All files of unit tests, relative to the checkout and sorted, without the playbook tests."""
    found = sorted(UNIT.rglob("test_*.py"))
    return [path.relative_to(ROOT) for path in found if path.relative_to(UNIT).parts[0] not in APART]


def find_tests(changed: Collection[str]) -> list[Path]:
    """Those of list_tests() that a change of these paths, relative to the checkout, concerns."""
    names = {name for path in changed for name in expand(path)}
    return [
        path
        for path in list_tests()
        if not names.isdisjoint(ALL)
        or path.is_relative_to(ALWAYS)
        or is_reader(ROOT / path)
        or not names.isdisjoint(find_used(ROOT / path))
    ]


def expand(changed: str) -> Iterator[str]:
    """The path itself; of data in plugins/ or tests/ all Python files of the nearest folder that has any, one of which reads it."""
    yield changed
    folder = (ROOT / changed).parent
    if changed.startswith(("plugins/", "tests/")) and not changed.endswith(".py"):
        while folder != ROOT and not any(folder.glob("*.py")):
            folder = folder.parent
        yield from (str(path.relative_to(ROOT)) for path in folder.glob("*.py"))


def is_reader(test: Path) -> bool:
    """Whether a test may read files of the checkout that it does not import."""
    return any(READS.search(path.read_text(encoding="utf-8")) for path in (test, *find_conftests(test)[:-1]))


def find_conftests(test: Path) -> list[Path]:
    """The conftest.py files of a test, that of all unit tests last."""
    folders = [folder for folder in test.parents if folder.is_relative_to(UNIT)]
    return [path for folder in folders if (path := folder / "conftest.py").is_file()]


def find_used(test: Path) -> set[str]:
    """The paths of a test, of the conftest.py files above it, and of all that these import directly or through others."""
    words = set(re.findall(r"\w+", test.read_text(encoding="utf-8")))
    todo = {test, *find_conftests(test), *(path for path in list_plugins() if path.stem in words)}
    found: set[Path] = set()
    while todo:
        found |= todo
        todo = {file for path in todo for file in find_imported(path)} - found
    return {str(path.relative_to(ROOT)) for path in found}


@cache
def list_plugins() -> list[Path]:
    """The files of the plugins that tests run by name."""
    return [path for kind in KINDS for path in (ROOT / "plugins" / kind).glob("[!_]*.py")]


@cache
def find_imported(path: Path) -> set[Path]:
    """The files of this checkout that a file imports, with those of the packages in which they are."""
    return {file for _line, name in imports(path) for file in find_files(name) if file.is_file()}


@cache
def find_files(name: str) -> list[Path]:
    """The files of a dotted name: its module, and the packages above it; empty for other libraries."""
    if name.startswith(f"{COLLECTION}."):
        folder, parts = ROOT, name.removeprefix(f"{COLLECTION}.").split(".")
    elif name.partition(".")[0] in HELPERS:
        folder, parts = ROOT / "tests", name.split(".")
    else:
        return []
    found: list[Path] = []
    for part in parts:
        if (folder / f"{part}.py").is_file():
            return [*found, folder / f"{part}.py"]
        folder /= part
        found.append(folder / "__init__.py")
    return found


def tests_of(name: str) -> str:
    """The unit tests of a changed file: those of its package of module_utils, or of its plugin; empty for other files."""
    parts = Path(name).parts
    if parts[:3] == ("tests", "unit", "plugins"):
        path = Path(*parts[:5]) if parts[-1].startswith("test_") else Path(*parts[:-1])
        return str(path) if (ROOT / path).exists() else ""
    if parts[0] != "plugins":
        return ""
    folder = ROOT / "tests" / "unit" / Path(*parts[:2])
    if parts[1] == "module_utils" and len(parts) > 3:
        return str((folder / parts[2]).relative_to(ROOT)) if (folder / parts[2]).is_dir() else ""
    test = folder / f"test_{Path(parts[-1]).stem}.py"
    return str(test.relative_to(ROOT)) if test.is_file() else ""
