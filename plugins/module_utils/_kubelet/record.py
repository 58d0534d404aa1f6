# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on record of a kubelet's configuration: the file as it would be without us, what we set in it, and what there was before a change
that nobody has proved yet. Private to this collection.
"""

from __future__ import annotations

import base64
import typing as t
from dataclasses import dataclass

from .._yaml_files.errors import EditError
from .._yaml_files.record import DAMAGED, Kept, content_of_record, text_of_record

FORMAT = 1
Values = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Former:
    """What there was before a change that is not proved: the file, and what was on record of it."""

    content: bytes
    record: Record | None


@dataclass(frozen=True)
class Record:
    """What we did to one file: *values* are what was asked for, mapping in mapping; *tried* what may be there yet if runs were killed."""

    file: Kept
    values: Values
    tried: tuple[Values, ...] = ()
    former: Former | None = None

    def encode(self) -> bytes:
        """Return the record as text in JSON."""
        return text_of_record({"format": FORMAT, **self._content()})

    def _content(self) -> dict[str, t.Any]:
        content: dict[str, t.Any] = {
            "file": self.file.encode(),
            "values": self.values,
            "tried": self.tried,
            "former": None,
        }
        if self.former is not None:
            data = base64.b64encode(self.former.content).decode("ascii")
            before = self.former.record
            content["former"] = {"content": data, "record": None if before is None else before._content()}
        return content

    @staticmethod
    def decode(data: bytes | None, file: str) -> Record | None:
        """Return the record in *file*, None if there is none. Raises EditError if it cannot be read."""
        if data is None:
            return None
        what = f"{file}, the record of changes to the kubelet's configuration"
        try:
            return _read(content_of_record(data, FORMAT, what))
        except DAMAGED as exc:
            raise EditError(
                f"{what}, is damaged: put back a good copy, or move it away and take the settings out by hand; then run again."
            ) from exc


def _read(content: t.Mapping[str, t.Any]) -> Record:
    """Read what a record holds; raises one of DAMAGED."""
    former, said = None, content["former"]
    if said is not None:
        before = said["record"]
        former = Former(base64.b64decode(said["content"], validate=True), None if before is None else _read(before))
    return Record(
        Kept.decode(content["file"]), dict(content["values"]), tuple(dict(each) for each in content["tried"]), former
    )
