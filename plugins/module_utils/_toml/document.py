# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The document: a TOML text that can be changed without losing anything of it."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence, Set, cast

from .._document import is_same
from .changes import Change, additions, differences, make
from .edits import ConflictError, Edits
from .errors import TomlError
from .nodes import DOTTED, HEADER, IMPLICIT, INLINE, Path, Syntax, Table, checked_path, dotted_path, lookup, plain
from .reader import BOM, read
from .writer import plain_data

Paths = Set[Path]

_OWN = (HEADER, INLINE)  # kinds of tables that can be there with nothing in them


class Document:
    """A TOML text and its meaning.

    Every edit changes only the lines concerned. The result is read again, and is kept only if its meaning differs from the old one by
    exactly what was requested; otherwise ``TomlError`` is raised and the document stays as it was.
    """

    def __init__(self, syntax: Syntax, version: str, bom: str) -> None:
        self._syntax = syntax
        self._version = version
        self._bom = bom
        self._tree: dict[str, Any] = plain(syntax.root)
        self._made: set[Path] = set()  # tables that an edit had to write for a key further down

    @classmethod
    def parse(cls, text: str, version: str = "1.0") -> Document:
        """Read a text as TOML "1.0" or "1.1". Raises TomlError with line and column."""
        bom = BOM if text.startswith(BOM) else ""
        return cls(read(text[len(bom) :], version, foreign_comments=True), version, bom)

    @classmethod
    def from_bytes(cls, data: bytes, version: str = "1.0") -> Document:
        """Read a file's content. Bytes that are not UTF-8 are kept in comments and refused everywhere else."""
        return cls.parse(data.decode("utf-8", "surrogateescape"), version)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return self.text.encode("utf-8", "surrogateescape")

    @property
    def text(self) -> str:
        """The text as it is now; bytes that are not UTF-8 stand in it as lone surrogates."""
        return self._bom + self._syntax.text

    @property
    def tree(self) -> dict[str, Any]:
        """The meaning as plain data. Not to be changed."""
        return self._tree

    def get(self, path: Sequence[Any], default: Any = None) -> Any:
        """The plain value at ``path`` (names; whole numbers step into arrays), or ``default``."""
        node = lookup(self._syntax.root, tuple(path))
        return default if node is None else plain(node)

    def set(self, path: Sequence[Any], value: Any) -> bool:
        """Make ``path`` mean ``value``, a scalar, list or mapping; a mapping replaces the whole table there.

        Returns whether anything had to change. Raises TomlError if a value is in the way or TOML cannot hold the new one.
        """
        path, value = checked_path(path), plain_data(value)
        old = lookup(self._syntax.root, path)
        self._made.discard(path)
        if old is not None and is_same(plain(old), value):
            return False
        rewritten = [Change("insert", path[:-1], {path[-1]: value})]
        changes = rewritten
        if old is not None:
            changes = differences(old, value, path)
            rewritten = [Change("remove", path), *rewritten]
        self._settle(
            _with(self._tree, path, value), [changes, _coarse(changes), rewritten], [path], f"set {dotted_path(path)}"
        )
        return True

    @property
    def made(self) -> list[Path]:
        """The tables above what was set that had to be written for it. A later run may pass them to ``remove`` as ``prune``."""
        return sorted(self._made, key=repr)

    def remove(self, path: Sequence[Any], prune: bool | Iterable[Sequence[Any]] = False) -> bool:
        """Remove a key, or a table with all of its sub-tables wherever they stand. Returns whether there was one.

        Comments inside a table go with it; those above it stay. Tables above that exist only through it go as well, and so do those
        that this object made for it. ``prune`` names tables that an earlier run had to write (its ``made``): they go too if they are
        left empty, or lose their header if only sub-tables of others are left. ``prune=True`` means all tables above.
        """
        path = checked_path(path)
        if lookup(self._syntax.root, path) is None:
            return False
        removable = self._made | {path[:size] for size in range(1, len(path))} if prune is True else self._made
        if not isinstance(prune, bool):
            removable = removable | {checked_path(table) for table in prune}
        path = self._topmost(path, removable)
        changes = [Change("remove", path)]
        if self._only_for(path, removable):
            changes.append(Change("unhead", path[:-1]))
        self._settle(_without(self._tree, path), [changes], [], f"remove {dotted_path(path)}")
        self._made = {made for made in self._made if isinstance(lookup(self._syntax.root, made), Table)}
        return True

    def merge(self, tree: Mapping[str, Any]) -> list[tuple[str, ...]]:
        """Set everything in ``tree`` and leave all else as it is; lists and scalars replace, mappings merge.

        Returns the paths that had to change: a table that was not there counts once, with its own path.
        """
        desired = plain_data(tree)
        changes = additions(self._syntax.root, desired, (), deep=True)
        paths = list(_changed(self._tree, desired, ()))
        if changes:
            self._settle(_merged(self._tree, desired), [changes, _coarse(changes)], list(paths), "merge")
        return paths

    def _topmost(self, path: Path, removable: Paths) -> Path:
        """The highest table that has nothing but ``path`` and would not, or should not, be there without it."""
        while len(path) > 1:
            above = lookup(self._syntax.root, path[:-1])
            if not isinstance(above, Table) or len(above.children) > 1:
                break
            made = above.kind in _OWN and isinstance(path[-2], str) and path[:-1] in removable
            if above.kind not in (IMPLICIT, DOTTED) and not made:
                break
            path = path[:-1]
        return path

    def _only_for(self, path: Path, removable: Paths) -> bool:
        """Whether the table above has a header that was made for the key at ``path`` and is of no more use."""
        above, node = lookup(self._syntax.root, path[:-1]), lookup(self._syntax.root, path)
        if path[:-1] not in removable or not isinstance(above, Table) or above.kind != HEADER:
            return False
        pair = getattr(node, "pair", None)
        made_for_it = pair is not None and above.pairs == [pair]
        return made_for_it and above.header is not None and not above.header.is_array

    def _settle(self, expected: dict[str, Any], attempts: list[list[Change]], paths: list[Path], what: str) -> None:
        """Try one way after the other, each in one go and then step by step, until the text means ``expected``."""
        problem: Exception = TomlError("")
        for changes in attempts:
            for way in (_at_once, _step_by_step):
                try:
                    syntax = way(self._syntax, changes, self._read)
                except (TomlError, ConflictError) as error:
                    problem = error
                    continue
                tree = plain(syntax.root)
                if is_same(tree, expected):
                    self._note_made(syntax, paths)
                    self._syntax, self._tree = syntax, tree
                    return
                problem = TomlError("more would change than was requested")
        raise TomlError(f"cannot {what}: {getattr(problem, 'message', 'the edits overlap')}") from problem

    def _read(self, text: str) -> Syntax:
        return read(text, self._version, foreign_comments=True)

    def _note_made(self, syntax: Syntax, paths: list[Path]) -> None:
        for path in paths:
            for size in range(1, len(path)):
                old, new = lookup(self._syntax.root, path[:size]), lookup(syntax.root, path[:size])
                had_own = isinstance(old, Table) and old.kind in _OWN
                if isinstance(new, Table) and new.kind in _OWN and not had_own:
                    self._made.add(path[:size])


