# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer: plain data in, JSON text out, in a given style."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Mapping, NamedTuple

from .errors import JsonError
from .reader import MAX_DEPTH, TOO_DEEP


class Style(NamedTuple):
    """How new text looks."""

    eol: str = "\n"
    step: str = "    "  # more indentation for each level
    colon: str = ": "
    comma: str = ", "  # between what stands on one line
    tall_lists: bool = False  # whether a list of scalars has a line for each


def dumps(tree: Mapping[str, Any]) -> str:
    """Write plain data, keys in the order given. Raises JsonError for what JSON cannot hold."""
    data = plain_data(tree)
    if not isinstance(data, dict):
        raise JsonError("a document is a mapping")
    return render(data, Style(), "") + "\n"


def plain_data(value: Any, depth: int = 0) -> Any:
    """``value`` in the types that ``loads`` gives. Raises JsonError for anything that JSON cannot hold."""
    if depth > MAX_DEPTH:
        raise JsonError(TOO_DEEP)
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            raise JsonError("a key has to be a string")
        return {str(name): plain_data(child, depth + 1) for name, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(child, depth + 1) for child in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return int(value) if isinstance(value, int) else float(value)
    raise JsonError(f"JSON has no value for {value!r}")


def render(value: Any, style: Style, indent: str | None) -> str:
    """Write a value whose first line is indented by ``indent``; None: all on one line."""
    if isinstance(value, dict):
        inner = None if indent is None else indent + style.step
        items = [render_member(name, child, style, inner) for name, child in value.items()]
        return _enclosed(items, "{}", style, indent)
    if isinstance(value, list):
        flat = not style.tall_lists and not any(isinstance(child, (dict, list)) for child in value)
        indent = None if flat else indent
        inner = None if indent is None else indent + style.step
        return _enclosed([render(child, style, inner) for child in value], "[]", style, indent)
    if isinstance(value, str):
        return render_string(value)
    return json.dumps(value)


def render_member(name: str, value: Any, style: Style, indent: str | None) -> str:
    """Write a key and its value, with ``indent`` as in render()."""
    return render_string(name) + style.colon + render(value, style, indent)


def render_string(value: str) -> str:
    """Write a string; characters stand for themselves, but for those that no file can hold (lone surrogates)."""
    plain = json.dumps(value, ensure_ascii=False)
    return plain if plain.isprintable() else json.dumps(value)


def _enclosed(items: list[str], brackets: str, style: Style, indent: str | None) -> str:
    if not items or indent is None:
        return brackets[0] + style.comma.join(items) + brackets[1]
    line = style.eol + indent
    return brackets[0] + ",".join(line + style.step + item for item in items) + line + brackets[1]
