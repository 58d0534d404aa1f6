# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on record of a kubelet's configuration."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._config.record import DAMAGED, FileRecord, decode_bytes, describe_damage, encode_bytes, load

Values = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Former:
    """What there was before a change that is not verified: the file, and what was on record of it."""

    content: bytes
    record: Record | None


@dataclass(frozen=True)
class Record:
    """What was done to one file: *values* are the requested ones; *tried* are those that killed runs may have written."""

    file: FileRecord
    values: Values
    tried: tuple[Values, ...] = ()
    former: Former | None = None

    @property
    def written(self) -> tuple[str | None, ...]:
        """The SHA-256 of what was written."""
        return self.file.written

    def encode(self) -> dict[str, t.Any]:
        """Return the record as JSON can hold it."""
        former = self.former and {
            "content": encode_bytes(self.former.content),
            "record": self.former.record and self.former.record.encode(),
        }
        return {"file": self.file.encode(), "values": self.values, "tried": self.tried, "former": former}

    @staticmethod
    def decode(data: bytes | None, file: str) -> Record | None:
        """Return the record in *file*, None if there is none. Raises ConfigError if it cannot be read."""
        if data is None:
            return None
        subject = "the kubelet's configuration"
        try:
            return _read(load(data, file, subject))
        except DAMAGED as exc:
            raise describe_damage(file, subject, exc) from exc


def _read(content: t.Mapping[str, t.Any]) -> Record:
    """Read what encode() returns; raises one of DAMAGED."""
    former = content["former"]
    if former is not None:
        before = former["record"]
        former = Former(decode_bytes(former["content"]) or b"", None if before is None else _read(before))
    values, tried = dict(content["values"]), tuple(dict(each) for each in content["tried"])
    return Record(FileRecord.decode(content["file"]), values, tried, former)
