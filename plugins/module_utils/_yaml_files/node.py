# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's half: reads files and writes them, and decides nothing. Private to this collection."""

from __future__ import annotations

import base64
import os
import typing as t

from .. import _files
from .._files import FilesError


def described(data: bytes | None) -> dict[str, str | None]:
    """Return a file as the controller gets it: {data (base64, None: no file), sha256}."""
    return {"data": None if data is None else encoded(data), "sha256": _files.sha256(data)}


def encoded(data: bytes) -> str:
    """Return bytes as JSON can carry them."""
    return base64.b64encode(data).decode("ascii")


def record_path(state_dir: str, kind: str, path: str) -> str:
    """Return the file with the record of changes to *path* by the module of this *kind*."""
    return os.path.join(state_dir, "state", kind, _files.flat_name(os.path.realpath(path)) + ".json")


def write(
    path: str,
    steps: t.Sequence[t.Mapping[str, t.Any]],
    expected: t.Mapping[str, str | None],
    state_dir: str,
    backup_dir: str,
) -> dict[str, str]:
    """Make the changes, one after the other: {path, data (base64, None: no file), owner, backup, private}; return the copies kept, by file.

    Nothing is written if one of the files is not as it was *expected*. Raises FilesError.
    """
    with _files.lock(path, (_files.LOCK_DIR, os.path.join(state_dir, "lock"))):
        for name, sha256 in expected.items():
            if _files.sha256(_files.read_bytes(name)) != sha256:
                raise FilesError(f"{name} was changed by somebody else meanwhile: nothing was written; run again.")
        _files.make_dirs(state_dir)
        kept = {step["path"]: _files.backup(step["path"], backup_dir) for step in steps if step["backup"]}
        for step in steps:
            _replace(step)
    return {name: copy for name, copy in kept.items() if copy}


def _replace(step: t.Mapping[str, t.Any]) -> None:
    path, data = step["path"], step["data"]
    if data is None:
        _files.remove_file(path)
        return
    if step["private"]:
        _files.make_dirs(os.path.dirname(path), 0o700)
    _files.write_atomic(path, base64.b64decode(data), mode=0o600, owner=step["owner"])
