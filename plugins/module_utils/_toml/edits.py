# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits of a text, collected first and made all at once.

Adding a line or block and removing it again has to restore the first text, empty lines included. Two rules do that:
an addition puts new text right after a line that is not empty, with one empty line before it only where an empty line (or the end)
follows; a removal removes one empty line where otherwise two would meet.
"""

from __future__ import annotations

from .nodes import Statement, Syntax, Table, Value
from .writer import Layout

LINES, BLOCKS = 0, 1  # at the same place, keys go before headers


class ConflictError(Exception):
    """Two edits meet in the same place; they have to be made one after the other."""


class Edits:
    """What is to change in one text."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self.text = syntax.text
        self.habits: Layout | None = None  # how the document is written, once it is known
        self._cuts: list[tuple[int, int, int, int, str]] = []
        self._dropped: dict[int, bool] = {}
        self._dropped_items: dict[int, tuple[Table | Value, set[int]]] = {}

    def replace(self, start: int, end: int, new: str, order: int = LINES) -> None:
        """Put ``new`` in place of text[start:end]."""
        self._cuts.append((start, end, order, len(self._cuts), new))

    def insert_lines(self, pos: int, lines: list[str], eol: str, order: int = LINES) -> None:
        """Put whole lines in at the start of a line, or at the end of a text, whether or not that ends its last line."""
        if pos and self.text[pos - 1] != "\n":
            self.replace(pos, pos, "".join(eol + line for line in lines), order)
        else:
            self.replace(pos, pos, "".join(line + eol for line in lines), order)

    def drop(self, statement: Statement, with_comments: bool) -> None:
        """Remove a statement; ``with_comments`` also what stands between it and its neighbour, if that goes in the same way."""
        self._dropped[id(statement)] = with_comments

    def drop_item(self, sequence: Table | Value, index: int) -> None:
        """Remove one item of an array, or one pair of an inline table."""
        self._dropped_items.setdefault(id(sequence), (sequence, set()))[1].add(index)

    def apply(self) -> str:
        """The new text. Raises ConflictError."""
        for start, end in self._regions():
            self.replace(*_with_blank(self.text, start, end), "")
        for sequence, indexes in self._dropped_items.values():
            for start, end in dropped_spans(self.text, sequence, indexes):
                self.replace(start, end, "")
        parts: list[str] = []
        last = 0
        for start, end, _order, _number, new in sorted(self._cuts):
            if start < last:
                raise ConflictError
            parts.extend((self.text[last:start], new))
            last = end
        parts.append(self.text[last:])
        text = "".join(parts)
        # what stood above a new block may have gone in the same edit
        return text if blank_after(self.text, 0) else text.lstrip("\r\n")

    def _regions(self) -> list[tuple[int, int]]:
        regions: list[tuple[int, int]] = []
        joined = False  # whether the statement before this one was dropped
        for statement in self.syntax.statements if self._dropped else ():
            if id(statement) not in self._dropped:
                joined = False
                continue
            with_comments = self._dropped[id(statement)]
            if joined and (with_comments or not self.text[regions[-1][1] : statement.start].strip()):
                regions[-1] = (regions[-1][0], statement.end)
            else:
                regions.append((statement.start, statement.end))
            joined = True
        return regions


def line_start(text: str, pos: int) -> int:
    """The start of the line that ``pos`` is in."""
    return text.rfind("\n", 0, pos) + 1


def line_end(text: str, pos: int) -> int:
    """The offset after the line that ``pos`` is in, its line end included."""
    found = text.find("\n", pos)
    return len(text) if found < 0 else found + 1


def blank_before(text: str, pos: int) -> bool:
    """Whether the line before the line start ``pos`` is empty."""
    return pos > 0 and not text[line_start(text, pos - 1) : pos].strip()


def blank_after(text: str, pos: int) -> bool:
    """Whether an empty line starts at ``pos``."""
    return pos < len(text) and not text[pos : line_end(text, pos)].strip()


