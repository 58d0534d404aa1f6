# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader: text in, statements with their positions and the meaning out. TOML 1.0 and 1.1."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Callable, Match, cast

from .errors import MAX_DEPTH, TOO_DEEP, TomlError, error_at
from .nodes import INLINE, Builder, Header, Item, Pair, Syntax, Table, Value, plain

VERSIONS = ("1.0", "1.1")
#: The byte order mark with which a file may begin, once.
BOM = "\ufeff"
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINE_END = re.compile(r"[ \t]*(?:#[^\x00-\x08\x0a-\x1f\x7f]*)?(?:\r?\n|\Z)")
_GAP = re.compile(r"(?:[ \t\n]|\r\n|#[^\x00-\x08\x0a-\x1f\x7f]*)*")
_FOREIGN = re.compile("[\ud800-\udfff]")

_DIGITS = r"[0-9](?:_?[0-9])*"
_INTEGER = r"[+-]?(?:0|[1-9](?:_?[0-9])*)(?![0-9_])"
_NUMBER = re.compile(
    rf"(?P<based>0x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*|0o[0-7](?:_?[0-7])*|0b[01](?:_?[01])*)"
    rf"|(?P<float>{_INTEGER}(?:\.{_DIGITS}(?:[eE][+-]?{_DIGITS})?|[eE][+-]?{_DIGITS})|[+-]?(?:inf|nan))"
    rf"|(?P<integer>{_INTEGER})"
)
_TIME = r"(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:\.(?P<fraction>[0-9]+))?)?"
_MOMENT = re.compile(
    rf"(?P<year>[0-9]{{4}})-(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}})(?:[Tt ]{_TIME}(?P<zone>[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?"
)
_CLOCK = re.compile(_TIME)
_WORDS = (("true", True), ("false", False))

_BASIC = re.compile(r'"((?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\x00-\x08\x0a-\x1f\x7f]*)'")
_LONG_BASIC = re.compile(
    r'"""(?:\r?\n)?((?:[^"\\\x00-\x08\x0b-\x1f\x7f]|\r\n|\\(?:[^\r]|\r\n)|"{1,2}(?!"))*)"""("{0,2})'
)
_LONG_LITERAL = re.compile(r"'''(?:\r?\n)?((?:[^'\x00-\x08\x0b-\x1f\x7f]|\r\n|'{1,2}(?!'))*)'''('{0,2})")
_ESCAPE = re.compile(
    r"\\(?:(?P<fold>[ \t]*\r?\n[ \t\r\n]*)|u(?P<u>[0-9A-Fa-f]{4})|U(?P<U>[0-9A-Fa-f]{8})|x(?P<x>[0-9A-Fa-f]{2})|(?P<c>.))",
    re.DOTALL,
)
_SHORT = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}


def loads(text: str, version: str = "1.0") -> dict[str, Any]:
    """Read a TOML text into plain data: dict, list, str, int, float, bool, and datetime, date, time of ``datetime``.

    ``version`` is "1.0" or "1.1". Raises TomlError with line and column.
    """
    tree: dict[str, Any] = plain(read(text[1:] if text.startswith(BOM) else text, version).root)
    return tree


def read(text: str, version: str = "1.0", foreign_comments: bool = False) -> Syntax:
    """Read a text with positions. ``foreign_comments`` lets comments hold bytes that are not UTF-8 (as surrogates)."""
    if version not in VERSIONS:
        raise TomlError(f"there is no TOML version {version!r} here, only 1.0 and 1.1")
    foreign = _FOREIGN.search(text)
    if foreign is not None and not foreign_comments:
        raise error_at(text, foreign.start(), "a byte that is not UTF-8")
    try:
        return _Reader(text, version != "1.0", foreign is not None).read()
    except RecursionError as problem:
        raise TomlError(TOO_DEEP) from problem


def read_key(text: str, pos: int, newer: bool = False) -> tuple[list[tuple[str, int, int]], int]:
    """Read the dotted key at ``pos``: (name, start, end) of each part as written, and the offset after the last one."""
    parts: list[tuple[str, int, int]] = []
    while True:
        bare = _BARE.match(text, pos)
        if bare is not None:
            name, end = bare.group(), bare.end()
        elif text[pos : pos + 1] in ("'", '"'):
            name, end = read_string(text, pos, newer, long_allowed=False)
        else:
            raise error_at(text, pos, "expected a key")
        parts.append((name, pos, end))
        after = _space(text, end)
        if text[after : after + 1] != ".":
            return parts, end
        pos = _space(text, after + 1)


def _space(text: str, pos: int) -> int:
    """The offset after spaces and tabs."""
    return cast("re.Match[str]", _SPACE.match(text, pos)).end()


