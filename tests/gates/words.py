# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do names use the words of the field? ``python -m gates.words``.

It reads the names of files, of Python definitions, of variables in YAML, and of tasks, in the collection and in its tests. CONTRIBUTING.md has the terms.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from ._common import ROOT, finish

#: A word that is rejected in names -> what to write instead.
WORDS = {
    "anew": "again",
    "asked": "requested",
    "face": "module_main or controller",
    "foreseen": "predicted or planned",
    "heir": "replacement",
    "mend": "restore",
    "mine": "managed or own",
    "nobody": "none",
    "ours": "managed",
    "patience": "wait_time",
    "seen": "observed or reported",
    "somebody": "others",
    "strays": "duplicates",
    "theirs": "unmanaged",
    "told": "reported",
    "wish": "params or desired",
}
#: Words that are rejected in the names of tasks, handlers and plays; the first ones of a phrase as well.
TASK_WORDS = re.compile(rf"\b({'|'.join(sorted(WORDS))}|see to|say so)\b|(?:^|\| )(look|tell)\b", re.IGNORECASE)
PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
FOLDERS = ("plugins", "roles", "playbooks", "molecule", "tests")
#: Folders and files whose names still have such words. An entry without any is an error, so that the list gets empty.
PENDING: tuple[str, ...] = ()


def find_rejected(name: str) -> list[str]:
    """The rejected words in a name, such as ``told`` in ``_told_nodes`` and ``ToldNodes``."""
    return [part.lower() for part in PARTS.findall(name) if part.lower() in WORDS]


def python_names(path: Path) -> Iterator[tuple[int, str]]:
    """Line and name of each function, class, variable, parameter and attribute that a Python file defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        line = getattr(node, "lineno", 0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield line, node.name
        elif isinstance(node, ast.arg):
            yield line, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield line, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield line, node.attr


def walk_mappings(node: yaml.Node) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    """All pairs of key and value in a YAML document."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield key, value
            yield from walk_mappings(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from walk_mappings(item)


def yaml_problems(path: Path) -> Iterator[tuple[int, str]]:
    """Line and problem of each variable of this collection and of each task name in a YAML file."""
    document = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    for key, value in walk_mappings(document) if document else ():
        line = key.start_mark.line + 1
        if key.value == "name" and isinstance(value, yaml.ScalarNode):
            found = TASK_WORDS.search(str(value.value)) if " " in str(value.value) else None
            if found:
                yield (
                    line,
                    f"the name {value.value!r} has {found.group(0).strip(' |')!r}; name the action and its object",
                )
        elif "_" in key.value:
            yield from ((line, describe(key.value, word)) for word in find_rejected(key.value))


def describe(name: str, word: str) -> str:
    """One sentence on a rejected word."""
    return f"the name {name} has {word!r}; write {WORDS[word]}"


def problems_of_file(path: Path) -> Iterator[tuple[int, str]]:
    """Line and problem of each rejected word in the names of a file; line 0 for the file's own name."""
    yield from ((0, describe(path.name, word)) for word in find_rejected(path.stem))
    if path.suffix == ".py":
        yield from ((line, describe(name, word)) for line, name in python_names(path) for word in find_rejected(name))
    elif path.suffix in (".yml", ".yaml"):
        yield from yaml_problems(path)


def problems(root: Path, folders: tuple[str, ...], pending: tuple[str, ...]) -> tuple[list[str], int]:
    """The problems below *root*, and the number of files; those in *pending* places are left out, and places without any are added."""
    found, count, used = [], 0, set()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.*")):
            if not path.is_file() or path.suffix not in (".py", ".yml", ".yaml", ".j2"):
                continue
            count += 1
            name = path.relative_to(root).as_posix()
            place = next((place for place in pending if name == place or name.startswith(f"{place}/")), None)
            for line, problem in sorted(set(problems_of_file(path))):
                if place is None:
                    found.append(f"{name}:{line}: {problem}")
                else:
                    used.add(place)
    return [
        *found,
        *(
            f"PENDING in tests/gates/words.py: {place} has no such names; remove it"
            for place in pending
            if place not in used
        ),
    ], count


def main() -> int:
    """Check the names in all FOLDERS."""
    found, count = problems(ROOT, FOLDERS, PENDING)
    return finish("words", found, f"{count} files")


if __name__ == "__main__":
    sys.exit(main())
