# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random TOML documents, written in many styles, for the property tests."""

from __future__ import annotations

import datetime as dt
from typing import Any

from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml.writer import render_key, render_value

NAMES = st.sampled_from(["a", "b", "runtimes", "nvidia", "io.containerd.cri", "with space", "", "1", 'q"u', "é"])
PLAIN_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.floats(),
    PLAIN_TEXT,
    st.sampled_from(["runc", "it's", "a\nb", "\x7f", "\\"]),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from([dt.timezone.utc, dt.timezone(dt.timedelta(hours=-3, minutes=-30))])),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda child: st.one_of(st.lists(child, max_size=3), st.dictionaries(NAMES, child, max_size=3)),
    max_leaves=6,
)
TABLES = st.dictionaries(
    NAMES,
    st.recursive(
        st.one_of(
            SCALARS, st.lists(SCALARS, max_size=3), st.lists(st.dictionaries(NAMES, SCALARS, max_size=2), max_size=2)
        ),
        lambda child: st.dictionaries(NAMES, child, max_size=3),
        max_leaves=10,
    ),
    max_size=4,
)


class Author:
    """Writes plain data in random styles."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.quote = draw(st.sampled_from("\"'"))
        self.step = draw(st.sampled_from(["", "  ", "\t"]))
        self.dense = draw(st.booleans())
        self.count = 0
        self.sections: list[list[str]] = []

    def draw_bool(self) -> bool:
        """A random boolean."""
        return bool(self.draw(st.booleans()))

    def note(self) -> str:
        """A unique comment."""
        self.count += 1
        return f"# note {self.count}"

    def value(self, value: Any) -> str:
        """A value; arrays on one line or on many."""
        if isinstance(value, list) and value and self.draw_bool():
            lines = [f"    {render_value(item, self.quote)}" for item in value]
            end = ",\n" if self.draw_bool() else "\n"
            note = "  " + self.note() if self.draw_bool() else ""
            return "[" + note + "\n" + ",\n".join(lines) + end + "]"
        return render_value(value, self.quote)

    def key(self, names: list[str]) -> str:
        """A dotted key."""
        return ".".join(render_key(name, self.quote) for name in names)

    def pairs(self, names: list[str], value: Any, indent: str) -> list[str]:
        """Lines for a pair: with dotted keys or braces if the value is a table."""
        if isinstance(value, dict) and value and self.draw_bool():
            return [line for name, child in value.items() for line in self.pairs([*names, name], child, indent)]
        line = f"{indent}{self.key(names)} = {self.value(value)}"
        return [line + ("  " + self.note() if self.draw_bool() else "")]

    def section(self, path: list[str], table: dict[str, Any], depth: int, array: bool = False) -> None:
        """One header with its keys, then its sub-tables."""
        indent = self.step * depth
        lines: list[str] = []
        below: list[tuple[str, Any]] = []
        for name, value in table.items():
            tables = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
            if (isinstance(value, dict) or tables) and self.draw(st.integers(0, 3)):
                below.append((name, value))
                continue
            if self.draw(st.integers(0, 4)) == 0:
                lines.append(indent + self.note())
            lines.extend(self.pairs([name], value, indent + self.step if path else ""))
        if path and (lines or array or not below or self.draw_bool()):
            lines.insert(0, indent + (f"[[{self.key(path)}]]" if array else f"[{self.key(path)}]"))
        if lines:
            self.sections.append(lines)
        for name, value in below:
            for item in value if isinstance(value, list) else [value]:
                self.section([*path, name], item, depth + 1 if path else 0, isinstance(value, list))


@st.composite
def documents(draw: Any, tables: st.SearchStrategy[dict[str, Any]] = TABLES) -> tuple[str, dict[str, Any]]:
    """A text and its data, which is one of the tables."""
    tree = draw(tables)
    author = Author(draw)
    author.section([], tree, 0)
    parts = []
    for lines in author.sections:
        head = [author.note(), ""] if author.draw(st.integers(0, 5)) == 0 else []
        parts.append("\n".join([*head, *lines]) + "\n")
    text = ("" if author.dense else "\n").join(parts)
    if draw(st.booleans()):
        text = text[:-1]
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text, tree