def _with_blank(text: str, start: int, end: int) -> tuple[int, int]:
    """Widen a region of whole lines by the empty line, or by the line end, that should go with it."""
    open_end = end == len(text) and not text.endswith("\n")
    at_end = end == len(text) or blank_after(text, end)
    if at_end and blank_before(text, start):
        start = line_start(text, start - 1)
    elif start == 0 and blank_after(text, end):
        end = line_end(text, end)
    if open_end and start:
        start -= 2 if text.endswith("\r\n", 0, start) else 1
    return start, end


def items_of(sequence: Table | Value) -> list[tuple[int, int]]:
    """Start and end of each item of an array, or of each pair of an inline table."""
    if isinstance(sequence, Table):
        return [(pair.start, pair.end) for pair in sequence.pairs]
    return [(item.start, item.end) for item in sequence.items or ()]


def dropped_spans(text: str, sequence: Table | Value, indexes: set[int]) -> list[tuple[int, int]]:
    """What to cut out of an array or inline table, commas included, so that the items at ``indexes`` are gone."""
    items = items_of(sequence)
    kept = [index for index in range(len(items)) if index not in indexes]
    if not kept:
        return _spans_of_all(text, sequence)
    spans: list[tuple[int, int]] = []
    for index in sorted(indexes):
        lines = own_lines(text, sequence, index)
        if lines is not None:
            spans.append(lines)
        elif index < kept[0]:
            spans.append((items[index][0], items[index + 1][0]))
        else:
            spans.append((items[index - 1][1], items[index][1]))
    comma = sequence.commas[kept[-1]]
    loose = len(items) - 1 in indexes and sequence.commas[-1] < 0 and comma >= 0
    if loose and not any(start <= comma < end for start, end in spans):
        spans.append((comma, comma + 1))
    return spans


def _spans_of_all(text: str, sequence: Table | Value) -> list[tuple[int, int]]:
    """What to cut so that no item is left: all between the brackets, but for comments that no item has on its line."""
    commas = [comma + 1 for comma in sequence.commas]
    items = enumerate(items_of(sequence))
    spans = [own_lines(text, sequence, index) or (start, max(end, commas[index])) for index, (start, end) in items]
    starts = [sequence.start + 1, *(end for _start, end in spans)]
    ends = [*(start for start, _end in spans), sequence.end - 1]
    has_comment = any("#" in text[start:end] for start, end in zip(starts, ends))
    return spans if has_comment else [(sequence.start + 1, sequence.end - 1)]


def own_lines(text: str, sequence: Table | Value, index: int) -> tuple[int, int] | None:
    """The whole lines of an item that shares them with no other item and no bracket, or None."""
    start, end = items_of(sequence)[index]
    first = line_start(text, start)
    after = max(end, sequence.commas[index] + 1)
    last = line_end(text, after)
    rest = text[after:last].strip()
    if first <= sequence.start or last > sequence.end - 1 or text[first:start].strip() or (rest and rest[0] != "#"):
        return None
    return first, last


def insert_items(edits: Edits, sequence: Table | Value, index: int, rendered: list[str], eol: str) -> None:
    """Put items, as written, before the item at ``index`` of an array or inline table, in the shape of the items there."""
    text, items = edits.text, items_of(sequence)
    pad = " " if isinstance(sequence, Table) else ""
    if not items:
        inside = text[sequence.start + 1 : sequence.end - 1]
        end = sequence.start + 1 if "#" in inside else sequence.end - 1
        edits.replace(sequence.start + 1, end, pad + ", ".join(rendered) + pad)
        return
    near = max(index - 1, 0)
    start, end = items[near]
    lines = own_lines(text, sequence, near)
    if lines is None:
        pos, new = (
            (end, "".join(", " + item for item in rendered))
            if index
            else (start, "".join(item + ", " for item in rendered))
        )
        edits.replace(pos, pos, new)
        return
    indent = text[lines[0] : start]
    ending = sequence.commas[near] >= 0
    new_lines = [f"{indent}{item}," for item in rendered]
    if not ending and index:
        edits.replace(end, end, ",")
        new_lines[-1] = new_lines[-1][:-1]
    pos = lines[1] if index else lines[0]
    edits.replace(pos, pos, "".join(line + eol for line in new_lines))
