# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where new keys and tables go, and what they look like there."""

from __future__ import annotations

from typing import Any, Dict, cast

from .edits import BLOCKS, LINES, Edits, blank_after, insert_items, line_end, line_start
from .errors import TomlError
from .nodes import (
    DOTTED,
    HEADER,
    IMPLICIT,
    INLINE,
    ROOT,
    Header,
    Item,
    Node,
    Pair,
    Path,
    Table,
    TableArray,
    Value,
    dotted_path,
)
from .reader import read_key
from .style import above_comments, header_indent, headers_below, headers_of, layout_for, pair_indent, written_names
from .writer import Layout, render_blocks, render_dotted, render_key, render_lines, split

Data = Dict[str, Any]


def insert(edits: Edits, path: Path, data: Data) -> None:
    """Add the keys of ``data`` to the table at ``path``, which may have to be made. Raises TomlError if a value is in the way."""
    if not all(isinstance(name, str) for name in data):
        raise TomlError(f"{dotted_path(path)} cannot get an element as a table gets a key")
    table, known = _deepest(edits.syntax.root, path)
    for name in reversed(path[known:]):
        if not isinstance(name, str):
            raise TomlError(f"{dotted_path(path)} is not there")
        data = {name: data}
    place = _Place(edits, table, path[:known])
    if table.kind == INLINE:
        place.into_braces(data)
    elif table.kind == DOTTED:
        place.into_dotted(data)
    else:
        place.into_section(data)


def append_tables(edits: Edits, path: Path, index: int, data: list[Data]) -> None:
    """Add tables to the array of tables at ``path``, before the one at ``index``, which is not 0."""
    above, _known = _deepest(edits.syntax.root, path[:-1])
    array = cast(TableArray, above.children[str(path[-1])])
    place = _Place(edits, array.items[index - 1], (*path, index - 1))
    place.append_after(array.items[index - 1], data)


def _deepest(root: Table, path: Path) -> tuple[Table, int]:
    """The deepest table on the path that is there, and how many steps lead to it."""
    node: Node = root
    table, known = root, 0
    for count, step in enumerate(path, 1):
        child = _step_into(node, step)
        if child is None:
            break
        node = child
        if isinstance(node, Table):
            table, known = node, count
    if not isinstance(node, Table):
        raise TomlError(f"{dotted_path(path)} goes through a value that is not a table")
    return table, known


def _step_into(node: Node, step: Any) -> Node | None:
    if isinstance(node, Table):
        return node.children.get(step)
    items: list[Any] = list(node.items or ())
    return items[step] if isinstance(step, int) and 0 <= step < len(items) else None


def leaves_of(node: Node) -> list[Item]:
    """All values and inline tables below a node that a pair of a section or of braces gives directly."""
    if isinstance(node, Value) or (isinstance(node, Table) and node.kind == INLINE):
        return [node]
    if isinstance(node, TableArray):
        return []
    return [leaf for child in node.children.values() for leaf in leaves_of(child)]