def _gap(text: str, pos: int) -> int:
    """The offset after spaces, line ends and comments."""
    return cast("re.Match[str]", _GAP.match(text, pos)).end()


class _Reader:
    def __init__(self, text: str, newer: bool, foreign: bool) -> None:
        self.text = text
        self.newer = newer
        self.foreign = foreign
        self.builder = Builder(text)
        self.depth = 0

    def read(self) -> Syntax:
        text, size, builder = self.text, len(self.text), self.builder
        statements = builder.statements
        pos = 0
        while pos < size:
            start = pos
            pos = _space(text, pos)
            first = text[pos : pos + 1]
            if first == "[":
                header = self._header(start, pos)
                header.end = pos = self._line_end(header.end)
                builder.add_header(header)
                self.depth = len(header.names)
                statements.append(header)
            elif first in ("", "#", "\n", "\r"):
                pos = self._line_end(pos)
            else:
                pair = self._pair(start, pos, builder.section)
                pair.end = pos = self._line_end(pair.end)
                builder.add_pair(pair)
                statements.append(pair)
        return Syntax(text, statements, builder.root)

    def _line_end(self, pos: int) -> int:
        found = _LINE_END.match(self.text, pos)
        if found is None:
            raise error_at(self.text, _space(self.text, pos), "expected the end of the line")
        return found.end()

    def _key(self, pos: int) -> tuple[tuple[str, ...], int]:
        bare = _BARE.match(self.text, pos)
        if bare is not None and self.text[bare.end() : bare.end() + 2] in (" =", "= "):  # by far the most lines
            return (bare.group(),), bare.end()
        parts, end = read_key(self.text, pos, self.newer)
        if self.foreign and _FOREIGN.search(self.text, pos, end):
            raise error_at(self.text, pos, "a byte that is not UTF-8 in a key")
        return tuple(part[0] for part in parts), end

    def _header(self, start: int, pos: int) -> Header:
        text = self.text
        is_array = text.startswith("[[", pos)
        key_start = _space(text, pos + (2 if is_array else 1))
        names, key_end = self._key(key_start)
        if len(names) > MAX_DEPTH:
            raise error_at(text, key_start, TOO_DEEP)
        header = Header(start, key_start, key_end, names, is_array)
        close = "]]" if is_array else "]"
        header.end = _space(text, key_end)
        if not text.startswith(close, header.end):
            raise error_at(text, header.end, f"expected {close} after the name of a table")
        header.end += len(close)
        return header

    def _pair(self, start: int, pos: int, section: Table) -> Pair:
        names, key_end = self._key(pos)
        equals = _space(self.text, key_end)
        if self.text[equals : equals + 1] != "=":
            raise error_at(self.text, equals, "expected = after a key")
        self.depth += len(names)
        if self.depth > MAX_DEPTH:
            raise error_at(self.text, pos, TOO_DEEP)
        value = self._value(_space(self.text, equals + 1))
        self.depth -= len(names)
        pair = Pair(start, pos, key_end, names, value, section)
        value.pair = pair
        return pair

    def _value(self, pos: int) -> Item:
        first = self.text[pos : pos + 1]
        if first in ('"', "'") and first:
            data, end = read_string(self.text, pos, self.newer)
            if self.foreign and _FOREIGN.search(self.text, pos, end):
                raise error_at(self.text, pos, "a byte that is not UTF-8 in a string")
            return Value(pos, end, data)
        if first == "[":
            return self._nested(pos, self._array)
        if first == "{":
            return self._nested(pos, self._inline_table)
        scalar, end = read_scalar(self.text, pos, self.newer)
        return Value(pos, end, scalar)

    def _nested(self, pos: int, reader: Callable[[int], Item]) -> Item:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise error_at(self.text, pos, TOO_DEEP)
        item = reader(pos)
        self.depth -= 1
        return item

    def _array(self, start: int) -> Value:
        text = self.text
        items: list[Item] = []
        array = Value(start, start, None, items)
        pos = _gap(text, start + 1)
        while text[pos : pos + 1] != "]":
            item = self._value(pos)
            items.append(item)
            pos = _gap(text, item.end)
            if text[pos : pos + 1] == ",":
                array.commas.append(pos)
                pos = _gap(text, pos + 1)
            elif text[pos : pos + 1] == "]":
                array.commas.append(-1)
            else:
                raise error_at(text, pos, "expected , or ] in an array")
        array.end = pos + 1
        return array

    def _inline_table(self, start: int) -> Table:
        text = self.text
        between = _gap if self.newer else _space
        table = Table(INLINE)
        table.start = start
        pos = between(text, start + 1)
        while text[pos : pos + 1] != "}":
            pair = self._pair(pos, pos, table)
            self.builder.add_inline(table, pair)
            pos = between(text, pair.end)
            if text[pos : pos + 1] == ",":
                table.commas.append(pos)
                pos = between(text, pos + 1)
                if text[pos : pos + 1] == "}" and not self.newer:
                    raise error_at(text, pos, "a comma before } needs TOML 1.1")
            elif text[pos : pos + 1] == "}":
                table.commas.append(-1)
            else:
                raise error_at(text, pos, "expected , or } in an inline table")
        table.end = pos + 1
        return table


