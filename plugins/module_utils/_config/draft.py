# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file should mean, decided step by step on plain data."""

from __future__ import annotations

import copy
import typing as t
from dataclasses import dataclass

from .._document import is_same
from .errors import ConfigError
from .tree import NotATableError, Path, Tree, compare_leaves, format_path, get, leaves, merge, put, table

if t.TYPE_CHECKING:
    from .._document import Format


@dataclass(frozen=True)
class Managed:
    """A leaf that an earlier run changed and that still is as that run left it."""

    kind: str
    before: t.Any  # MISSING if the leaf was not there


@dataclass
class Plan:
    """What the file should mean. `kinds` holds for each leaf that was touched which decision did it."""

    target: Tree
    kinds: dict[Path, str]
    reasons: list[str]
    warnings: list[str]


class Draft:
    """A file's meaning while it is decided on.

    *path* is for messages only, *managed* are the leaves that earlier runs for the same entry changed.
    """

    def __init__(self, tree: Tree, path: str, managed: t.Mapping[Path, Managed], syntax: Format) -> None:
        self.before = tree
        self.tree = copy.deepcopy(tree)
        self.path = path
        self.managed = managed
        self.syntax = syntax
        self.kinds: dict[Path, str] = {}
        self.warnings: list[str] = []
        self._reasons: dict[Path, str] = {}

    @property
    def reasons(self) -> list[str]:
        """Why the meaning changes, once each."""
        changed = compare_leaves(self.before, self.tree)
        return list(dict.fromkeys(self._reasons[path] for path in changed if path in self._reasons))

    def put(self, path: Path, value: t.Any, kind: str, reason: str) -> None:
        """Set *value* at *path*, for *reason*."""
        if is_same(get(self.tree, path), value):
            return
        put(self.tree, path, value)
        for leaf in leaves({"": value}):
            self.add_reason(path + leaf[1:], kind, reason)

    def add_reason(self, path: Path, kind: str, reason: str) -> None:
        """Record which decision changes the leaf at *path*, and why."""
        self.kinds[path] = kind
        self._reasons[path] = reason

    def merge_settings(self, given: t.Mapping[str, t.Any]) -> None:
        """Merge further settings; raises ConfigError where a value and a table meet."""
        settings = copy.deepcopy(dict(given))
        for path, value in leaves(settings).items():
            if _has_null(value):
                raise ConfigError(f"settings: {format_path(path)} is null, which sets nothing; leave it out.")
            self._check_tables_above(path)
            if not isinstance(value, dict) and isinstance(get(self.tree, path), dict):
                raise ConfigError(
                    f"settings: {format_path(path)} is {self.syntax.table} in {self.path}, not a value; correct one of them."
                )
        merged = copy.deepcopy(self.tree)
        merge(merged, settings)
        for path, value in leaves(settings).items():
            if isinstance(value, dict) and isinstance(get(self.tree, path), dict):
                continue  # an empty table requests nothing more than a table
            self.put(path, get(merged, path), "settings", f"set {format_path(path)}")

    def _check_tables_above(self, path: Path) -> None:
        try:
            table(self.tree, path[:-1])
        except NotATableError as exc:
            raise ConfigError(
                f"settings: {format_path(exc.path)} is a value in {self.path}, not {self.syntax.table}; correct one of them."
            ) from exc


def _has_null(value: t.Any) -> bool:
    return value is None or (isinstance(value, list) and any(_has_null(part) for part in value))
