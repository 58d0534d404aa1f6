# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a document is written, so that new lines look like their neighbours."""

from __future__ import annotations

from collections import Counter
from typing import Counter as CounterType
from typing import Iterable, Iterator, Tuple

from .edits import Edits, blank_before
from .nodes import INLINE, Header, Item, Pair, Syntax, Table, TableArray, Value
from .reader import read_key
from .writer import Layout

Names = Tuple[str, ...]
_EQUALS = (" = ", "=", " =", "= ")


def headers_of(syntax: Syntax) -> list[Header]:
    """All headers in the order of the text."""
    return [statement for statement in syntax.statements if isinstance(statement, Header)]


def headers_below(table: Table) -> Iterator[Header]:
    """The table's own header and those of everything in it, in no special order."""
    if table.header is not None:
        yield table.header
    for child in table.children.values():
        for item in child.items if isinstance(child, TableArray) else [child]:
            if isinstance(item, Table) and item.kind != INLINE:
                yield from headers_below(item)


def header_indent(text: str, header: Header) -> str:
    """What stands before the bracket."""
    return text[header.start : text.index("[", header.start)]


def pair_indent(text: str, pair: Pair) -> str:
    """What stands before the key."""
    return text[pair.start : pair.key_start]


def eol_before(text: str, pos: int) -> str:
    """The line end of the line before ``pos``; of the first line where there is none; else a line feed."""
    found = text.rfind("\n", 0, pos)
    if found < 0:
        found = text.find("\n")
    return "\r\n" if found > 0 and text[found - 1] == "\r" else "\n"


def written_names(text: str, header: Header) -> list[str]:
    """The names of a header as they are written."""
    return [text[start:end] for _name, start, end in read_key(text, header.key_start, True)[0]]


def layout_for(edits: Edits, pos: int, near: Iterable[Table]) -> Layout:
    """The layout of new lines at ``pos``; that of the tables ``near``, else that of the whole document."""
    if edits.habits is None:
        edits.habits = habits_of(edits.syntax)
    text, base = edits.text, edits.habits
    models = [table for table in near if table.pairs]
    return base._replace(
        eol=eol_before(text, pos),
        quote=_most([_quotes(text, table.pairs) for table in models], base.quote),
        equals=_equals(text, models[0].pairs) if models else base.equals,
        body=_most([_bodies(text, table) for table in models], base.body),
    )


def habits_of(syntax: Syntax) -> Layout:
    """How most of a document is written."""
    pairs = [statement for statement in syntax.statements if isinstance(statement, Pair)]
    quote = _most([_quotes(syntax.text, pairs)], '"')
    outer, inner = _gaps(syntax)
    return Layout(
        quote=quote,
        key_quote=_key_quote(syntax, quote),
        equals=_equals(syntax.text, pairs),
        step=_step(syntax),
        body=_most([_all_bodies(syntax)], ""),
        gap=outer,
        inner_gap=inner,
    )


def _most(ballots: list[CounterType[str]], default: str) -> str:
    """The winner of the first ballot that has votes."""
    return next((votes.most_common(1)[0][0] for votes in ballots if votes), default)


def _quotes(text: str, pairs: list[Pair]) -> CounterType[str]:
    return Counter(text[value.start] for pair in pairs for value in _strings(pair.value))


def _strings(value: Item) -> Iterator[Value]:
    if isinstance(value, Value):
        if isinstance(value.data, str):
            yield value
        for item in value.items or ():
            if isinstance(item, Value) and isinstance(item.data, str):
                yield item


def _key_quote(syntax: Syntax, quote: str) -> str:
    votes: CounterType[str] = Counter()
    for statement in syntax.statements:
        written = syntax.text[statement.key_start : statement.key_end]
        if "'" in written or '"' in written:
            votes[written[min(written.find(mark) % (len(written) + 1) for mark in "'\"")]] += 1
    return _most([votes], quote)


def _equals(text: str, pairs: list[Pair]) -> str:
    written = _most([Counter(text[pair.key_end : pair.value.start] for pair in pairs)], " = ")
    return written if written in _EQUALS else " = "


def _step(syntax: Syntax) -> str:
    """The indentation that most headers add to that of their nearest written ancestor."""
    known: dict[Names, str] = {}
    votes: CounterType[str] = Counter()
    for header in headers_of(syntax):
        indent = known[header.names] = header_indent(syntax.text, header)
        above = next(
            (
                known[header.names[:size]]
                for size in range(len(header.names) - 1, 0, -1)
                if header.names[:size] in known
            ),
            None,
        )
        if above is not None and indent.startswith(above):
            votes[indent[len(above) :]] += 1
    return votes.most_common(1)[0][0] if votes else ""


def _bodies(text: str, table: Table) -> CounterType[str]:
    if table.header is None or table.kind == INLINE:
        return Counter()
    above = header_indent(text, table.header)
    indents = (pair_indent(text, pair) for pair in table.pairs)
    return Counter(indent[len(above) :] for indent in indents if indent.startswith(above))


def _all_bodies(syntax: Syntax) -> CounterType[str]:
    votes: CounterType[str] = Counter()
    for header in headers_of(syntax):
        if header.table is not None:
            votes.update(_bodies(syntax.text, header.table))
    return votes


def _gaps(syntax: Syntax) -> tuple[bool, bool]:
    """Whether an empty line stands before most headers, and before most headers of sub-tables right below their parent."""
    outer: CounterType[bool] = Counter()
    inner: CounterType[bool] = Counter()
    last: Header | None = None
    for header in headers_of(syntax):
        if header is not syntax.statements[0]:
            below = (
                last is not None
                and header.names[: len(last.names)] == last.names
                and len(header.names) > len(last.names)
            )
            (inner if below else outer)[_gap_before(syntax.text, header.start)] += 1
        last = header
    gap = _wins(outer or inner)
    return gap, _wins(inner) if inner else gap


def _gap_before(text: str, pos: int) -> bool:
    """Whether an empty line stands above ``pos`` and the comments right before it."""
    return blank_before(text, above_comments(text, pos)) or above_comments(text, pos) == 0


def _wins(votes: CounterType[bool]) -> bool:
    return votes[True] >= votes[False]


def above_comments(text: str, pos: int) -> int:
    """The start of the comment lines right above the line start ``pos``, or ``pos`` itself."""
    while pos > 0:
        start = text.rfind("\n", 0, pos - 1) + 1
        if not text[start:pos].lstrip().startswith("#"):
            return pos
        pos = start
    return pos
