# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer: plain data in, TOML text out, in a given layout."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time
from typing import Any, Mapping, NamedTuple

from .errors import MAX_DEPTH, TOO_DEEP, TomlError

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_NOT_LITERAL = re.compile(r"['\x00-\x08\x0a-\x1f\x7f]")
_TO_ESCAPE = re.compile(r'["\\\x00-\x08\x0a-\x1f\x7f]')
_FOREIGN = re.compile("[\ud800-\udfff]")
_SHORT = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Layout(NamedTuple):
    """How new lines look."""

    eol: str = "\n"
    quote: str = '"'  # of strings
    key_quote: str = '"'  # of keys that need one
    equals: str = " = "
    indent: str = ""  # of the outermost new header, or of new keys
    step: str = ""  # more indentation for each level of headers
    body: str = ""  # more indentation for the keys below a header
    gap: bool = True  # an empty line before a header
    inner_gap: bool = True  # an empty line between a header's keys and the header of its sub-table


def dumps(tree: Mapping[str, Any]) -> str:
    """Write plain data as TOML 1.0, one flat ``[table]`` after the other, keys in the order given.

    Raises TomlError for what TOML cannot hold: null, other types, whole numbers beyond 64 bits, keys that are not strings.
    """
    data = plain_data(tree)
    if not isinstance(data, dict):
        raise TomlError("a TOML document is a mapping")
    leaves, tables = split(data)
    blocks = [[f"{render_key(name)} = {render_value(value)}" for name, value in leaves.items()]] if leaves else []
    for name, value in tables.items():
        blocks.extend(render_blocks(render_key(name), value, Layout(), ""))
    return "\n".join("".join(line + "\n" for line in block) for block in blocks)


def plain_data(value: Any, depth: int = 0) -> Any:
    """``value`` in the types that ``loads`` gives. Raises TomlError for anything that TOML cannot hold."""
    if depth > MAX_DEPTH:
        raise TomlError(TOO_DEEP)
    if isinstance(value, Mapping):
        return {_plain_name(name): plain_data(child, depth + 1) for name, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(child, depth + 1) for child in value]
    if isinstance(value, str):
        return _plain_string(value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if not _SMALLEST <= value <= _LARGEST:
            raise TomlError("a whole number does not fit into 64 bits")
        return int(value)
    return _plain_rest(value)


def _plain_rest(value: Any) -> Any:
    if isinstance(value, float):
        return float(value)
    if isinstance(value, (datetime, time)):
        offset = value.utcoffset()
        if (isinstance(value, time) and value.tzinfo is not None) or (
            offset is not None and offset.total_seconds() % 60
        ):
            raise TomlError("TOML has no such time zone")
        return value
    if isinstance(value, date):
        return value
    kind = "null" if value is None else type(value).__name__
    raise TomlError(f"TOML has no value of type {kind}")


def _plain_name(name: Any) -> str:
    if not isinstance(name, str):
        raise TomlError(f"the key {name!r} is not a string")
    return _plain_string(name)


def _plain_string(value: str) -> str:
    if _FOREIGN.search(value):
        raise TomlError("a string holds a byte that is not UTF-8")
    return str.__str__(value)


def is_table_array(value: Any) -> bool:
    """Whether a value can be written with ``[[...]]``."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def split(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Part a table into what is written as ``key = value`` and what gets headers."""
    tables = {name: value for name, value in data.items() if isinstance(value, dict) or is_table_array(value)}
    return {name: value for name, value in data.items() if name not in tables}, tables


def render_key(name: str, quote: str = '"') -> str:
    """One part of a key: bare if it can be."""
    return name if _BARE.fullmatch(name) else render_string(name, quote)


def render_string(value: str, quote: str = '"') -> str:
    """A string in the desired quotes; in double quotes where single ones cannot hold it."""
    if quote == "'" and not _NOT_LITERAL.search(value):
        return f"'{value}'"
    return '"' + _TO_ESCAPE.sub(lambda found: _SHORT.get(found.group()) or f"\\u{ord(found.group()):04X}", value) + '"'


def render_value(value: Any, quote: str = '"') -> str:
    """Any plain value on one line, tables in braces."""
    if isinstance(value, str):
        return render_string(value, quote)
    if isinstance(value, list):
        return "[" + ", ".join(render_value(item, quote) for item in value) + "]"
    if isinstance(value, dict):
        return render_inline([(render_key(name, quote), item) for name, item in value.items()], quote)
    return _render_plain(value)


def _render_plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, (date, time)):
        moment = value.isoformat()
        return moment[:-6] + "Z" if moment.endswith("+00:00") else moment
    return str(value)


def render_inline(pairs: list[tuple[str, Any]], quote: str) -> str:
    """Keys as written and plain values, in braces."""
    if not pairs:
        return "{}"
    return "{ " + ", ".join(f"{key} = {render_value(value, quote)}" for key, value in pairs) + " }"


def render_lines(data: dict[str, Any], layout: Layout, indent: str, prefix: str = "") -> list[str]:
    """``key = value`` lines, without their line ends; ``prefix`` is the written start of dotted keys."""
    return [
        f"{indent}{prefix}{render_key(name, layout.key_quote)}{layout.equals}{render_value(value, layout.quote)}"
        for name, value in data.items()
    ]


def render_dotted(data: dict[str, Any], layout: Layout, indent: str, prefix: str = "") -> list[str]:
    """The same, with sub-tables as dotted keys too."""
    lines: list[str] = []
    for name, value in data.items():
        if isinstance(value, dict) and value:
            lines.extend(render_dotted(value, layout, indent, f"{prefix}{render_key(name, layout.key_quote)}."))
        else:
            lines.extend(render_lines({name: value}, layout, indent, prefix))
    return lines


def render_blocks(key: str, value: Any, layout: Layout, indent: str, array: bool = False) -> list[list[str]]:
    """A table, or an array of tables, with all of its sub-tables: one list of lines for each header.

    ``key`` is the whole dotted name as it is to be written.
    """
    if isinstance(value, list):
        return [block for item in value for block in render_blocks(key, item, layout, indent, True)]
    leaves, tables = split(value)
    blocks: list[list[str]] = []
    inner = indent
    if leaves or array or not tables:
        header = f"[[{key}]]" if array else f"[{key}]"
        blocks.append([indent + header, *render_lines(leaves, layout, indent + layout.body)])
        inner = indent + layout.step
    for name, child in tables.items():
        blocks.extend(render_blocks(f"{key}.{render_key(name, layout.key_quote)}", child, layout, inner))
    return blocks
