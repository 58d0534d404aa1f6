# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file as it was before a change that is not verified yet, kept so that a rollback can restore it.

Unlike a backup, a snapshot exists only from the change to its verification. The absence of a file is a state, too.
"""

from __future__ import annotations

import contextlib
import os
import stat
import typing as t
from dataclasses import dataclass

from . import files, record
from .files import FilesError
from .paths import StatePaths
from .tree import MISSING


@dataclass(frozen=True)
class State:
    """What a file is: its content (None: there is no file), mode, and owner as (user, group) (None: whoever writes it)."""

    data: bytes | None
    mode: int = 0o600
    owner: tuple[int, int] | None = None

    def encode(self, path: str) -> bytes:
        """Return the snapshot of *path* in this state."""
        content = {"content": record.encode_bytes(self.data), "mode": self.mode, "owner": self.owner}
        return record.dump(path, content)

    @staticmethod
    def decode(data: bytes, file: str, path: str) -> State:
        """Read the snapshot of *path* in *file*; raises FilesError for a damaged one, or ConfigError."""
        try:
            kept = record.load(data, file, path)
            owner = kept["owner"] and (int(kept["owner"][0]), int(kept["owner"][1]))
            return State(record.decode_bytes(kept["content"]), int(kept["mode"]), owner)
        except record.DAMAGED as exc:
            raise FilesError(
                f"{file}, the snapshot of {path}, is damaged: remove it and correct {path} by hand."
            ) from exc


@dataclass(frozen=True)
class Step:
    """One change: make the file *path* what *state* says, if its content is *expected*."""

    path: str
    state: State
    expected: files.Expected = None


class Snapshot:
    """The snapshot of one file, below the collection's folder. What changes something is planned, as steps to apply."""

    def __init__(self, path: str, paths: StatePaths) -> None:
        self.path = path
        self.file = paths.snapshot(path)
        self._paths = paths
        self._record = record.VersionedRecord(path, paths.record(path))

    @property
    def exists(self) -> bool:
        """Whether there is something to restore."""
        return os.path.exists(self.file)

    @property
    def state(self) -> State | None:
        """The file as it was; None without a snapshot. Raises FilesError for a damaged one, or ConfigError."""
        data = files.read_bytes(self.file)
        return None if data is None else State.decode(data, self.file, self.path)

    def take(self, pending: str | None = None) -> list[Step]:
        """Plan to keep the file as it is now.

        While the file ``pending`` exists, a change of this collection is not verified yet: then the file is not
        one to restore, and the snapshot from before that change stays, unless others have changed the file since.
        Raises FilesError, or ConfigError for a damaged record of changes.
        """
        if self.exists and pending is not None and os.path.exists(pending) and not self._is_unmanaged():
            return []
        kept = State(_state(self.path).encode(self.path))
        return [] if files.read_bytes(self.file) == kept.data else [Step(self.file, kept)]

    def restore(self) -> tuple[list[Step], str | None]:
        """Plan to restore the file; nothing without a snapshot. Raises as take().

        What others have written since the change is kept among the backups first; the second value is its path.
        """
        if not self.exists:
            return [], None
        now, then = _state(self.path), State.decode(files.read_bytes(self.file) or b"", self.file, self.path)
        if now == then:
            return [], None
        steps, backup = [Step(self.path, then, (files.sha256(now.data),))], None
        if now.data is not None and now.data != then.data and self._record.written != files.sha256(now.data):
            backup = files.backup_path(self.path, now.data, self._paths.backups)
            steps.insert(0, Step(backup, State(now.data)))
        return steps, backup

    def drop(self) -> list[Step]:
        """Plan to remove the snapshot."""
        return [Step(self.file, State(None))] if self.exists else []

    def prune_record(self) -> None:
        """Remove from the record of changes what holds for contents that only a snapshot could restore. Raises as take().

        If nothing is left on record, a backup of what the file holds is removed, too.
        """
        data = files.read_bytes(self.path)
        self._record.keep_only(files.sha256(data))
        if data is not None and self._record.written is MISSING:
            files.drop_copy(self.path, data, self._paths.backups)

    def _is_unmanaged(self) -> bool:
        """Whether others changed the file since this collection wrote it; without a record that is not known."""
        written = self._record.written
        return written is not MISSING and written != files.sha256(files.read_bytes(self.path))


def _state(path: str) -> State:
    data = files.read_bytes(path)
    if data is None:
        return State(None)
    found = os.stat(path)
    return State(data, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid))


def apply(steps: t.Sequence[Step], paths: StatePaths) -> None:
    """Make the changes, one after the other; a directory of snapshots that becomes empty goes, too. Raises FilesError."""
    for step in steps:
        if step.state.data is None:
            files.remove_file(step.path, step.expected)
            continue
        folder = os.path.dirname(step.path)
        if folder in (paths.snapshots, paths.backups):
            files.make_dirs(paths.state_dir)
            files.make_dirs(folder, 0o700)
        files.write_atomic(step.path, step.state.data, mode=step.state.mode, expected=step.expected)
        _set_attributes(step.path, step.state)
    with contextlib.suppress(OSError):
        os.rmdir(paths.snapshots)


def _set_attributes(path: str, state: State) -> None:
    """Give the file its mode and owner. If a run is killed before that, the next restore sees the difference and does it."""
    found = os.stat(path)
    try:
        if state.owner and state.owner != (found.st_uid, found.st_gid):
            os.chown(path, *state.owner)  # owner first: a change of owner clears bits of the mode
        if stat.S_IMODE(os.stat(path).st_mode) != state.mode:
            os.chmod(path, state.mode)
    except OSError as exc:
        raise FilesError(f"Cannot give {path} the owner and mode that it had: {exc.strerror}; run as root.") from exc
