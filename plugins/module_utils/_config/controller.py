# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of modules that decide there: reads the node's files, plans, and has the node write.

A run may be killed between any two orders: the record is written before the files that it describes, and removed after them.
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

from . import files, record
from .errors import ConfigError
from .redact import redact_yaml

if t.TYPE_CHECKING:
    from .yaml_nodes import Syntax

#: Sends a request to the node and returns its answer.
Send = t.Callable[[t.Dict[str, t.Any]], t.Mapping[str, t.Any]]


@dataclass(frozen=True)
class Answer:
    """What the node has: the file that is edited, the record of changes to it, and all files that were read, by path."""

    path: str
    record_path: str
    files: t.Mapping[str, bytes | None]  # None: no such file
    checksums: t.Mapping[str, str | None]

    @staticmethod
    def parse(answer: t.Mapping[str, t.Any]) -> Answer:
        """Read what `node.read_files` returns."""
        found = answer["files"]
        contents = {path: record.decode_bytes(file["data"]) for path, file in found.items()}
        return Answer(
            answer["path"], answer["record_path"], contents, {path: file["sha256"] for path, file in found.items()}
        )

    @property
    def content(self) -> bytes | None:
        """The file that is edited."""
        return self.files[self.path]

    @property
    def record(self) -> bytes | None:
        """The record of changes to it."""
        return self.files[self.record_path]


class Record(t.Protocol):
    """What a module keeps of its changes."""

    @property
    def written(self) -> t.Collection[str | None]:
        """The SHA-256 of all contents that the module wrote and that may still be there."""

    def encode(self) -> dict[str, t.Any]:
        """Return the record as JSON can hold it."""


@dataclass(frozen=True)
class Step:
    """Make the file *path* hold *after* instead of *before* (None: no file); *owner* and *mode* are for a new one."""

    path: str
    before: bytes | None
    after: bytes | None
    owner: tuple[int, int] | None = None
    mode: int = 0o600


@dataclass(frozen=True)
class Plan:
    """The files to change, in their order, the record to write before them (None: to remove after them), facts, and warnings."""

    steps: tuple[Step, ...]
    record: Record | None
    facts: t.Mapping[str, t.Any]
    warnings: tuple[str, ...] = ()
    keep_record: bool = False  # it is right as it is


def to_plain(given: t.Any, what: str) -> t.Any:
    """Return options as JSON has them: Ansible's own types carry their origin, and no YAML library knows them.

    Raises ConfigError; *what* is the option that may hold other things.
    """
    try:
        return json.loads(json.dumps(given))
    except (TypeError, ValueError) as exc:
        raise ConfigError(
            f"{what} has a value that is not a text, number, boolean, list or mapping ({exc}): quote it."
        ) from exc


def list_orders(plan: Plan, answer: Answer, known: Record | None) -> list[dict[str, t.Any]]:
    """Return what the node has to write for *plan*. A content that is not on the *known* record is backed up first."""
    written = known.written if known else ()
    orders = [
        {
            "path": step.path,
            "data": record.encode_bytes(step.after),
            "owner": step.owner if step.before is None else None,
            "mode": step.mode,
            "backup": files.sha256(step.before) not in written,
            "private": False,
        }
        for step in plan.steps
    ]
    if plan.keep_record:
        return orders
    data = None if plan.record is None else record.encode_bytes(record.dump(answer.path, plan.record.encode()))
    note = {"path": answer.record_path, "data": data, "owner": None, "mode": 0o600, "backup": False, "private": True}
    return [*orders, note] if plan.record is None else [note, *orders]


def build_result(plan: Plan, orders: t.Sequence[t.Mapping[str, t.Any]], syntax: Syntax, diff: bool) -> dict[str, t.Any]:
    """Return a module's result, with the difference if *diff*; credentials are masked in it."""
    return {
        "changed": bool(plan.steps),
        **plan.facts,
        "warnings": list(plan.warnings),
        **({"diff": [_difference(step, syntax) for step in plan.steps]} if diff else {}),
        "files": [order["path"] for order in orders],
    }


def write(
    orders: t.Sequence[t.Mapping[str, t.Any]], answer: Answer, send: Send, state_dir: str, backup_dir: str
) -> dict[str, str]:
    """Have the node follow the orders, unless one of the files that were read has changed; return the backups, by file."""
    request = {
        "do": "write",
        "path": answer.path,
        "orders": list(orders),
        "expected": dict(answer.checksums),
        "state_dir": state_dir,
        "backup_dir": backup_dir,
    }
    return dict(send(request)["backups"])


def _difference(step: Step, syntax: Syntax) -> dict[str, str]:
    before, after = redact_yaml(step.before, step.after, step.path, syntax)
    return {"before": before, "after": after, "before_header": step.path, "after_header": step.path}
