# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file as it was before a change that has not proved itself yet, kept so that it can be put back.

Other than a backup, a snapshot lives only from the change to its proof. The absence of a file is a state, too.
Private to this collection.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import stat
import typing as t
from dataclasses import dataclass

from . import _files
from ._files import FilesError
from ._runtimes.journal import Journal
from ._runtimes.places import Places
from ._runtimes.trees import MISSING


@dataclass(frozen=True)
class State:
    """What a file is: its content (None: there is no file), mode, and owner as (user, group) (None: whoever writes it)."""

    data: bytes | None
    mode: int = 0o600
    owner: tuple[int, int] | None = None

    def encode(self) -> bytes:
        """Return the state as text in JSON."""
        content = None if self.data is None else base64.b64encode(self.data).decode("ascii")
        kept = {"content": content, "mode": self.mode, "owner": self.owner}
        return json.dumps(kept, sort_keys=True).encode("ascii") + b"\n"


@dataclass(frozen=True)
class Step:
    """One change: make the file *path* what *state* says."""

    path: str
    state: State


class Snapshot:
    """The snapshot of one file, below the collection's folder. What changes something is planned, as steps to apply."""

    def __init__(self, path: str, places: Places) -> None:
        self.path = path
        self.file = places.snapshot(path)
        self._places = places
        self._journal = Journal(path, places.record(path))

    @property
    def exists(self) -> bool:
        """Say whether there is something to put back."""
        return os.path.exists(self.file)

    def take(self, pending: str | None = None) -> list[Step]:
        """Plan to keep the file as it is now.

        While the file ``pending`` is there, a change of this collection still waits for its proof: then the file is not
        one to go back to, and the snapshot from before that change stays, unless others have changed the file since.
        Raises FilesError, or ConfigError for a damaged record of changes.
        """
        if self.exists and pending is not None and os.path.exists(pending) and not self._is_foreign():
            return []
        kept = State(_state(self.path).encode())
        return [] if _files.read_bytes(self.file) == kept.data else [Step(self.file, kept)]

    def restore(self) -> tuple[list[Step], str | None]:
        """Plan to put the file back; nothing without a snapshot. Raises as take().

        What others have written since the change is kept among the backups first; the second value tells where.
        """
        if not self.exists:
            return [], None
        now, then = _state(self.path), self._read()
        if now == then:
            return [], None
        steps, backup = [Step(self.path, then)], None
        if now.data is not None and now.data != then.data and self._journal.written != _files.sha256(now.data):
            backup = _files.backup_path(self.path, now.data, self._places.copies)
            steps.insert(0, Step(backup, State(now.data)))
        return steps, backup

    def drop(self) -> list[Step]:
        """Plan to forget the snapshot."""
        return [Step(self.file, State(None))] if self.exists else []

    def settle(self) -> None:
        """Forget what the record of changes holds for contents that only a snapshot could bring back. Raises as take()."""
        self._journal.settle(_files.sha256(_files.read_bytes(self.path)))

    def _is_foreign(self) -> bool:
        """Whether the file is other than this collection wrote it; without a record of that nobody knows."""
        written = self._journal.written
        return written is not MISSING and written != _files.sha256(_files.read_bytes(self.path))

    def _read(self) -> State:
        try:
            kept = json.loads((_files.read_bytes(self.file) or b"").decode("ascii"))
            content = kept["content"]
            data = None if content is None else base64.b64decode(content, validate=True)
            return State(data, int(kept["mode"]), kept["owner"] and (int(kept["owner"][0]), int(kept["owner"][1])))
        except (ValueError, LookupError, TypeError) as exc:
            raise FilesError(
                f"{self.file}, the snapshot of {self.path}, is damaged: remove it and put {self.path} right by hand."
            ) from exc


def _state(path: str) -> State:
    data = _files.read_bytes(path)
    if data is None:
        return State(None)
    found = os.stat(path)
    return State(data, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid))


def apply(steps: t.Sequence[Step], places: Places) -> None:
    """Make the changes, one after the other; a directory of snapshots that becomes empty goes, too. Raises FilesError."""
    for step in steps:
        if step.state.data is None:
            _files.remove_file(step.path)
            continue
        folder = os.path.dirname(step.path)
        if folder in (places.snapshots, places.copies):
            _files.make_dirs(places.state_dir)
            _files.make_dirs(folder, 0o700)
        _files.write_atomic(step.path, step.state.data, mode=step.state.mode)
        _set_attributes(step.path, step.state)
    with contextlib.suppress(OSError):
        os.rmdir(places.snapshots)


def _set_attributes(path: str, state: State) -> None:
    """Give the file its mode and owner. Killed before it, the next restore sees the difference and comes here again."""
    found = os.stat(path)
    try:
        if state.owner and state.owner != (found.st_uid, found.st_gid):
            os.chown(path, *state.owner)  # owner first: a change of owner clears bits of the mode
        if stat.S_IMODE(os.stat(path).st_mode) != state.mode:
            os.chmod(path, state.mode)
    except OSError as exc:
        raise FilesError(f"Cannot give {path} the owner and mode that it had: {exc.strerror}; run as root.") from exc