class _Place:
    """A table that gets new keys."""

    def __init__(self, edits: Edits, table: Table, path: Path) -> None:
        self.edits = edits
        self.syntax = edits.syntax
        self.text = edits.text
        self.table = table
        self.names: tuple[str, ...] = tuple(step for step in path if isinstance(step, str))

    def layout(self, pos: int, near: list[Table] | None = None) -> Layout:
        """The layout at ``pos`` beside the tables ``near``."""
        return layout_for(self.edits, pos, near if near is not None else [self.table])

    def into_braces(self, data: Data) -> None:
        """Extend an inline table."""
        layout = self.layout(self.table.start)
        lines = render_lines(data, layout, "")
        insert_items(self.edits, self.table, len(self.table.pairs), lines, layout.eol)

    def into_dotted(self, data: Data) -> None:
        """Extend a table that dotted keys make, after the last of them."""
        pairs = [leaf.pair for leaf in leaves_of(self.table) if leaf.pair is not None]
        sections = [pair for pair in pairs if pair.names and self._depth_in(pair)]
        last = max(sections, key=lambda pair: pair.start)
        prefix = self._prefix(last)
        section = last.section
        if section.kind == INLINE:
            layout = self.layout(last.start, [section])
            index = section.pairs.index(last) + 1
            insert_items(self.edits, section, index, render_dotted(data, layout, "", prefix), layout.eol)
            return
        layout = self.layout(last.end, [section])
        lines = render_dotted(data, layout, pair_indent(self.text, last), prefix)
        self.edits.insert_lines(last.end, lines, layout.eol)

    def _depth_in(self, pair: Pair) -> int:
        """How many names of a pair lead to this table; 0 if it does not go through it."""
        node: Node = pair.section
        for depth, name in enumerate(pair.names[:-1], 1):
            node = cast(Table, node).children[name]
            if node is self.table:
                return depth
        return 0

    def _prefix(self, pair: Pair) -> str:
        written = written_key(self.text, pair)
        return "".join(part + "." for part in written[: self._depth_in(pair)])

    def into_section(self, data: Data) -> None:
        """Extend a table that has, or will have, a header; or the document itself."""
        leaves, tables = split(data)
        family = self._family() if tables else HEADER
        dotted: Data = {}
        if family == INLINE:
            leaves, tables = data, {}
        elif family == DOTTED:
            dotted = {name: value for name, value in tables.items() if isinstance(value, dict)}
            leaves.update({name: value for name, value in tables.items() if name not in dotted})
            tables = {}
        if leaves or dotted:
            self._add_lines(leaves, dotted)
        if tables:
            self._add_tables(tables)

    def _family(self) -> str:
        """How the tables in this table are written: with headers, in braces or with dotted keys."""
        kinds = {_kind(child) for child in self.table.children.values()} - {""}
        if self.table.kind == ROOT:
            return DOTTED if DOTTED in kinds and not headers_of(self.syntax) else HEADER
        if kinds & {HEADER, IMPLICIT} or not kinds:
            return HEADER
        return INLINE if INLINE in kinds else DOTTED

    def _add_lines(self, leaves: Data, dotted: Data) -> None:
        table = self.table
        if table.pairs:
            last = table.pairs[-1]
            self._lines_at(last.end, leaves, dotted, pair_indent(self.text, last))
        elif table.header is not None:
            layout = self.layout(table.header.end, [table, *self._relatives()])
            self._lines_at(table.header.end, leaves, dotted, header_indent(self.text, table.header) + layout.body)
        elif table.kind == ROOT:
            self._first_lines(leaves, dotted)
        else:
            self._own_header(leaves, dotted)

    def _lines_at(self, pos: int, leaves: Data, dotted: Data, indent: str) -> None:
        layout = self.layout(pos, [self.table, *self._relatives()])
        lines = render_lines(leaves, layout, indent) + render_dotted(dotted, layout, indent)
        self.edits.insert_lines(pos, lines, layout.eol)

    def _first_lines(self, leaves: Data, dotted: Data) -> None:
        """The first keys of the document: before its first header, or after all comments."""
        first = self._first_header(self.table)
        layout = self.layout(0)
        lines = render_lines(leaves, layout, "") + render_dotted(dotted, layout, "")
        if first is None:
            self.edits.insert_lines(_last_line_end(self.text), lines, layout.eol)
        else:
            self._before(first, lines, layout, LINES)

    def _own_header(self, leaves: Data, dotted: Data) -> None:
        """Give a table without a header one, before the first header below it."""
        first = cast(Header, self._first_header(self.table))
        layout = self.layout(first.start, [cast(Table, first.table)])
        indent = header_indent(self.text, first)
        if layout.step and indent.endswith(layout.step):
            indent = indent[: -len(layout.step)]
        header = f"{indent}[{'.'.join(written_names(self.text, first)[: len(self.names)])}]"
        inner = indent + layout.body
        self._before(
            first, [header, *render_lines(leaves, layout, inner), *render_dotted(dotted, layout, inner)], layout, BLOCKS
        )

    def _first_header(self, table: Table) -> Header | None:
        return min(headers_below(table), key=lambda header: header.start, default=None)

    def _before(self, header: Header, lines: list[str], layout: Layout, order: int) -> None:
        """Put lines before a header and its comments, but not before a comment that the file starts with."""
        pos = above_comments(self.text, header.start)
        if pos == 0 and header.start:
            pos = header.start
        apart = layout.gap and (pos == 0 or not self.text[line_start(self.text, pos - 1) : pos].strip())
        self.edits.insert_lines(pos, [*lines, ""] if apart else lines, layout.eol, order)

    def _relatives(self) -> list[Table]:
        """The tables in this one, the last one first: a new table is made like them."""
        found: list[Table] = []
        for child in self.table.children.values():
            newest = child.items[-1] if isinstance(child, TableArray) else child
            if isinstance(newest, Table) and newest.header is not None:
                found.append(newest)
        return sorted(found, key=lambda table: table.header.start if table.header else 0, reverse=True)

    def _add_tables(self, tables: Data) -> None:
        table, relatives = self.table, self._relatives()
        pos = _last_line_end(self.text) if table.kind == ROOT else self._after_comments(self._end(table))
        layout = self.layout(pos, [*relatives, table])
        prefix = "".join(name + "." for name in self._written_names())
        named = [(prefix + render_key(name, layout.key_quote), value) for name, value in tables.items()]
        first_gap = layout.gap if relatives or table.kind == ROOT else layout.inner_gap
        self._put_blocks(pos, named, layout._replace(indent=self._block_indent(relatives, layout)), first_gap)

    def append_after(self, item: Table, data: list[Data]) -> None:
        """More tables for the array of tables that ``item`` is in, right after it."""
        header = cast(Header, item.header)
        pos = self._after_comments(self._end(item))
        layout = self.layout(pos, [item])._replace(indent=header_indent(self.text, header))
        self._put_blocks(pos, [(".".join(written_names(self.text, header)), data)], layout, layout.gap)

    def _put_blocks(self, pos: int, named: list[tuple[str, Any]], layout: Layout, first_gap: bool) -> None:
        lines: list[str] = []
        for key, value in named:
            for number, block in enumerate(render_blocks(key, value, layout, layout.indent)):
                gap = layout.gap if number == 0 or isinstance(value, list) else layout.inner_gap
                lines.extend(["", *block] if lines and gap else block)
        apart = first_gap and self.text and (pos >= len(self.text) or blank_after(self.text, pos))
        self.edits.insert_lines(pos, ["", *lines] if apart else lines, layout.eol, BLOCKS)

    def _written_names(self) -> list[str]:
        """The names of this table as its relatives write them."""
        near: list[str] = []
        own = [table.header for table in self._relatives() if table.header]
        for header in [*own, *headers_below(self.table), *headers_of(self.syntax)]:
            common = _shared(header.names, self.names)
            if common > len(near):
                near = written_names(self.text, header)[:common]
        quote = self.layout(len(self.text)).key_quote
        return near + [render_key(name, quote) for name in self.names[len(near) :]]

    def _block_indent(self, relatives: list[Table], layout: Layout) -> str:
        if relatives and relatives[0].header is not None:
            return header_indent(self.text, relatives[0].header)
        above: Header | None = None
        for header in headers_of(self.syntax):
            size = len(header.names)
            if header.names == self.names[:size] and (above is None or size >= len(above.names)):
                above = header
        return "" if above is None else header_indent(self.text, above) + layout.step

    def _end(self, table: Table) -> int:
        """The offset after the last statement of a table and of everything in it."""
        ends = [pair.end for pair in table.pairs]
        ends.extend(leaf.pair.end for leaf in leaves_of(table) if leaf.pair is not None)
        for header in headers_below(table):
            ends.append(header.end)
            ends.extend(pair.end for pair in (header.table.pairs if header.table else ()))
        return max(ends)

    def _after_comments(self, pos: int) -> int:
        """Step over comments that follow directly, unless they stand right above a header."""
        after = pos
        while after < len(self.text) and self.text[after : line_end(self.text, after)].lstrip().startswith("#"):
            after = line_end(self.text, after)
        return after if after >= len(self.text) or blank_after(self.text, after) else pos


def _kind(child: Node) -> str:
    """The kind of a table that has something in it; nothing for anything else."""
    if isinstance(child, TableArray):
        return HEADER
    return child.kind if isinstance(child, Table) and child.children else ""


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> int:
    count = 0
    while count < min(len(left), len(right)) and left[count] == right[count]:
        count += 1
    return count


def _last_line_end(text: str) -> int:
    """The offset after the last line that is not empty."""
    size = len(text.rstrip())
    return line_end(text, size) if size else len(text)


def written_key(text: str, pair: Pair) -> list[str]:
    """The parts of a pair's key as they are written."""
    return [text[start:end] for _name, start, end in read_key(text, pair.key_start, True)[0]]
