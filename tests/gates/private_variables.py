# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a playbook or role use a private variable of another owner, one that is not defined, or one for two things? ``python -m gates.private_variables``.

A variable that begins with ``__`` and the name of a role is private to that role; other ``__`` variables of playbooks are the playbooks',
with those of the role _hosts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ._common import ROOT, finish, lines, roles

PRIVATE = re.compile(r"\b__(\w+)")
DEFINED = re.compile(r"\b(?:(?:register|loop_var|index_var): |set )__(\w+)|\b__(\w+):")
REGISTERED = re.compile(r"\bregister: (\w+)")
COMMENT = re.compile(r"(^\s*| )#.*")
# The variables of all plays.
HOSTS = ROOT / "roles" / "_hosts" / "vars" / "main.yml"
FILES = ("tasks", "handlers", "templates", "vars", "defaults")


def owner_of(variable: str, names: list[str]) -> str:
    """The role of a private variable, without ``__``; empty for a variable of the playbooks. The longest name of a role counts."""
    owners = [name for name in names if variable.startswith(f"{name.lstrip('_')}_")]
    return max(owners, key=len, default="")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of a file without comments."""
    yield from ((number, COMMENT.sub("", text)) for number, text in lines(path))


def find_files(owner: str) -> list[Path]:
    """The files of a role that can use variables, or of the playbooks."""
    if not owner:
        return sorted([*(ROOT / "playbooks").rglob("*.yml"), HOSTS])
    return sorted(path for folder in FILES for path in (ROOT / "roles" / owner / folder).rglob("*") if path.is_file())


def find_problems(owner: str, paths: Sequence[Path], names: list[str]) -> Iterator[str]:
    """Uses of private variables of other owners in the files of an owner, and of those that none of its files defines."""
    defined = {name for path in paths for _number, text in read_lines(path) for name in find_defined(text)}
    for path in paths:
        for number, text in read_lines(path):
            for variable in PRIVATE.findall(text):
                other = owner_of(variable, names)
                place = f"{path.relative_to(ROOT)}:{number}: __{variable}"
                # A playbook's variable in a role, too.
                if other != owner:
                    yield f"{place} is private to {other or 'the playbooks'}"
                elif variable not in defined:
                    yield f"{place} is not defined"


def find_overridden(paths: Sequence[Path]) -> Iterator[str]:
    """Results of tasks with the name of a variable of the same role, which they replace for the rest of the run."""
    variables = {
        text.partition(":")[0]
        for path in paths
        if {"vars", "defaults"} & set(path.relative_to(ROOT).parts)
        for _number, text in read_lines(path)
    }
    for path in paths:
        for number, text in read_lines(path):
            if (result := REGISTERED.search(text)) and result[1] in variables:
                yield f"{path.relative_to(ROOT)}:{number}: {result[1]} is a variable of the role, too; give the result another name"


def find_defined(line: str) -> Iterator[str]:
    """The private variables that a line defines: as a key, by register, as a loop's variable, or in a template."""
    yield from (by_word or key for by_word, key in DEFINED.findall(line))


def main() -> int:
    """Check all roles and playbooks; prints the numbers."""
    names = [role.name for role in roles()]
    checked = {owner: find_files(owner) for owner in (*names, "")}
    found = [problem for owner, paths in checked.items() for problem in find_problems(owner, paths, names)]
    found += [problem for owner, paths in checked.items() if owner for problem in find_overridden(paths)]
    count = sum(map(len, checked.values()))
    return finish("private variables", found, f"{count} files of {len(names)} roles and the playbooks")


if __name__ == "__main__":
    sys.exit(main())
