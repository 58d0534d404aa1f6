# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rules on who may define which table, and how often."""

from __future__ import annotations

from .errors import error_at
from .nodes import DOTTED, HEADER, IMPLICIT, INLINE, ROOT, Header, Pair, Statement, Table, TableArray, dotted_path


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
