# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a TOML text is made of, where in the text each part stands, and who may define which table, and how often.

All positions are offsets into the text, in characters; ``end`` is exclusive. A statement (``Pair`` or ``Header`` at top level)
reaches from the start of its first line to the end of its last one, end of line included.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Tuple, Union

from .errors import TomlError, error_at

Path = Tuple[Union[str, int], ...]

ROOT = "root"  # the document itself
HEADER = "header"  # has a [header] or [[header]] of its own
IMPLICIT = "implicit"  # exists only because a deeper header names it
DOTTED = "dotted"  # made by a dotted key
INLINE = "inline"  # { ... }


class Value:
    """A scalar or an array. ``data`` is the plain value of a scalar; an array has ``items`` and ``commas`` (-1 where none)."""

    __slots__ = ("commas", "data", "end", "items", "pair", "start")

    def __init__(self, start: int, end: int, data: Any, items: list[Item] | None = None) -> None:
        self.start = start
        self.end = end
        self.data = data
        self.items = items
        self.commas: list[int] = []
        self.pair: Pair | None = None


class Table:
    """A table of any kind; ``pairs`` are those written in its own section or braces, dotted ones included."""

    __slots__ = ("children", "commas", "end", "header", "kind", "pair", "pairs", "start")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.children: dict[str, Node] = {}
        self.header: Header | None = None
        self.pairs: list[Pair] = []
        # for inline tables only
        self.start = self.end = -1
        self.commas: list[int] = []
        self.pair: Pair | None = None


class TableArray:
    """An array of tables, written with ``[[...]]``."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Table] = []


Node = Union[Value, Table, TableArray]
Item = Union[Value, Table]


class Pair:
    """``key = value``, as a statement or inside braces (then ``start`` is the key's and ``end`` the value's)."""

    __slots__ = ("end", "key_end", "key_start", "names", "section", "start", "value")

    def __init__(
        self, start: int, key_start: int, key_end: int, names: tuple[str, ...], value: Item, section: Table
    ) -> None:
        self.start = start
        self.end = value.end
        self.key_start = key_start
        self.key_end = key_end
        self.names = names
        self.value = value
        self.section = section


class Header:
    """``[names]`` or ``[[names]]``; ``key_start`` and ``key_end`` enclose the names, brackets excluded."""

    __slots__ = ("end", "is_array", "key_end", "key_start", "names", "start", "table")

    def __init__(self, start: int, key_start: int, key_end: int, names: tuple[str, ...], is_array: bool) -> None:
        self.start = start
        self.end = key_end
        self.key_start = key_start
        self.key_end = key_end
        self.names = names
        self.is_array = is_array
        self.table: Table | None = None


Statement = Union[Pair, Header]


class Syntax(NamedTuple):
    """A text with its statements in the order of the text and its meaning from ``root`` down."""

    text: str
    statements: list[Statement]
    root: Table


def plain(node: Node) -> Any:
    """The meaning of a node as dicts, lists and scalars."""
    if isinstance(node, Table):
        return {name: plain(child) for name, child in node.children.items()}
    if isinstance(node, TableArray):
        return [plain(item) for item in node.items]
    if node.items is not None:
        return [plain(item) for item in node.items]
    return node.data


def lookup(root: Table, path: Path) -> Node | None:
    """The node at ``path``, or None. A whole number steps into an array of tables or an array."""
    node: Node = root
    for step in path:
        if isinstance(node, Table) and isinstance(step, str):
            child = node.children.get(step)
            if child is None:
                return None
            node = child
            continue
        items = None if isinstance(node, Table) else node.items
        if items is None or not isinstance(step, int) or not 0 <= step < len(items):
            return None
        node = items[step]
    return node


def dotted_path(path: Path) -> str:
    """A path for messages."""
    return ".".join(
        str(step) if isinstance(step, int) or step.replace("_", "").replace("-", "").isalnum() else f'"{step}"'
        for step in path
    )


def checked_path(path: Any) -> Path:
    """``path`` as a tuple of names. Raises TomlError for an empty path or one with anything but strings and whole numbers."""
    if isinstance(path, (str, bytes)) or not path:
        raise TomlError("a path is a non-empty list of names")
    steps = tuple(int(step) if isinstance(step, int) and not isinstance(step, bool) else step for step in path)
    if not all(isinstance(step, (str, int)) and not isinstance(step, bool) for step in steps):
        raise TomlError("a path is a non-empty list of names")
    return tuple(str(step) if isinstance(step, str) else step for step in steps)


# -- who may define which table, and how often


class Builder:
    """Collects statements into ``root``; ``section`` is the table that the next pair belongs to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root = Table(ROOT)
        self.section = self.root
        self.statements: list[Statement] = []

    def add_header(self, header: Header) -> None:
        """Open a section. Raises TomlError where the name is taken."""
        parent = self._open_parents(header)
        name = header.names[-1]
        known = parent.children.get(name)
        if header.is_array:
            table = self._array_item(parent, header)
        elif known is None:
            table = Table(HEADER)
            parent.children[name] = table
        elif isinstance(known, Table) and known.kind == IMPLICIT:
            table = known
            table.kind = HEADER
        else:
            raise error_at(self.text, header.key_start, f"{dotted_path(header.names)} is defined a second time")
        table.header = header
        header.table = table
        self.section = table

    def _open_parents(self, header: Header) -> Table:
        table = self.root
        for name in header.names[:-1]:
            child = table.children.get(name)
            if child is None:
                child = table.children[name] = Table(IMPLICIT)
            elif isinstance(child, TableArray):
                child = child.items[-1]
            elif not isinstance(child, Table) or child.kind == INLINE:
                raise error_at(
                    self.text, header.key_start, f"{dotted_path(header.names)} goes through {name!r}, which is a value"
                )
            table = child
        return table

    def _array_item(self, parent: Table, header: Header) -> Table:
        name = header.names[-1]
        array = parent.children.get(name)
        if array is None:
            array = parent.children[name] = TableArray()
        if not isinstance(array, TableArray):
            raise error_at(
                self.text,
                header.key_start,
                f"{dotted_path(header.names)} is already something else than an array of tables",
            )
        table = Table(HEADER)
        array.items.append(table)
        return table

    def add_pair(self, pair: Pair) -> None:
        """Put a pair into the current section."""
        self._define(self.section, pair)

    def add_inline(self, table: Table, pair: Pair) -> None:
        """Put a pair into an inline table."""
        self._define(table, pair)

    def _define(self, section: Table, pair: Pair) -> None:
        names = pair.names
        table = section
        for name in names[:-1]:
            child = table.children.get(name)
            if child is None:
                child = table.children[name] = Table(DOTTED)
            elif not isinstance(child, Table) or child.kind not in (DOTTED, IMPLICIT):
                raise error_at(self.text, pair.key_start, f"{dotted_path(names)} adds to {name!r}, which is closed")
            child.kind = DOTTED
            table = child
        if names[-1] in table.children:
            raise error_at(self.text, pair.key_start, f"{dotted_path(names)} is defined a second time")
        table.children[names[-1]] = pair.value
        section.pairs.append(pair)
