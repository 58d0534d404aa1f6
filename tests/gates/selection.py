# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selects the tests of a change: compares the paths changed since the merge base with tests/scenarios.yml.

``python -m gates selection`` prints it. The base is ``CI_BASE`` or the merge base with ``origin/main``. On main itself it is the newest commit that is
six hours older than HEAD, so that all commits of one merge count; else HEAD~1; else, as in a clone of one commit, the empty tree.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from itertools import product

import yaml

from ._common import ROOT, roles

ALWAYS = "default"
MOST = 1  # scenario beside `default` for one change: with two, a wide change takes 50 minutes on an empty machine
MOST_ROLES = 3  # roles whose playbook tests all run for one change
MOST_SAMPLED = 12  # others, of which one test runs: each takes half a minute of a processor
LANDING_SECONDS = 6 * 3600
NO_FILES = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's name for the tree without files, in every repository
# Paths that the playbook tests of all roles use.
SHARED = (
    *("requirements-dev.txt", "tests/fakes", "tests/unit/conftest.py", "tests/unit/ansible_runs.py"),
    *(f"roles/{role}" for role in ("gpu_node_maintenance", "gpu_preflight", "kube_objects", "vendor_packages")),
)
# Of plugins/; each of their files is on a line of scenarios.yml.
FOLDERS = ("action", "filter", "inventory", "lookup", "modules", "plugin_utils")
ALTERNATIVES = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True)
class Selection:
    """Scenarios and roles to test.

    *base* is the commit with which the change is compared. *left* and *left_roles* are those that the change concerns and that only `make test-all` runs.
    *sampled* are other changed roles, and roles that use changed files: the first playbook test of each runs.
    """

    base: str
    scenarios: list[str]
    left: list[str]
    roles: list[str]
    sampled: list[str]
    left_roles: list[str]
    changed: dict[str, int]

    def concerns(self, *paths: str) -> bool:
        """Whether a file at or below one of *paths* changed."""
        return any(is_below(name, path) for name in self.changed for path in paths)


def expand(pattern: str) -> list[str]:
    """The paths of a line of scenarios.yml: ``roles/{a,b}`` is ``roles/a`` and ``roles/b``."""
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


def git(*words: str, check: bool = False) -> str:
    """Output of git in the checkout; after a failure empty, or CalledProcessError with *check*."""
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=check).stdout.strip()


def base() -> str:
    """The commit with which the change is compared. Raises SystemExit if ``CI_BASE`` is not a commit."""
    if (named := os.environ.get("CI_BASE")) and not git("rev-parse", "--verify", "--quiet", f"{named}^{{commit}}"):
        raise SystemExit(f"CI_BASE: {named} is not a commit of this checkout; fetch it, or unset CI_BASE")
    head, merged = git("rev-parse", "HEAD"), git("merge-base", "HEAD", os.environ.get("CI_BASE", "origin/main"))
    if merged and merged != head:
        return merged
    before = int(git("show", "--no-patch", "--format=%ct", "HEAD") or 0) - LANDING_SECONDS
    earlier = git("rev-list", "-1", f"--before={before}", "HEAD") or git("rev-parse", "--verify", "--quiet", "HEAD~1")
    return earlier or NO_FILES


def read_changed(since: str) -> dict[str, int]:
    """Path -> changed lines, of commits since *since*, of the working tree, and of untracked files."""
    found: dict[str, int] = {}
    for line in git("diff", "--numstat", "--no-renames", since, check=True).splitlines():
        added, removed, name = line.split("\t")
        found[name] = 1 if added == "-" else int(added) + int(removed)
    for name in git("ls-files", "--others", "--exclude-standard", check=True).splitlines():
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
    # All scenarios use these files: one of them tests the change.
    if not hit and any(is_below(path, each) for path in lines for each in ("tests/lab", "molecule/conftest.py")):
        hit = ["kube_scheduler_extender"]
    return [ALWAYS, *hit[:MOST]], hit[MOST:]