def _at_once(syntax: Syntax, changes: list[Change], reread: Callable[[str], Syntax]) -> Syntax:
    edits = Edits(syntax)
    for change in changes:
        make(edits, change)
    return reread(edits.apply())


def _step_by_step(syntax: Syntax, changes: list[Change], reread: Callable[[str], Syntax]) -> Syntax:
    for change in changes:
        syntax = _at_once(syntax, [change], reread)
    return syntax


def _coarse(changes: list[Change]) -> list[Change]:
    """The same with arrays written as a whole."""
    return [change._replace(action="replace") if change.action == "align" else change for change in changes]


def _with(tree: Any, path: Path, value: Any) -> Any:
    """A copy of the tree with ``value`` at ``path``; what is not on the path is shared."""
    if not path:
        return value
    step = path[0]
    if isinstance(tree, dict) and isinstance(step, str):
        return {**tree, step: _with(tree.get(step, {}), path[1:], value)}
    if isinstance(tree, list) and isinstance(step, int) and 0 <= step < len(tree):
        return [*tree[:step], _with(tree[step], path[1:], value), *tree[step + 1 :]]
    raise TomlError(f"{dotted_path(path)} goes through a value that is not a table, or past the end of an array")


def _without(tree: Any, path: Path) -> Any:
    """A copy of the tree without ``path``, which is there."""
    step, rest = path[0], path[1:]
    if isinstance(tree, dict):
        if rest:
            return {**tree, step: _without(tree[str(step)], rest)}
        return {name: value for name, value in tree.items() if name != step}
    index = cast(int, step)
    return [*tree[:index], *([_without(tree[index], rest)] if rest else []), *tree[index + 1 :]]


def _merged(tree: dict[str, Any], desired: dict[str, Any]) -> dict[str, Any]:
    result = dict(tree)
    for name, value in desired.items():
        old = tree.get(name)
        result[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _changed(tree: dict[str, Any], desired: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in desired.items():
        old = tree.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            yield from _changed(old, value, (*path, name))
        elif name not in tree or not is_same(old, value):
            yield (*path, name)
