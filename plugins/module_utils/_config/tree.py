# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain trees (dict, list, scalars): strict comparison, leaves, edits.

A path is a tuple of keys from the root.  A leaf is whatever is not a table, and an empty table.
"""

from __future__ import annotations

import copy
import typing as t
from dataclasses import dataclass

from .._document import is_same

Path = t.Tuple[str, ...]
Tree = t.Dict[str, t.Any]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False

    def __deepcopy__(self, memo: t.Any) -> _Missing:
        return self


#: What a path holds that is not in a tree (None is not a value of TOML, but may be one of another format).
MISSING: t.Any = _Missing()


class NotATableError(Exception):
    """Something other than a table lies where a table is needed; `path` says where."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{format_path(path)} is not a table")
        self.path = path


@dataclass(frozen=True)
class Edit:
    """One change of a document: put *value* at *path*, or remove *path* if value is MISSING."""

    path: Path
    value: t.Any


def get(tree: t.Any, path: Path, default: t.Any = MISSING) -> t.Any:
    """Return what lies at *path*, or *default*; never raises for a path through something that is not a table."""
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return default
        tree = tree[key]
    return tree


def table(tree: Tree, path: Path) -> Tree:
    """Return the table at *path*, or an empty one if nothing is there; raises NotATableError for anything else."""
    here: t.Any = tree
    for depth, key in enumerate(path, 1):
        here = here.get(key, MISSING)
        if here is MISSING:
            return {}
        if not isinstance(here, dict):
            raise NotATableError(path[:depth])
    return t.cast("Tree", here)


def put(tree: Tree, path: Path, value: t.Any) -> None:
    """Set *value* at *path* in place, creating tables on the way; raises NotATableError."""
    for depth, key in enumerate(path[:-1], 1):
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise NotATableError(path[:depth])
    tree[path[-1]] = copy.deepcopy(value)


def drop(tree: Tree, path: Path, keep: t.Container[Path] = ()) -> None:
    """Remove *path* in place, with the tables above that become empty by it, except those in *keep*."""
    trail = [tree]
    for key in path[:-1]:
        trail.append(trail[-1][key])
    del trail[-1][path[-1]]
    for depth in range(len(path) - 1, 0, -1):
        if trail[depth] or path[:depth] in keep:
            return
        del trail[depth - 1][path[depth - 1]]


def leaves(tree: Tree, prefix: Path = ()) -> dict[Path, t.Any]:
    """Return every leaf of *tree* by its path."""
    found: dict[Path, t.Any] = {}
    for key, value in tree.items():
        path = (*prefix, key)
        if isinstance(value, dict) and value:
            found.update(leaves(value, path))
        else:
            found[path] = value
    return found


def merge(tree: Tree, other: t.Mapping[str, t.Any]) -> None:
    """Merge *other* into *tree* in place: tables are merged, everything else is replaced."""
    for key, value in other.items():
        known = tree.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            merge(known, value)
        else:
            tree[key] = copy.deepcopy(value)


def compare_leaves(before: Tree, after: Tree) -> dict[Path, tuple[t.Any, t.Any]]:
    """Return {path: (before, after)} of the leaves that differ; MISSING stands for no leaf."""
    old, new = leaves(before), leaves(after)
    pairs = {
        path: (old.get(path, MISSING), new.get(path, MISSING)) for path in [*old, *(p for p in new if p not in old)]
    }
    return {path: pair for path, pair in pairs.items() if not is_same(*pair)}


def find_edits(before: Tree, after: Tree) -> list[Edit]:
    """Return the fewest edits that make *before* into *after*, removals first.

    A table that is new comes whole, but not wrapped in new parents that hold nothing else,
    so that an editor can place it beside its relatives.
    """
    removals: list[Edit] = []
    additions: list[Edit] = []
    _collect(before, after, (), removals, additions)
    return removals + additions


def _collect(before: Tree, after: Tree, prefix: Path, removals: list[Edit], additions: list[Edit]) -> None:
    removals.extend(Edit((*prefix, key), MISSING) for key in before if key not in after)
    for key, value in after.items():
        path = (*prefix, key)
        known = before.get(key, MISSING)
        if isinstance(value, dict) and isinstance(known, dict) and (value or not known):
            _collect(known, value, path, removals, additions)
        elif known is MISSING:
            additions.extend(Edit(place, part) for place, part in _split(path, value))
        elif not is_same(known, value):
            additions.append(Edit(path, value))


def _split(path: Path, value: t.Any) -> t.Iterator[tuple[Path, t.Any]]:
    if isinstance(value, dict) and value and all(isinstance(part, dict) for part in value.values()):
        for key, part in value.items():
            yield from _split((*path, key), part)
    else:
        yield path, value


def format_path(path: t.Iterable[str]) -> str:
    """Write *path* as TOML would: bare keys plain, others quoted."""
    return ".".join(
        key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else f'"{key}"' for key in path
    )
