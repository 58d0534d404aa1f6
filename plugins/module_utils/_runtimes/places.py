# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things lie on a node: what is kept for one configuration file, below the collection's folder there.

Private to this collection.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os.path
import typing as t
from dataclasses import dataclass

from .. import _files


def recorded_files(state_dir: str, besides: str | None = None) -> list[str]:
    """Return the configuration files of which a record says that a runtime was put in, without the file *besides* and its drop-ins.

    A file that only imports a drop-in because of us holds no runtime.
    """
    mine = os.path.realpath(besides) if besides else None
    return sorted(
        {
            path
            for path, record in _records(state_dir)
            if (mine is None or mine not in (path, record["root"])) and not all(map(os.path.isabs, record["runtimes"]))
        }
    )


def recorded_drop_ins(state_dir: str, root: str) -> list[str]:
    """Return the drop-ins of the file *root* of which there is a record, if only for what a snapshot could bring back."""
    here = os.path.realpath(root)
    return sorted({path for path, record in _records(state_dir) if record["root"] == here})


def _records(state_dir: str) -> t.Iterator[tuple[str, dict[str, t.Any]]]:
    """Every file with its records, as they are written down; what is no record, or cannot be read, is left out."""
    for name in glob.glob(os.path.join(glob.escape(Places(state_dir).records), "*.json")):
        with contextlib.suppress(OSError, ValueError, LookupError, TypeError), open(name, encoding="utf-8") as file:
            content = json.load(file)
            records = [version["record"] for version in content["versions"] if version["record"]]
            yield from [
                (str(content["path"]), {"root": record["root"], "runtimes": list(record["runtimes"])})
                for record in records
            ]


@dataclass(frozen=True)
class Places:
    """The collection's folder on a node, and where locks may lie."""

    state_dir: str = _files.STATE_DIR
    lock_dirs: tuple[str, ...] = (_files.LOCK_DIR,)

    @property
    def pending(self) -> str:
        """Directory of the marks for restarts that nobody confirmed yet."""
        return os.path.join(self.state_dir, "pending")

    def mark(self, daemon: str) -> str:
        """Return the mark that says: nobody has confirmed a restart of *daemon* with its file as it is."""
        return os.path.join(self.pending, f"{daemon}.restart")

    @property
    def copies(self) -> str:
        """Directory of contents kept for people to look at: files as first met, and what a rollback replaced."""
        return os.path.join(self.state_dir, "backups")

    @property
    def records(self) -> str:
        """Directory of the records of changes."""
        return os.path.join(self.state_dir, "state", "runtime_config")

    @property
    def snapshots(self) -> str:
        """Directory of the snapshots that a rollback puts back."""
        return os.path.join(self.state_dir, "rollback")

    def record(self, path: str) -> str:
        """Return the file with the record of changes to the file *path*."""
        return os.path.join(self.records, _files.flat_name(os.path.realpath(path)) + ".json")

    def snapshot(self, path: str) -> str:
        """Return the file with the snapshot of the file *path*."""
        return os.path.join(self.snapshots, _files.flat_name(os.path.realpath(path)) + ".json")

    @contextlib.contextmanager
    def exclusive(self, path: str, check_mode: bool = False) -> t.Iterator[None]:
        """Hold the lock for the file *path*, and remove the temporary files of killed runs; in check mode do nothing."""
        if check_mode:
            yield
            return
        with _files.lock(path, (*self.lock_dirs, os.path.join(self.state_dir, "lock"))):
            for file in (path, self.record(path), self.snapshot(path)):
                _files.remove_stale_temps(file)
            yield
