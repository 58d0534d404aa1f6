# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file as it was before a change that has not proved itself yet, kept so that it can be put back.

Other than a backup, a snapshot lives only from the change to its proof. The absence of a file is a state, too.
Private to this collection.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from ._files import STATE_DIR, flat_name, make_dirs, read_bytes, remove_file, write_atomic

DIRECTORY = "rollback"


@dataclass(frozen=True)
class Step:
    """One change to a file: ``data`` None removes it."""

    path: str
    data: bytes | None


class Snapshot:
    """The snapshot of one file, below ``state_dir``."""

    def __init__(self, path: str, state_dir: str = STATE_DIR) -> None:
        self.path = path
        self._copy = os.path.join(state_dir, DIRECTORY, flat_name(os.path.realpath(path)))
        self._absent = self._copy + ".absent"

    @property
    def exists(self) -> bool:
        """Say whether there is something to put back."""
        return os.path.exists(self._copy) or os.path.exists(self._absent)

    def take(self, pending: str | None = None) -> list[Step]:
        """Plan to keep the file as it is now.

        While the file ``pending`` is there, an earlier change still waits for its proof: then the file is not one to
        go back to, and the snapshot from before that change stays. Raises FilesError.
        """
        if self.exists and pending is not None and os.path.exists(pending):
            return []
        data = read_bytes(self.path)
        copy = Step(self._copy, data)
        absent = Step(self._absent, b"" if data is None else None)
        return [step for step in (copy, absent) if read_bytes(step.path) != step.data]

    def restore(self) -> list[Step]:
        """Plan to put the file back; nothing without a snapshot. Raises FilesError."""
        if not self.exists:
            return []
        data = read_bytes(self._copy)
        return [] if read_bytes(self.path) == data else [Step(self.path, data)]

    def drop(self) -> list[Step]:
        """Plan to forget the snapshot."""
        return [Step(path, None) for path in (self._copy, self._absent) if os.path.exists(path)]


def apply(step: Step) -> None:
    """Make the change; a directory of snapshots that becomes empty goes, too. Raises FilesError."""
    directory = os.path.dirname(step.path)
    if step.data is not None:
        if os.path.basename(directory) == DIRECTORY:
            make_dirs(directory, 0o700)
        write_atomic(step.path, step.data, mode=0o600 if os.path.basename(directory) == DIRECTORY else 0o644)
        return
    remove_file(step.path)
    if os.path.basename(directory) == DIRECTORY:
        with contextlib.suppress(OSError):
            os.rmdir(directory)
