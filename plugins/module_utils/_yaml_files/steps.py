# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the two halves of a module say to each other of files, as the controller's half sees it. Private to this collection."""

from __future__ import annotations

import base64
import json
import typing as t
from dataclasses import dataclass

from .. import _files
from .errors import EditError
from .masking import shown
from .scalars import Syntax

#: Sends a request to the node and returns its answer.
Ask = t.Callable[[t.Dict[str, t.Any]], t.Mapping[str, t.Any]]
#: A file as the node describes it: {data (base64, None: no file), sha256}.
File = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Step:
    """Make the file *path* hold *after* instead of *before* (None: no file); *owner* is for a new one."""

    path: str
    before: bytes | None
    after: bytes | None
    owner: tuple[int, int] | None = None


def plain(given: t.Any, what: str) -> t.Any:
    """Return options as JSON has them: Ansible's own are marked with where they come from, and no YAML library knows their types.

    Raises EditError; *what* is the option that may hold other things.
    """
    try:
        return json.loads(json.dumps(given))
    except (TypeError, ValueError) as exc:
        raise EditError(f"{what} holds what is no text, number, switch, list or mapping ({exc}): quote it.") from exc


def data_of(file: File) -> bytes | None:
    """Return the content of a file, None if there is none."""
    return None if file["data"] is None else base64.b64decode(file["data"])


def expected(files: t.Mapping[str, File]) -> dict[str, str | None]:
    """Return the SHA-256 of each file that a decision rests on."""
    return {path: file["sha256"] for path, file in files.items()}


def order(step: Step, ours: t.Container[str | None]) -> dict[str, t.Any]:
    """Return what the node is told of a step; a content that is none of *ours* is kept first."""
    data = None if step.after is None else base64.b64encode(step.after).decode("ascii")
    owner = step.owner if step.before is None else None
    backup = _files.sha256(step.before) not in ours
    return {"path": step.path, "data": data, "owner": owner, "backup": backup, "private": False}


def with_record(orders: t.Sequence[dict[str, t.Any]], path: str, record: bytes | None) -> list[dict[str, t.Any]]:
    """Return the *orders* with the record of changes: written before all else, or (None) out of the way after all else."""
    data = None if record is None else base64.b64encode(record).decode("ascii")
    note = {"path": path, "data": data, "owner": None, "backup": False, "private": True}
    return [*orders, note] if record is None else [note, *orders]


def difference(step: Step, syntax: Syntax, secret: str) -> dict[str, str]:
    """Return a step for people to look at, without what settings named *secret* hold."""
    sides = {"before": step.before, "after": step.after}
    texts = {side: shown(data, step.path, syntax, secret) for side, data in sides.items()}
    return {**texts, "before_header": step.path, "after_header": step.path}
