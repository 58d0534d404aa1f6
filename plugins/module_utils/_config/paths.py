# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things lie on a node: what is kept for one configuration file, below the collection's folder there."""

from __future__ import annotations

import contextlib
import os.path
import typing as t
from dataclasses import dataclass

from . import files

#: The folder with records of changed settings. Modules that decide on the controller have one each.
SETTINGS = "settings"


@dataclass(frozen=True)
class StatePaths:
    """The collection's folder on a node, and where locks may lie."""

    state_dir: str = files.STATE_DIR
    lock_dirs: tuple[str, ...] = (files.LOCK_DIR,)

    @property
    def pending(self) -> str:
        """Directory of the markers for restarts that are not confirmed yet."""
        return os.path.join(self.state_dir, "pending")

    def restart_marker(self, daemon: str) -> str:
        """Return the marker that exists until a restart of *daemon* with its file as it is now is confirmed."""
        return os.path.join(self.pending, f"{daemon}.restart")

    @property
    def backups(self) -> str:
        """Directory of contents kept for people to read: files as first found, and what a rollback replaced."""
        return os.path.join(self.state_dir, "backups")

    @property
    def snapshots(self) -> str:
        """Directory of the snapshots that a rollback restores."""
        return os.path.join(self.state_dir, "rollback")

    def records(self, kind: str = SETTINGS) -> str:
        """Return the directory of the records of one *kind*."""
        return os.path.join(self.state_dir, "state", kind)

    def record(self, path: str, kind: str = SETTINGS) -> str:
        """Return the file with the record of changes to the file *path*."""
        return os.path.join(self.records(kind), files.flat_name(os.path.realpath(path)) + ".json")

    def snapshot(self, path: str) -> str:
        """Return the file with the snapshot of the file *path*."""
        return os.path.join(self.snapshots, files.flat_name(os.path.realpath(path)) + ".json")

    @contextlib.contextmanager
    def lock(self, path: str, check_mode: bool = False) -> t.Iterator[None]:
        """Hold the lock for the file *path*, and remove the temporary files of killed runs; in check mode do nothing."""
        if check_mode:
            yield
            return
        with files.lock(path, (*self.lock_dirs, os.path.join(self.state_dir, "lock"))):
            for file in (path, self.record(path), self.snapshot(path)):
                files.remove_stale_temps(file)
            yield
