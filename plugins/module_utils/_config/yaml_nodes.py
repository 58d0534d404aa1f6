# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of YAML files on the controller: how scalars are written, and what they mean.

YAML libraries do not agree on what a plain ``10:20``, ``0o17`` or ``on`` is, and daemons differ from them. So plain scalars are
kept as their text, and only what all of them read alike is ever interpreted.
"""

from __future__ import annotations

import re
import typing as t

from .._document import is_same
from .errors import ConfigError

_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
# Text that every reader reads as text without quotes, such as --config=/a/b.yaml, http://10.0.0.1:80/x or example.com/gpu.
_TEXT = re.compile(r"(?:--)?[A-Za-z/](?:[A-Za-z0-9_./=@:-]*[A-Za-z0-9_./=@-])?")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_CONSTANTS = {"true": True, "false": False, "null": None}


class Plain(str):
    """A scalar without quotes: its text, which may have several meanings."""

    __slots__ = ()


class Ambiguous(t.NamedTuple):
    """The meaning of a plain scalar that readers of YAML may interpret differently."""

    text: str


class Syntax(t.Protocol):
    """Reads and edits files. All methods raise ConfigError, which names *what* the file is."""

    def read(self, data: bytes, what: str) -> t.Any:
        """Return the tree of the first document."""

    def edit(self, data: bytes, what: str, change: t.Callable[[t.Any], object]) -> bytes:
        """Return *data* with the tree as *change* leaves it, and all else as it was."""

    def render(self, tree: t.Any) -> bytes:
        """Return a new file that means *tree*."""


def is_safe(text: str) -> bool:
    """Whether *text* may be written without quotes and is text for every reader of YAML."""
    return bool(_TEXT.fullmatch(text)) and text.lower() not in _WORDS


def meaning(node: t.Any) -> t.Any:
    """Return *node* as plain data: what it means, without how it is written."""
    if isinstance(node, dict):
        return {str(key): meaning(value) for key, value in node.items()}
    if isinstance(node, list):
        return [meaning(value) for value in node]
    if isinstance(node, Plain):
        return _plain(str(node))
    return str(node) if isinstance(node, str) else node


def _plain(text: str) -> t.Any:
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text if is_safe(text) else Ambiguous(text)


def is_equal(left: t.Any, right: t.Any) -> bool:
    """Whether two nodes mean the same."""
    return is_same(meaning(left), meaning(right))


def text_of(node: t.Any) -> str:
    """Return a scalar as the text that it is written as, such as an argument; empty for none."""
    return "" if meaning(node) is None else str(node)


def mapping(parent: t.Mapping[str, t.Any], key: str, where: str) -> dict[str, t.Any]:
    """Return the mapping at *key*, empty if there is none; raises ConfigError if something else is there."""
    found = parent.get(key)
    if meaning(found) is None:
        return {}
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: {key} has to be a mapping; correct it and run again.")
    return found


def sequence(parent: t.Mapping[str, t.Any], key: str, where: str) -> list[t.Any]:
    """Return the sequence at *key*, empty if there is none; raises ConfigError if something else is there."""
    found = parent.get(key)
    if meaning(found) is None:
        return []
    if not isinstance(found, list):
        raise ConfigError(f"{where}: {key} has to be a list; correct it and run again.")
    return found


def mappings(parent: t.Mapping[str, t.Any], key: str, where: str) -> list[dict[str, t.Any]]:
    """Return the sequence of mappings at *key*; raises as sequence()."""
    found = sequence(parent, key, where)
    if not all(isinstance(each, dict) for each in found):
        raise ConfigError(f"{where}: {key} has to be a list of mappings; correct it and run again.")
    return found


def ensure(parent: dict[str, t.Any], key: str, kind: type, first: bool = False) -> t.Any:
    """Return the mapping or sequence at *key*, created if there is none; *first* puts a new key before the others."""
    if isinstance(parent.get(key), kind):
        return parent[key]
    if key in parent or not first:
        parent[key] = kind()
    else:
        insert(parent, 0, key, kind())
    return parent[key]


def insert(parent: dict[str, t.Any], index: int, key: str, value: t.Any) -> None:
    """Insert the new *key* at the position *index* of a mapping."""
    if hasattr(parent, "insert"):
        parent.insert(index, key, value)
        return
    items = [*list(parent.items())[:index], (key, value), *list(parent.items())[index:]]
    parent.clear()
    parent.update(items)


def rename(parent: dict[str, t.Any], old: str, new: str) -> None:
    """Give the key *old* of a mapping the name *new*, in its place."""
    index = list(parent).index(old)
    insert(parent, index, new, parent.pop(old))
