# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of settings, checked before anything else reads them."""

from __future__ import annotations

import typing as t

from .errors import ConfigError
from .tree import MISSING, Path, Tree, format_path, get

if t.TYPE_CHECKING:
    from .._document import Format

#: Settings with their types. "*" stands for every key of a table. Tables come before what is in them.
Schema = t.Sequence[t.Tuple[Path, str]]

_WORDS = {
    "text": "a string",
    "texts": "a list of strings",
    "switch": "true or false",
}


def check_types(tree: Tree, where: str, schema: Schema, syntax: Format) -> None:
    """Raise ConfigError, naming the file or option *where*, if a setting of *schema* has a type that it cannot have."""
    words = {"table": syntax.table, **_WORDS}
    for pattern, kind in schema:
        for path in _matches(tree, pattern):
            if not _has_type(get(tree, path), kind):
                raise ConfigError(f"{where}: {format_path(path)} has to be {words[kind]}; correct it and run again.")


def _matches(tree: Tree, pattern: Path) -> t.Iterator[Path]:
    if "*" not in pattern:
        if get(tree, pattern) is not MISSING:
            yield pattern
        return
    at = pattern.index("*")
    for key in get(tree, pattern[:at], {}):
        yield from _matches(tree, (*pattern[:at], key, *pattern[at + 1 :]))


def _has_type(value: t.Any, kind: str) -> bool:
    if kind == "texts":
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    return isinstance(value, {"table": dict, "text": str, "switch": bool}[kind])
