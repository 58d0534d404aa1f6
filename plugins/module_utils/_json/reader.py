# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reader: a text in, what is where out.

Source: RFC 8259, strictly; an object may not have a key twice, because every reader makes something else of that.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .errors import JsonError, error_at

#: Levels of objects and lists: far beyond any configuration, and well within Python's own stack.
MAX_DEPTH = 100
TOO_DEEP = "the document is nested too deeply"

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<float>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)")
_STRING_BODY = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True)
class Node:
    """A value, its place in the text and, if it is an object, its members in order."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()


@dataclass(frozen=True)
class Member:
    """A key with its value: the key is the text from ``start`` to ``key_end``."""

    name: str
    start: int
    key_end: int
    node: Node

    @property
    def end(self) -> int:
        """Where the value ends."""
        return self.node.end


def loads(text: str) -> dict[str, Any]:
    """Read an object; a text of nothing but space is an empty one. Raises JsonError with line and column."""
    root = read(text)
    return {} if root is None else dict(root.value)


def read(text: str) -> Node | None:
    """Read a document, which is an object, or None for a text of nothing but space. Raises JsonError."""
    reader = _Reader(text)
    start = reader.space(0)
    if start == len(text):
        return None
    root = reader.value(start, 0)
    if not isinstance(root.value, dict):
        raise error_at(text, start, "the document has to be an object, in braces")
    end = reader.space(root.end)
    if end != len(text):
        raise reader.unexpected(end, "more text after the end of the document")
    return root


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def space(self, pos: int) -> int:
        """Where the space at ``pos`` ends."""
        found = _SPACE.match(self.text, pos)
        return found.end() if found else pos

    def unexpected(self, pos: int, message: str) -> JsonError:
        """What is wrong at ``pos``: one of the usual mistakes, or else ``message``."""
        text = self.text
        if pos >= len(text):
            message = "the text ends too early"
        elif text[pos] == "#" or text.startswith(("//", "/*"), pos):
            message = "a comment, which JSON does not have"
        elif text[pos] == "'":
            message = "a string needs double quotes"
        return error_at(text, pos, message)

    def value(self, pos: int, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise error_at(self.text, pos, TOO_DEEP)
        first = self.text[pos : pos + 1]
        if first == "{":
            return self.object(pos, depth)
        if first == "[":
            return self.array(pos, depth)
        if first == '"':
            value, end = self.string(pos)
            return Node(pos, end, value)
        return self.scalar(pos)

    def scalar(self, pos: int) -> Node:
        word = _WORD.match(self.text, pos)
        if word and word.group() in _WORDS:
            return Node(pos, word.end(), _WORDS[word.group()])
        found = _NUMBER.match(self.text, pos)
        if found is None:
            raise self.unexpected(pos, "expected a value")
        try:
            value = float(found.group()) if found.group("float") else int(found.group())
        except ValueError as problem:  # Python reads whole numbers of some thousand digits and no more
            raise error_at(self.text, pos, "number too long to read") from problem
        if value in (float("inf"), float("-inf")):
            raise error_at(self.text, pos, "number too large")
        return Node(pos, found.end(), value)

    def string(self, pos: int) -> tuple[str, int]:
        found = _STRING_BODY.match(self.text, pos)
        if found is None:
            raise self.unexpected(pos, "expected a key in double quotes")
        end = found.end()
        after = self.text[end : end + 1]
        if after != '"':
            message = "an escape that JSON does not have" if after == "\\" else "a control character in a string"
            raise error_at(self.text, end, message) if after else error_at(self.text, pos, "a string without an end")
        return json.loads(self.text[pos : end + 1]), end + 1

    def array(self, pos: int, depth: int) -> Node:
        items: list[Any] = []
        here = self.space(pos + 1)
        if self.text[here : here + 1] == "]":
            return Node(pos, here + 1, items)
        while True:
            item = self.value(here, depth + 1)
            items.append(item.value)
            here, closed = self.after(item.end, "]")
            if closed:
                return Node(pos, here, items)

    def object(self, pos: int, depth: int) -> Node:
        members: dict[str, Member] = {}
        here = self.space(pos + 1)
        if self.text[here : here + 1] == "}":
            return Node(pos, here + 1, {})
        while True:
            member = self.member(here, depth)
            if member.name in members:
                line = self.text.count("\n", 0, members[member.name].start) + 1
                raise error_at(self.text, here, f"the key {member.name!r} for the second time, after line {line}")
            members[member.name] = member
            here, closed = self.after(member.end, "}")
            if closed:
                value = {name: member.node.value for name, member in members.items()}
                return Node(pos, here, value, tuple(members.values()))

    def member(self, pos: int, depth: int) -> Member:
        name, key_end = self.string(pos)
        colon = self.space(key_end)
        if self.text[colon : colon + 1] != ":":
            raise self.unexpected(colon, "expected : after a key")
        return Member(name, pos, key_end, self.value(self.space(colon + 1), depth + 1))

    def after(self, end: int, close: str) -> tuple[int, bool]:
        """What follows an item that ends at ``end``: where to go on, and whether the list or object is closed there."""
        here = self.space(end)
        found = self.text[here : here + 1]
        if found == close:
            return here + 1, True
        if found != ",":
            raise self.unexpected(here, f"expected , or {close}")
        following = self.space(here + 1)
        if self.text[following : following + 1] == close:
            raise error_at(self.text, here, f"a comma before {close}")
        return following, False
