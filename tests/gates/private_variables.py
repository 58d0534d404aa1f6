# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a playbook or role use a private variable of another owner? ``python -m gates.private_variables``.

A variable that begins with ``__`` and the name of a role is private to that role; other ``__`` variables of playbooks are the playbooks'.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ._common import ROOT, finish, lines, roles

PRIVATE = re.compile(r"\b__(\w+)")
FILES = ("tasks", "handlers", "templates", "vars", "defaults")


def owner_of(variable: str, names: list[str]) -> str:
    """The role of a private variable, without ``__``; empty for a variable of the playbooks. The longest name of a role counts."""
    owners = [name for name in names if variable.startswith(f"{name.lstrip('_')}_")]
    return max(owners, key=len, default="")


def files() -> Iterator[tuple[str, Path]]:
    """The owner of each file that can use variables, and its path."""
    for role in roles():
        for folder in FILES:
            yield from ((role.name, path) for path in sorted((role / folder).rglob("*")) if path.is_file())
    yield from (("", path) for path in sorted((ROOT / "playbooks").rglob("*.yml")))


def problems(owner: str, path: Path, names: list[str]) -> Iterator[str]:
    """Uses of private variables of other owners in one file; comments are left out."""
    for number, text in lines(path):
        for variable in PRIVATE.findall(text.partition(" #")[0] if not text.lstrip().startswith("#") else ""):
            other = owner_of(variable, names)
            # A playbook's variable in a role, too.
            if other != owner and (other or owner in names):
                yield f"{path.relative_to(ROOT)}:{number}: __{variable} is private to {other or 'the playbooks'}"


def main() -> int:
    """Check all roles and playbooks; prints the numbers."""
    names = [role.name for role in roles()]
    checked = list(files())
    found = [problem for owner, path in checked for problem in problems(owner, path, names)]
    return finish("private variables", found, f"{len(checked)} files of {len(names)} roles and the playbooks")


if __name__ == "__main__":
    sys.exit(main())
