# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo a change of a text that others have edited since, line by line."""

from __future__ import annotations

import typing as t
from difflib import SequenceMatcher

#: (tag, start and end on the left, start and end on the right), as difflib has it.
Opcode = t.Tuple[str, int, int, int, int]


def revert(base: bytes, written: bytes, current: bytes) -> bytes | None:
    """Return *current* without what made *base* into *written*, as a three-way merge would; None if lines of it are gone.

    The caller has to check what the result means: lines are compared here, not settings.
    """
    old, new, now = (data.splitlines(keepends=True) for data in (base, written, current))
    place = _positions(new, now)
    result = list(now)
    for tag, start, end, old_start, old_end in reversed(compare_lines(new, old)):
        if tag == "equal":
            continue
        span = _span(place, start, end)
        if span is None:
            return None
        result[span[0] : span[1]] = old[old_start:old_end]
    return b"".join(result)


def _positions(new: list[bytes], now: list[bytes]) -> dict[int, int]:
    """Return where each line of *new* is in *now*; the ends of both belong together."""
    place = {-1: -1, len(new): len(now)}
    for tag, start, end, target, _target_end in compare_lines(new, now):
        if tag == "equal":
            place.update({line: target + line - start for line in range(start, end)})
    return place


def compare_lines(left: t.Sequence[t.Any], right: t.Sequence[t.Any]) -> list[Opcode]:
    """Return how *left* becomes *right*. What both begin and end with is not searched, which takes quadratic time for equal lines."""
    most = min(len(left), len(right))
    head = next((count for count in range(most) if left[count] != right[count]), most)
    tail = next((count for count in range(most - head) if left[-1 - count] != right[-1 - count]), most - head)
    left_end, right_end = len(left) - tail, len(right) - tail
    inner = SequenceMatcher(None, left[head:left_end], right[head:right_end], autojunk=False).get_opcodes()
    return [
        ("equal", 0, head, 0, head),
        *(
            (tag, start + head, end + head, other + head, other_end + head)
            for tag, start, end, other, other_end in inner
        ),
        ("equal", left_end, len(left), right_end, len(right)),
    ]


def _span(place: dict[int, int], start: int, end: int) -> tuple[int, int] | None:
    """Return the slice that lines *start* to *end* take now; None unless all of them are still there, side by side."""
    if start == end:  # lines were removed here: between the two neighbours, if one is left
        if start - 1 in place:
            return place[start - 1] + 1, place[start - 1] + 1
        return (place[end], place[end]) if end in place else None
    first = place.get(start)
    if first is None or any(place.get(line) != first + line - start for line in range(start, end)):
        return None
    return first, first + end - start