def changed_roles(
    lines: dict[str, int], scenarios: dict[str, list[str]], since: str
) -> tuple[list[str], list[str], list[str]]:
    """The roles with most changed lines, in code or tests; those to sample; and those that the change concerns besides.

    The sampled ones are first other changed roles, then those on the lines of *scenarios* with a changed path, then, after a change in SHARED, all. Of many
    unchanged ones, the commit *since* decides which come first.
    """
    tests = sorted(path.name for path in (ROOT / "tests" / "unit" / "roles").glob("*") if path.is_dir())
    names = list(lines)
    weights = {
        role: sum(
            number
            for name, number in lines.items()
            if any(is_below(name, f"{folder}/{role}") for folder in ("roles", "tests/unit/roles"))
        )
        for role in tests
    }
    changed = sorted((role for role in tests if weights[role]), key=lambda role: (-weights[role], role))
    whole = sorted(changed[:MOST_ROLES])
    shared = any(name.startswith("roles/_") or is_below(name, path) for name in names for path in SHARED)
    hit = {
        path.removeprefix("roles/")
        for paths in scenarios.values()
        if any(is_below(name, path) for name in names for path in paths)
        for path in paths
    }
    users = [role for role in tests if role not in changed and (shared or role in hit)]
    start = int(since[:8], 16) % len(users) if users else 0
    users = sorted([*users[start:], *users[:start]], key=lambda role: role not in hit)
    concerned = [*changed[MOST_ROLES:], *users]
    return whole, sorted(concerned[:MOST_SAMPLED]), sorted(concerned[MOST_SAMPLED:])


def select() -> Selection:
    """The selection for the change of this checkout."""
    since, scenarios = base(), table()
    lines = read_changed(since)
    return Selection(since, *choose(lines, scenarios), *changed_roles(lines, scenarios, since), lines)


def report(selection: Selection) -> str:
    """The selection as text: what runs, and what only `make test-all` runs."""
    lines = [
        f"changed since {selection.base[:12]}: {len(selection.changed)} files",
        f"selected scenarios: {', '.join(selection.scenarios)}",
        f"playbook tests of roles: {', '.join(selection.roles) or 'none'}",
    ]
    if selection.sampled:
        lines.append(f"the first playbook test of: {', '.join(selection.sampled)}")
    left = [f"scenarios {', '.join(selection.left)}"] if selection.left else []
    left += ["the other playbook tests of sampled roles"] if selection.sampled else []
    left += [f"the playbook tests of {', '.join(selection.left_roles)}"] if selection.left_roles else []
    left += [
        "unit tests of code that the change does not concern",
        "tests marked thorough",
        "pylint",
        "other versions of ansible-core, Python, containerd and kube-scheduler",
    ]
    return "\n".join([*lines, f"LEFT TO make test-all: {'; '.join(left)}"])


def problems() -> list[str]:
    """Roles, plugins and packages that no line of scenarios.yml names, names without a scenario, and paths without a file."""
    lines = table()
    named = {path for paths in lines.values() for path in paths}
    packages = [path.stem for path in (ROOT / "plugins" / "module_utils").glob("_[!_]*")]
    required = [f"roles/{path.name}" for path in roles()]
    for folder in FOLDERS:
        required += sorted(f"plugins/{folder}/{path.stem}" for path in (ROOT / "plugins" / folder).glob("*.py"))
    required += [f"plugins/module_utils/{name}" for name in sorted(packages)]
    scenarios = {path.parent.name for path in (ROOT / "molecule").glob("*/molecule.yml")}
    return [
        *(f"{path}: on no line of tests/scenarios.yml" for path in required if path not in named),
        *(f"{name}: a scenario without a line in tests/scenarios.yml" for name in sorted(scenarios - set(lines))),
        *(f"{name}: a line of tests/scenarios.yml without a scenario" for name in sorted(set(lines) - scenarios)),
        *(f"{path}: in tests/scenarios.yml, and not there" for path in sorted(named) if not exists(path)),
    ]


def exists(path: str) -> bool:
    """Whether a path of scenarios.yml names a file or folder."""
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists()
