# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What documents of all formats have in common: their interface, their exception, and when two values are the same."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from datetime import datetime, time
from math import copysign, isnan


class DocumentError(ValueError):
    """What is wrong, and where: ``message`` (no position), ``line`` and ``column`` (from 1; None when not about a place)."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.message = message
        self.line = line
        self.column = column
        place = "" if line is None else f" (line {line}, column {column})"
        super().__init__(message + place)


class Document(t.Protocol):
    """A text and its meaning. An edit that fails raises DocumentError and changes nothing."""

    @property
    def text(self) -> str:
        """The text as it is now."""

    @property
    def tree(self) -> dict[str, t.Any]:
        """The meaning as plain data. Not to be changed."""

    def set(self, path: t.Sequence[t.Any], value: t.Any) -> bool:
        """Make *path* mean *value*; returns whether anything had to change."""

    def remove(self, path: t.Sequence[t.Any]) -> bool:
        """Take out what is at *path*; returns whether there was anything."""

    def merge(self, tree: t.Mapping[str, t.Any]) -> object:
        """Set everything in *tree* and leave all else as it is."""

    def to_bytes(self) -> bytes:
        """The content of the file."""


@dataclass(frozen=True)
class Format:
    """The syntax of a file. All functions raise DocumentError for what is wrong with a text or a value."""

    name: str
    table: str  # what it calls a table, with its article
    from_bytes: t.Callable[[bytes], Document]
    loads: t.Callable[[str], dict[str, t.Any]]
    dumps: t.Callable[[t.Mapping[str, t.Any]], str]


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, both from 1, of character *offset* of *text*."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def is_same(left: t.Any, right: t.Any) -> bool:
    """Whether two plain values are equal in type and meaning: true is not 1, 1 is not 1.0, order of keys is no meaning."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, float):
        return (isnan(left) and isnan(right)) or (left == right and copysign(1, left) == copysign(1, right))
    if isinstance(left, (datetime, time)):
        return bool(left == right and left.utcoffset() == right.utcoffset())
    return bool(left == right)
