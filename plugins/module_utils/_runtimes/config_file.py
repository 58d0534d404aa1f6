# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration file as read, and the fewest edits that make it mean something else.  Private to this collection."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _files
from .._document import Document, DocumentError, Format, same
from . import owners
from .errors import ConfigError
from .trees import MISSING, Tree, edits, get, put


@dataclass
class ConfigFile:
    """The bytes of a file (None: there is none), and their meaning; the document is edited, `tree` stays."""

    path: str
    data: bytes | None
    document: Document
    tree: Tree
    syntax: Format

    @property
    def sha(self) -> str | None:
        """Hexadecimal SHA-256 of the bytes, None for no file."""
        return _files.sha256(self.data)


def read(path: str, syntax: Format) -> ConfigFile:
    """Read *path*; raises FilesError, or ConfigError with line and column if it cannot be parsed."""
    data = _files.read_bytes(path)
    document = parse(path, data or b"", syntax)
    return ConfigFile(path, data, document, document.tree, syntax)


def parse(path: str, data: bytes, syntax: Format) -> Document:
    """Parse *data*, the content of *path*; raises ConfigError."""
    try:
        return syntax.from_bytes(data)
    except DocumentError as exc:
        owner = owners.owner_of_broken(path, as_text(data))
        if owner:
            raise ConfigError(owner.message) from exc
        place = path if exc.line is None else f"{path}, line {exc.line}, column {exc.column}"
        raise ConfigError(f"{place}: {exc.message.rstrip('.')}; correct it and run again.") from exc


def as_text(data: bytes | None) -> str:
    """Return *data* as text to search in."""
    return (data or b"").decode("utf-8", "replace")


def meaning(data: bytes | None, syntax: Format) -> Tree | None:
    """Return what *data* means, an empty tree for no file and None if it cannot be parsed."""
    try:
        return syntax.from_bytes(data or b"").tree
    except DocumentError:
        return None


def edited(file: ConfigFile, target: Tree) -> bytes:
    """Return the file's bytes with the fewest edits that make it mean *target*; raises ConfigError."""
    document = file.document
    additions: Tree = {}
    try:
        for edit in edits(file.tree, target):
            if edit.value is MISSING:
                document.remove(edit.path)
            elif len(edit.path) == 1 or (isinstance(edit.value, dict) and get(file.tree, edit.path) is not MISSING):
                document.set(edit.path, edit.value)
            else:
                put(additions, edit.path, edit.value)
        document.merge(additions)  # all at once, because every edit reads the whole text again
    except DocumentError as exc:
        raise ConfigError(f"{file.path} cannot be edited: {exc}; make that change by hand and run again.") from exc
    if not same(document.tree, target):
        raise ConfigError(
            f"{file.path} cannot be edited without changing more than was asked and was left as it is: make the change"
            " by hand and run again."
        )
    return document.to_bytes()
