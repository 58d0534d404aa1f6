# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file should mean, decided step by step on plain data: what the runtimes have in common.

Private to this collection.
"""

from __future__ import annotations

import copy
import re
import typing as t
from dataclasses import dataclass

from .._document import same
from .errors import ConfigError
from .trees import MISSING, NotATableError, Path, Tree, changed_leaves, dotted, drop, get, leaves, merge, put, table

if t.TYPE_CHECKING:
    from .._document import Format

#: What Kubernetes takes as the handler of a RuntimeClass.
_HANDLER = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True)
class Owned:
    """A leaf that an earlier run changed and that still is as that run left it."""

    kind: str
    before: t.Any  # MISSING if the leaf was not there


@dataclass
class Plan:
    """What the file should mean.  `kinds` says for each leaf that was touched which decision did it."""

    target: Tree
    kinds: dict[Path, str]
    reasons: list[str]
    warnings: list[str]


def check_handler(name: str) -> None:
    """Raise ConfigError for a *name* that no runtime can have."""
    if not _HANDLER.match(name):
        raise ConfigError(
            f"runtime_name {name!r} cannot be the handler of a RuntimeClass: give lowercase letters,"
            " digits and hyphens, such as nvidia."
        )


class Draft:
    """A file's meaning while it is decided on.

    *path* is for messages only, *owned* are the leaves that earlier runs for this runtime changed.
    """

    def __init__(self, tree: Tree, path: str, owned: t.Mapping[Path, Owned], syntax: Format) -> None:
        self.before = tree
        self.tree = copy.deepcopy(tree)
        self.path = path
        self.owned = owned
        self.syntax = syntax
        self.kinds: dict[Path, str] = {}
        self.warnings: list[str] = []
        self._reasons: dict[Path, str] = {}

    @property
    def reasons(self) -> list[str]:
        """Why the meaning changes, once each."""
        changed = changed_leaves(self.before, self.tree)
        return list(dict.fromkeys(self._reasons[path] for path in changed if path in self._reasons))

    def put(self, path: Path, value: t.Any, kind: str, reason: str) -> None:
        """Set *value* at *path*, for *reason*."""
        if same(get(self.tree, path), value):
            return
        put(self.tree, path, value)
        for leaf in leaves({"": value}):
            self.note(path + leaf[1:], kind, reason)

    def note(self, path: Path, kind: str, reason: str) -> None:
        """Note which decision changes the leaf at *path*, and why."""
        self.kinds[path] = kind
        self._reasons[path] = reason

    def merge_settings(self, given: t.Mapping[str, t.Any]) -> None:
        """Merge further settings; raises ConfigError where a value and a table meet."""
        settings = copy.deepcopy(dict(given))
        for path, value in leaves(settings).items():
            if _has_null(value):
                raise ConfigError(f"settings: {dotted(path)} is null, which sets nothing; leave it out.")
            self._check_tables_above(path)
            if not isinstance(value, dict) and isinstance(get(self.tree, path), dict):
                raise ConfigError(
                    f"settings: {dotted(path)} is {self.syntax.table} in {self.path}, not a value; correct one of them."
                )
        merged = copy.deepcopy(self.tree)
        merge(merged, settings)
        for path, value in leaves(settings).items():
            if isinstance(value, dict) and isinstance(get(self.tree, path), dict):
                continue  # an empty table asks for nothing more than a table
            self.put(path, get(merged, path), "settings", f"set {dotted(path)}")

    def forget_inherited(self, keep: t.Container[Path]) -> None:
        """Put back what an earlier run inherited, so that it is inherited anew and follows its source; tables in *keep* stay."""
        for path, owned in self.owned.items():
            if owned.kind == "inherit" and get(self.tree, path) is not MISSING:
                self.note(path, "inherit", "follow the runtime inherited from")
                if owned.before is MISSING:
                    drop(self.tree, path, keep=keep)
                else:
                    put(self.tree, path, owned.before)

    def set_default(self, path: Path, name: str, wanted: bool | None, known: t.Container[str]) -> None:
        """Make *name* the default runtime, which is at *path*, or no longer, if that is wanted; *known* are the runtimes."""
        if wanted is True:
            self.put(path, name, "default", f"make {name} the default runtime")
        if wanted is not False or get(self.tree, path) != name:
            return
        before = self.owned[path].before if path in self.owned else "runc"
        if before is MISSING:
            self.note(path, "default", "leave the default runtime to the daemon again")
            drop(self.tree, path)
        else:
            back = before if before in known and before != name else "runc"
            self.put(path, back, "default", f"make {back} the default runtime again")

    def _check_tables_above(self, path: Path) -> None:
        try:
            table(self.tree, path[:-1])
        except NotATableError as exc:
            raise ConfigError(
                f"settings: {dotted(exc.path)} is a value in {self.path}, not {self.syntax.table}; correct one of them."
            ) from exc


def _has_null(value: t.Any) -> bool:
    return value is None or (isinstance(value, list) and any(_has_null(part) for part in value))
