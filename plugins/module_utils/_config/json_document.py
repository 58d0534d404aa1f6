# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON files, edited with the standard library: the order of keys, the indentation and the line endings stay."""

from __future__ import annotations

import copy
import json
import re
import typing as t

from .._document import DocumentError, is_same, position
from .tree import merge

_FIRST_MEMBER = re.compile(r"\s*\{\s*\n([ \t]*)\"")
_LIST_ON_ONE_LINE = re.compile(r"\[[ \t]*[^\s\[\]{}]")


class JsonError(DocumentError):
    """What is wrong with a document or a value."""


class Document:
    """A JSON text and its meaning, which is an object; a text of nothing but space means an empty one.

    After each edit the text is written and read again. Unless it means what the edit requires, JsonError is raised and the document
    stays as it was.
    """

    def __init__(self, text: str) -> None:
        self.tree = loads(text)
        self.text = text
        self._layout = _Layout(text)

    @classmethod
    def from_bytes(cls, data: bytes) -> Document:
        """Read a file's content. Raises JsonError, with line and column where they are known."""
        try:
            return cls(data.decode("utf-8"))
        except UnicodeDecodeError as exc:
            before = data[: exc.start].decode("utf-8")
            raise JsonError("a byte that is not UTF-8", *position(before, len(before))) from exc

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        return self.text.encode("utf-8")

    def set(self, path: t.Sequence[str], value: t.Any) -> bool:
        """Make *path* mean *value*; a mapping replaces the whole object there. Returns whether anything changed."""
        tree = copy.deepcopy(self.tree)
        parent = tree
        for key in path[:-1]:
            parent = parent.setdefault(key, {})
            if not isinstance(parent, dict):
                raise JsonError(f"{key} is not an object")
        parent[path[-1]] = value
        return self.become(tree)

    def remove(self, path: t.Sequence[str]) -> bool:
        """Remove the key at *path*. Returns whether it was there."""
        tree = copy.deepcopy(self.tree)
        parent: t.Any = tree
        for key in path[:-1]:
            parent = parent.get(key) if isinstance(parent, dict) else None
        if not isinstance(parent, dict) or path[-1] not in parent:
            return False
        del parent[path[-1]]
        return self.become(tree)

    def merge(self, tree: t.Mapping[str, t.Any]) -> bool:
        """Set everything in *tree*: mappings merge, lists and scalars replace. Returns whether anything changed."""
        desired = copy.deepcopy(self.tree)
        merge(desired, tree)
        return self.become(desired)

    def become(self, tree: dict[str, t.Any]) -> bool:
        """Make the document mean *tree*. Returns whether anything changed."""
        if is_same(self.tree, tree):
            return False
        text = self._layout.render(tree)
        written = loads(text)
        if not is_same(written, tree):
            raise JsonError("the document cannot hold a value without changing it")
        self.text, self.tree = text, written
        return True


class _Layout:
    """How a text is laid out, as far as it is kept: indentation, lists on one line, escapes, line endings and the end of the file."""

    def __init__(self, text: str) -> None:
        content = text.strip()
        first_member = _FIRST_MEMBER.match(text)
        on_one_line = content not in ("", "{}") and "\n" not in content
        self.indent = first_member.group(1) if first_member else None if on_one_line else "    "
        packed = on_one_line and '": ' not in content
        self.comma, self.colon = (",", ":") if packed else (", ", ": ")
        self.short_lists = "[" not in text or bool(_LIST_ON_ONE_LINE.search(text))
        self.escaped = "\\u" in text
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.end = text[len(text.rstrip()) :] if content else self.newline

    def render(self, tree: t.Any) -> str:
        """Return *tree* as JSON. Raises JsonError for a value that JSON does not have."""
        try:
            text = self._value(tree, "").replace("\n", self.newline) + self.end
            text.encode("utf-8")
        except (TypeError, ValueError, RecursionError) as exc:
            raise JsonError(f"a value cannot be written as JSON ({exc})") from exc
        return text

    def _value(self, value: t.Any, lead: str) -> str:
        if isinstance(value, dict) and value:
            inner = lead + (self.indent or "")
            items = [self._scalar(key) + self.colon + self._value(child, inner) for key, child in value.items()]
            return self._enclosed(items, "{}", lead)
        nested = isinstance(value, list) and any(isinstance(child, (dict, list)) for child in value)
        if isinstance(value, list) and value and (nested or not self.short_lists):
            return self._enclosed([self._value(child, lead + (self.indent or "")) for child in value], "[]", lead)
        return self._scalar(value)

    def _scalar(self, value: t.Any) -> str:
        return json.dumps(value, ensure_ascii=self.escaped, allow_nan=False, separators=(self.comma, self.colon))

    def _enclosed(self, items: list[str], brackets: str, lead: str) -> str:
        if self.indent is None:
            return brackets[0] + self.comma.join(items) + brackets[1]
        line = "\n" + lead
        return brackets[0] + ",".join(line + self.indent + item for item in items) + line + brackets[1]


def loads(text: str) -> dict[str, t.Any]:
    """Return the object that *text* means, an empty one for nothing but space. Raises JsonError."""
    if not text.strip():
        return {}
    try:
        tree = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
    except json.JSONDecodeError as exc:
        raise JsonError(exc.msg, exc.lineno, exc.colno) from exc
    except JsonError:
        raise
    except ValueError as exc:  # a number with more digits than Python reads
        raise JsonError(str(exc)) from exc
    except RecursionError as exc:
        raise JsonError("the document is nested too deeply") from exc
    if not isinstance(tree, dict):
        raise JsonError("the document has to be an object, in braces", 1, 1)
    return tree


def dumps(tree: t.Mapping[str, t.Any]) -> str:
    """Return *tree* as a new document. Raises JsonError for a value that JSON does not have."""
    try:
        return json.dumps(tree, indent=4, allow_nan=False) + "\n"
    except (TypeError, ValueError) as exc:
        raise JsonError(f"a value cannot be written as JSON ({exc})") from exc


def _unique(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    tree = dict(pairs)
    if len(tree) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise JsonError(f"the key {twice!r} is in one object twice")
    return tree


def _refused(name: str) -> t.NoReturn:
    raise JsonError(f"{name} is not a value of JSON")
