# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The former state of files, as roles have recorded it before a change: what the timer restores."""

from __future__ import annotations

import json
import typing as t

from .._config import files
from .._config.errors import ConfigError
from .._config.paths import StatePaths
from .._config.record import DAMAGED, encode_bytes
from .._config.snapshot import Snapshot
from .._kubelet.record import Record

File = t.Dict[str, t.Any]


def list_snapshots(paths: t.Sequence[str], state: StatePaths) -> list[File]:
    """Return the files of which there is a snapshot, as they were. Raises FilesError or ConfigError."""
    found = []
    for path in paths:
        former = Snapshot(path, state).state
        if former is not None:
            uid, gid = former.owner or (None, None)
            found.append(_describe(path, former.data, former.mode, uid, gid))
    return found


def read_kubelet_record(path: str, state: StatePaths) -> list[File]:
    """Return the kubelet's configuration as it was before a change that is not verified; empty without one. Raises as list_snapshots."""
    file = state.record(path, "kubelet")
    record = Record.decode(files.read_bytes(file), file)
    former = record.former if record else None
    return [_describe(path, former.content)] if former else []


def read_change_record(file: str) -> list[File]:
    """Return the files in a record of the role kube_scheduler_extender: those to write, and those to remove. Raises ConfigError."""
    data = files.read_bytes(file)
    if data is None:
        return []
    try:
        content = json.loads(data.decode("utf-8"))
        found = [
            {
                "path": str(each["path"]),
                "content": str(each["content"]),
                "mode": int(each["mode"], 8),
                "uid": int(each["uid"]),
                "gid": int(each["gid"]),
            }
            for each in content["files"]
        ]
        return [*found, *(_describe(str(path), None) for path in content["absent"])]
    except DAMAGED as error:
        raise ConfigError(f"{file}, the record of the files before a change, is damaged ({error}).") from error


def _describe(
    path: str, data: bytes | None, mode: int | None = None, uid: int | None = None, gid: int | None = None
) -> File:
    return {"path": path, "content": encode_bytes(data), "mode": mode, "uid": uid, "gid": gid}
