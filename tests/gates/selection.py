# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change needs to be tested by: paths changed since the merge base against tests/scenarios.yml.

``python -m gates selection`` prints it. The base is ``CI_BASE`` or the merge base with ``origin/main``. On main itself it is the newest commit that is
six hours older than HEAD, so that all commits of one landing count; else HEAD~1; else, as in a clone of one commit, no file at all.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import yaml

from ._common import ROOT, plugin_names, roles

ALWAYS = "default"
MOST = 2  # scenarios beside `default` for one change
LANDING_SECONDS = 6 * 3600
NO_FILES = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name for the tree without files, in every repository
# What the playbook tests of all roles use, beside the internal roles (roles/_*).
SHARED = ("tests/fakes", "tests/unit/conftest.py", "tests/unit/ansible_runs.py")
ALTERNATIVES = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class Selection:
    """Scenarios and roles to test.

    *left* are scenarios that the change concerns and that only `make test-all` runs. *sampled* are roles that stand on what changed, and did not change
    themselves: the first playbook test of each of their files is run.
    """

    scenarios: list[str]
    left: list[str]
    roles: list[str]
    sampled: list[str]
    changed: dict[str, int]

    def concerns(self, *paths: str) -> bool:
        """Whether a file at or below one of *paths* changed."""
        return any(is_below(name, path) for name in self.changed for path in paths)


def expand(pattern: str) -> list[str]:
    """Paths that a line of scenarios.yml means: ``roles/{a,b}`` is ``roles/a`` and ``roles/b``."""
    parts = ALTERNATIVES.split(pattern)
    choices = [part.split(",") if number % 2 else [part] for number, part in enumerate(parts)]
    return ["".join(choice) for choice in product(*choices)]


def is_below(name: str, path: str) -> bool:
    """Whether the file *name* is *path*, a Python file of that name, or below that folder."""
    return name in (path, f"{path}.py") or name.startswith(f"{path.rstrip('/')}/")


def table() -> dict[str, list[str]]:
    """Scenario -> paths, from tests/scenarios.yml."""
    lines = yaml.safe_load((ROOT / "tests" / "scenarios.yml").read_text(encoding="utf-8"))
    return {name: [path for line in patterns for path in expand(line)] for name, patterns in lines.items()}


def git(*words: str) -> str:
    """Output of git in the checkout; empty where it fails."""
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout.strip()


def base() -> str:
    """The commit that the change is compared with."""
    head, merged = git("rev-parse", "HEAD"), git("merge-base", "HEAD", os.environ.get("CI_BASE", "origin/main"))
    if merged and merged != head:
        return merged
    before = int(git("show", "--no-patch", "--format=%ct", "HEAD") or 0) - LANDING_SECONDS
    earlier = git("rev-list", "-1", f"--before={before}", "HEAD") or git("rev-parse", "--verify", "--quiet", "HEAD~1")
    return earlier or NO_FILES


def changed(since: str) -> dict[str, int]:
    """Path -> changed lines, of commits since *since*, of the working tree, and of files that git does not know yet."""
    found: dict[str, int] = {}
    for line in git("diff", "--numstat", "--no-renames", since).splitlines():
        added, removed, name = line.split("\t")
        found[name] = 1 if added == "-" else int(added) + int(removed)
    for name in git("ls-files", "--others", "--exclude-standard").splitlines():
        found[name] = len((ROOT / name).read_bytes().splitlines()) or 1
    return found


def choose(lines: dict[str, int], scenarios: dict[str, list[str]]) -> tuple[list[str], list[str]]:
    """Scenarios to run for changed *lines* (path -> number), `default` first, and those that `make test-all` has to run."""
    weights = {
        name: sum(
            number
            for path, number in lines.items()
            if is_below(path, f"molecule/{name}") or any(is_below(path, each) for each in paths)
        )
        for name, paths in scenarios.items()
        if name != ALWAYS
    }
    hit = sorted((name for name, weight in weights.items() if weight), key=lambda name: (-weights[name], name))
    # What every scenario is run by: one of them shows that it still works.
    if not hit and any(is_below(path, each) for path in lines for each in ("tests/lab", "molecule/conftest.py")):
        hit = ["kube_scheduler_extender"]
    return [ALWAYS, *hit[:MOST]], hit[MOST:]


def changed_roles(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Roles that changed or whose playbook tests did, and the other roles where what their tests share changed."""
    tests = sorted(path.name for path in (ROOT / "tests" / "unit" / "roles").glob("*") if path.is_dir())
    names = list(lines)
    if any(is_below(name, "requirements-dev.txt") for name in names):
        return tests, []
    whole = [
        role
        for role in tests
        if any(is_below(name, f"{folder}/{role}") for name in names for folder in ("roles", "tests/unit/roles"))
    ]
    shared = any(name.startswith("roles/_") or is_below(name, path) for name in names for path in SHARED)
    return whole, [role for role in tests if shared and role not in whole]


def select() -> Selection:
    """What the change of this checkout needs."""
    lines = changed(base())
    return Selection(*choose(lines, table()), *changed_roles(lines), lines)


def report(selection: Selection) -> str:
    """What is run and what is left, as people read it."""
    told = [f"selected scenarios: {', '.join(selection.scenarios)}"]
    told += [f"LEFT TO make test-all: {', '.join(selection.left)}"] if selection.left else []
    told += [f"playbook tests of roles: {', '.join(selection.roles) or 'none'}"]
    if selection.sampled:
        told.append(f"the first test of each file of: {', '.join(selection.sampled)}")
    return "\n".join(told)


def problems() -> list[str]:
    """Roles, modules and packages that no line of scenarios.yml names, names without a scenario, and paths without a file."""
    lines = table()
    named = {path for paths in lines.values() for path in paths}
    packages = [path.stem for path in (ROOT / "plugins" / "module_utils").glob("_*") if path.stem != "__init__"]
    wanted = [f"roles/{path.name}" for path in roles()]
    wanted += [f"plugins/modules/{name}" for name in plugin_names("modules")]
    wanted += [f"plugins/module_utils/{name}" for name in sorted(packages) if name != "__pycache__"]
    scenarios = {path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")}
    return [
        *(f"{path}: on no line of tests/scenarios.yml" for path in wanted if path not in named),
        *(f"{name}: a scenario without a line in tests/scenarios.yml" for name in sorted(scenarios - set(lines))),
        *(f"{name}: a line of tests/scenarios.yml without a scenario" for name in sorted(set(lines) - scenarios)),
        *(f"{path}: in tests/scenarios.yml, and not there" for path in sorted(named) if not exists(path)),
    ]


def exists(path: str) -> bool:
    """Whether a path of scenarios.yml names a file or folder."""
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists()
