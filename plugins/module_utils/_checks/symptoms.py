# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds checks by the message that a user pastes."""

from __future__ import annotations

import re
from typing import Any, Iterable, Sequence

from .model import Check
from .registry import BY_ID, CHECKS
from .xids import SOURCE, find_bucket

#: A message is read up to this many characters.
MAX_MESSAGE = 20_000
#: Part of a known message counts if it has at least this many characters.
MIN_PART = 8
_XID = re.compile(r"\bxid\b\s*(?:\([^)]{0,64}\))?\s*[:=]?\s*(\d{1,4})\b")


def find_causes(message: str, checks: Iterable[Check] = CHECKS) -> list[dict[str, Any]]:
    """Return {id, layer, title, cause, remedy, words, docs} of each check whose words the message has, the longest words first.

    A part of known words is enough. The number of an Xid is named with its own remedy.
    """
    text = _normalise(message)
    ranked: list[tuple[int, dict[str, Any]]] = []
    for check in checks:
        matched = [(length, words) for words in check.words for length in [_match(words, text)] if length]
        if matched:
            length, words = max(matched)
            ranked.append((length, _describe(check, words)))
    xids = sorted({int(number) for number in _XID.findall(text)})
    rows = [
        row for _length, row in sorted(ranked, key=lambda each: -each[0]) if not (xids and row["id"] == "kernel.xid")
    ]
    return [*map(_describe_xid, xids), *rows]


def _describe(check: Check, words: str) -> dict[str, Any]:
    return {
        "id": check.id,
        "layer": check.layer,
        "title": check.title,
        "words": words,
        "cause": check.cause,
        "remedy": check.remedy,
        "docs": check.anchor,
    }


def _describe_xid(xid: int) -> dict[str, Any]:
    bucket = find_bucket(xid)
    return {**_describe(BY_ID["kernel.xid"], f"Xid {xid}"), "title": f"Xid {xid} ({SOURCE})", "remedy": bucket.remedy}


def _normalise(text: str) -> str:
    return " ".join(str(text)[:MAX_MESSAGE].lower().split())


def _match(words: str, text: str) -> int:
    """Return how many characters of the words the text has, or the words of the text; 0 if neither contains the other."""
    parts = [_normalise(part) for part in words.split("…")]
    if _contains(parts, text):
        return sum(map(len, parts))
    whole = " ".join(parts)
    return len(text) if len(text) >= MIN_PART and text in whole else 0


def _contains(parts: Sequence[str], text: str) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True
