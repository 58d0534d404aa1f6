# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Strings, numbers, dates: one token in, one plain value out."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Match

from .errors import TomlError, error_at

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
