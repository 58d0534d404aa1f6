# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A configuration file as read, and the fewest edits that make it mean something else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .._document import Document, DocumentError, Format, is_same
from . import files
from .errors import ConfigError
from .tree import MISSING, Tree, find_edits, get, put

_TEMPLATE = re.compile(r"\{\{.*?\}\}", re.DOTALL)


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
        return files.sha256(self.data)


def read(path: str, syntax: Format) -> ConfigFile:
    """Read *path*; raises FilesError, or ConfigError with line and column if it cannot be parsed."""
    data = files.read_bytes(path)
    document = parse(path, data or b"", syntax)
    return ConfigFile(path, data, document, document.tree, syntax)


def parse(path: str, data: bytes, syntax: Format) -> Document:
    """Parse *data*, the content of *path*; raises ConfigError."""
    try:
        return syntax.from_bytes(data)
    except DocumentError as exc:
        if _TEMPLATE.search(decode_text(data)):
            raise ConfigError(describe_template(path)) from exc
        place = path if exc.line is None else f"{path}, line {exc.line}, column {exc.column}"
        raise ConfigError(f"{place}: {exc.message.rstrip('.')}; correct it and run again.") from exc


def describe_template(path: str) -> str:
    """Return the error for the template *path*."""
    return (
        f"{path} is a template: make the change in the template by hand or through the tool that renders it, and give path:"
        " the file that the daemon reads."
    )


def decode_text(data: bytes | None) -> str:
    """Return *data* as text to search in."""
    return (data or b"").decode("utf-8", "replace")


def parse_or_none(data: bytes | None, syntax: Format) -> Tree | None:
    """Return what *data* means, an empty tree for no file and None if it cannot be parsed."""
    try:
        return syntax.from_bytes(data or b"").tree
    except DocumentError:
        return None


def edit(file: ConfigFile, target: Tree) -> bytes:
    """Return the file's bytes with the fewest edits that make it mean *target*; raises ConfigError."""
    document = file.document
    additions: Tree = {}
    try:
        for change in find_edits(file.tree, target):
            if change.value is MISSING:
                document.remove(change.path)
            elif len(change.path) == 1 or (
                isinstance(change.value, dict) and get(file.tree, change.path) is not MISSING
            ):
                document.set(change.path, change.value)
            else:
                put(additions, change.path, change.value)
        document.merge(additions)  # all at once, because every edit reads the whole text again
    except DocumentError as exc:
        raise ConfigError(f"{file.path} cannot be edited: {exc}; make that change by hand and run again.") from exc
    if not is_same(document.tree, target):
        raise ConfigError(
            f"{file.path} cannot be edited without changing more than was requested and was left as it is: make the change"
            " by hand and run again."
        )
    return document.to_bytes()
