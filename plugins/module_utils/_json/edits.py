# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what is there and what is wanted to the smallest edits of the text."""

from __future__ import annotations

import re
from typing import Any, Iterator, NamedTuple

from .._document import same
from .reader import Member, Node
from .writer import Style, render, render_member

_BLANK_LINES = re.compile(r"(?:\r?\n[ \t]*)+(?=\r?\n)")
_INDENT = re.compile(r"[ \t]*")


class Edit(NamedTuple):
    """Put ``new`` in the place of the text from ``start`` to ``end``."""

    start: int
    end: int
    new: str


def rewritten(text: str, root: Node | None, wanted: dict[str, Any]) -> str:
    """The text with the fewest edits that make it mean ``wanted``; ``root`` is what it is now (None: nothing but space)."""
    style = _style(text, root)
    if root is None:
        return render(wanted, style, "") + style.eol
    for edit in sorted(_Differ(text, style).of_object(root, wanted, _indent_at(text, root.start)), reverse=True):
        text = text[: edit.start] + edit.new + text[edit.end :]
    return text


class _Differ:
    """Collects edits. An ``indent`` is that of the line on which a value begins, None inside of a line."""

    def __init__(self, text: str, style: Style) -> None:
        self.text = text
        self.style = style

    def of_value(self, member: Member, wanted: Any) -> Iterator[Edit]:
        node, indent = member.node, _indent_at(self.text, member.start)
        if same(node.value, wanted):
            return
        if isinstance(node.value, dict) and isinstance(wanted, dict):
            yield from self.of_object(node, wanted, indent)
            return
        old = self.text[node.start : node.end]
        style = (
            self.style._replace(tall_lists="\n" in old) if isinstance(node.value, list) and node.value else self.style
        )
        yield Edit(node.start, node.end, render(wanted, style, indent))

    def of_object(self, node: Node, wanted: dict[str, Any], indent: str | None) -> Iterator[Edit]:
        new = {name: value for name, value in wanted.items() if name not in node.value}
        kept = [number for number, member in enumerate(node.members) if member.name in wanted]
        if not node.members:
            if new:
                yield Edit(node.start, node.end, render(wanted, self.style, indent))
        elif kept:
            yield from self.with_neighbours(node, wanted, new, kept)
        elif new:
            separator, items = self.new_members(node, new)
            yield Edit(node.members[0].start, node.members[-1].end, separator.join(items))
        else:
            yield Edit(node.start + 1, node.end - 1, "")

    def with_neighbours(
        self, node: Node, wanted: dict[str, Any], new: dict[str, Any], kept: list[int]
    ) -> Iterator[Edit]:
        members, last = node.members, kept[-1]
        for number, member in enumerate(members[: last + 1]):
            if member.name in wanted:
                yield from self.of_value(member, wanted[member.name])
            else:
                yield Edit(member.start, members[number + 1].start, "")
        if new or last < len(members) - 1:
            separator, items = self.new_members(node, new)
            yield Edit(members[last].end, members[-1].end, "".join(separator + item for item in items))

    def new_members(self, node: Node, new: dict[str, Any]) -> tuple[str, list[str]]:
        """What stands between members, and new ones in text, in the manner of the members that there are."""
        model = node.members[-1]
        if len(node.members) > 1:
            separator = self.text[node.members[-2].end : model.start]
        else:
            lead = self.text[node.start + 1 : model.start]
            separator = "," + lead if "\n" in lead else self.style.comma
        separator = _BLANK_LINES.sub("", separator)
        style = self.style._replace(colon=_colon(self.text, model))
        found = _INDENT.match(separator, separator.rfind("\n") + 1)
        indent = found.group() if found and "\n" in separator else None
        return separator, [render_member(name, value, style, indent) for name, value in new.items()]


def _style(text: str, root: Node | None) -> Style:
    """The style of a document, from its first lines."""
    style = Style(eol="\r\n" if "\r\n" in text else "\n")
    if root is None or not root.members:
        return style
    first = root.members[0]
    indent, outer = _indent_at(text, first.start), _indent_at(text, root.start)
    if indent is not None and outer is not None and indent.startswith(outer):
        style = style._replace(step=indent[len(outer) :])
    colon = _colon(text, first)
    return style._replace(
        colon=colon, comma=", " if colon[-1].isspace() else ",", tall_lists=_has_tall_list(text, root)
    )


def _colon(text: str, member: Member) -> str:
    colon = text[member.key_end : member.node.start]
    return ": " if "\n" in colon else colon


def _has_tall_list(text: str, node: Node) -> bool:
    if isinstance(node.value, list):
        return "\n" in text[node.start : node.end]
    return any(_has_tall_list(text, member.node) for member in node.members)


def _indent_at(text: str, pos: int) -> str | None:
    """The indentation of what begins its line at ``pos``; None if something stands before it."""
    indent = text[text.rfind("\n", 0, pos) + 1 : pos]
    return indent if not indent.strip(" \t") else None