# -- one token: a string, a number, a date or a time


def read_scalar(text: str, pos: int, newer: bool) -> tuple[Any, int]:
    """Read the bool, number, date or time at ``pos``: its value and the offset after it. ``newer`` allows TOML 1.1."""
    for word, value in _WORDS:
        if text.startswith(word, pos):
            return value, pos + len(word)
    found = _MOMENT.match(text, pos) or _CLOCK.match(text, pos)
    if found is not None:
        return _read_moment(text, found, newer), found.end()
    found = _NUMBER.match(text, pos)
    if found is None:
        raise error_at(text, pos, "expected a value")
    try:
        return _read_number(found), found.end()
    except ValueError as problem:
        raise error_at(text, pos, "number too long to read") from problem


def _read_number(found: Match[str]) -> Any:
    token = found.group().replace("_", "")
    if found.lastgroup == "float":
        return float(token)
    return int(token, 0 if found.lastgroup == "based" else 10)


def _read_moment(text: str, found: Match[str], newer: bool) -> Any:
    part = found.groupdict()
    if part["hour"] is not None and part["second"] is None and not newer:
        raise error_at(text, found.start(), "a time without seconds needs TOML 1.1")
    try:
        day = date(int(part["year"]), int(part["month"]), int(part["day"])) if part.get("year") else None
    except ValueError as problem:
        raise error_at(text, found.start(), "there is no such day") from problem
    if part["hour"] is None:
        return day
    # digits beyond microseconds are cut off, as the specification allows
    micro = int((part["fraction"] or "")[:6].ljust(6, "0"))
    clock = time(int(part["hour"]), int(part["minute"]), int(part["second"] or 0), micro)
    if day is None:
        return clock
    return datetime.combine(day, clock, _read_zone(part["zone"]))


def _read_zone(zone: Any) -> Any:
    if zone is None:
        return None
    if zone in "Zz":
        return timezone.utc
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return timezone(-offset if zone[0] == "-" else offset)


def read_string(text: str, pos: int, newer: bool, long_allowed: bool = True) -> tuple[str, int]:
    """Read the string at ``pos`` (a quote): its value and the offset after it."""
    quote = text[pos]
    if text.startswith(quote * 3, pos):
        if not long_allowed:
            raise error_at(text, pos, "a key cannot be a multi-line string")
        return _read_long(text, pos, newer)
    found = (_BASIC if quote == '"' else _LITERAL).match(text, pos)
    if found is None:
        raise error_at(text, pos, "string without an end on its line, or with a control character")
    body = found.group(1)
    if quote == '"' and "\\" in body:
        body = _unescape(text, found.start(1), body, newer, False)
    return body, found.end()


def _read_long(text: str, pos: int, newer: bool) -> tuple[str, int]:
    basic = text[pos] == '"'
    found = (_LONG_BASIC if basic else _LONG_LITERAL).match(text, pos)
    if found is None:
        raise error_at(text, pos, "multi-line string without an end, or with a control character")
    body = found.group(1)
    body = _unescape(text, found.start(1), body, newer, True) if basic and "\\" in body else body.replace("\r\n", "\n")
    return body + found.group(2), found.end()


def _unescape(text: str, offset: int, body: str, newer: bool, folding: bool) -> str:
    parts = []
    last = 0
    for found in _ESCAPE.finditer(body):
        parts.append(body[last : found.start()].replace("\r\n", "\n"))
        try:
            parts.append(_one_escape(found, newer, folding))
        except TomlError as problem:
            raise error_at(text, offset + found.start(), problem.message) from None
        last = found.end()
    parts.append(body[last:].replace("\r\n", "\n"))
    return "".join(parts)


def _one_escape(found: Match[str], newer: bool, folding: bool) -> str:
    if found.group("fold") is not None and folding:
        return ""
    code = found.group("u") or found.group("U") or (found.group("x") if newer else None)
    if code is not None:
        number = int(code, 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise TomlError("escape of something that is not a Unicode character")
        return chr(number)
    letter = found.group("c")
    if letter == "e" and newer:
        return "\x1b"
    if letter in _SHORT:
        return _SHORT[letter]
    raise TomlError("unknown escape in a string")
