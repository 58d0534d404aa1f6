# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The document: a JSON text that can be changed without losing anything of it."""

from __future__ import annotations

import codecs
from typing import Any, Mapping, Sequence

from .._document import position, same
from .edits import rewritten
from .errors import JsonError
from .reader import read
from .writer import plain_data

_BOM = "\ufeff"


class Document:
    """A JSON text and its meaning, which is an object; a text of nothing but space means an empty one.

    Every edit changes only the lines concerned. The result is read again, and is kept only if its meaning differs from the old one by
    exactly what was asked; otherwise ``JsonError`` is raised and the document stays as it was.
    """

    def __init__(self, text: str, bom: str) -> None:
        self._text = text
        self._bom = bom
        self._root = read(text)

    @classmethod
    def parse(cls, text: str) -> Document:
        """Read a text. Raises JsonError with line and column."""
        bom = _BOM if text.startswith(_BOM) else ""
        return cls(text[len(bom) :], bom)

    @classmethod
    def from_bytes(cls, data: bytes) -> Document:
        """Read a file's content, which is UTF-8 with or without a byte order mark. Raises as parse()."""
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise JsonError("the text is UTF-16 and not UTF-8", 1, 1)
        try:
            return cls.parse(data.decode("utf-8"))
        except UnicodeDecodeError as problem:
            before = data[: problem.start].decode("utf-8")
            raise JsonError("a byte that is not UTF-8", *position(before, len(before))) from problem

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return self.text.encode("utf-8")

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self._bom + self._text

    @property
    def tree(self) -> dict[str, Any]:
        """The meaning as plain data. Not to be changed."""
        return {} if self._root is None else self._root.value

    def get(self, path: Sequence[str], default: Any = None) -> Any:
        """The plain value at ``path``, or ``default``."""
        here: Any = self.tree
        for name in path:
            if not isinstance(here, dict) or name not in here:
                return default
            here = here[name]
        return here

    def set(self, path: Sequence[str], value: Any) -> bool:
        """Make ``path`` mean ``value``, a scalar, list or mapping; a mapping replaces the whole object there.

        Returns whether anything had to change. Raises JsonError if a value is in the way or JSON cannot hold the new one.
        """
        return self._become(_with(self.tree, _checked(path), plain_data(value)))

    def remove(self, path: Sequence[str]) -> bool:
        """Take out a key with its value. Returns whether there was one."""
        path = _checked(path)
        above = self.get(path[:-1])
        return isinstance(above, dict) and path[-1] in above and self._become(_without(self.tree, path))

    def merge(self, tree: Mapping[str, Any]) -> list[tuple[str, ...]]:
        """Set everything in ``tree`` and leave all else as it is; lists and scalars replace, mappings merge.

        Returns the paths that had to change: an object that was not there counts once, with its own path.
        """
        changed: list[tuple[str, ...]] = []
        self._become(_merged(self.tree, plain_data(tree), (), changed))
        return changed

    def _become(self, wanted: dict[str, Any]) -> bool:
        if same(self.tree, wanted):
            return False
        text = rewritten(self._text, self._root, wanted)
        root = read(text)
        if root is None or not same(root.value, wanted):
            raise JsonError("the document cannot be changed without changing more than was asked")
        self._text, self._root = text, root
        return True


def _checked(path: Sequence[str]) -> tuple[str, ...]:
    if not path:
        raise JsonError("a path needs at least one key")
    return tuple(path)


def _with(tree: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy of the tree with ``value`` at ``path``; what is not on the path is shared."""
    if not path:
        return value
    if not isinstance(tree, dict):
        raise JsonError(f"{path[0]} would have to be in a value that is not an object")
    return {**tree, path[0]: _with(tree.get(path[0], {}), path[1:], value)}


def _without(tree: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """A copy of the tree without ``path``, which is there."""
    if len(path) > 1:
        return {**tree, path[0]: _without(tree[path[0]], path[1:])}
    return {name: value for name, value in tree.items() if name != path[0]}


def _merged(
    tree: dict[str, Any], wanted: dict[str, Any], path: tuple[str, ...], changed: list[tuple[str, ...]]
) -> dict[str, Any]:
    result = dict(tree)
    for name, value in wanted.items():
        old = tree.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            result[name] = _merged(old, value, (*path, name), changed)
        elif name not in tree or not same(old, value):
            result[name] = value
            changed.append((*path, name))
    return result
