# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on record of a kubelet's configuration: the file as it would be without us, and what we set in it. Private to this collection."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._yaml_files.errors import EditError
from .._yaml_files.record import DAMAGED, Kept, content_of_record, text_of_record

FORMAT = 1


@dataclass(frozen=True)
class Record:
    """What we did to one file: *values* are what was asked for, mapping in mapping."""

    file: Kept
    values: t.Mapping[str, t.Any]

    def encode(self) -> bytes:
        """Return the record as text in JSON."""
        return text_of_record({"format": FORMAT, "file": self.file.encode(), "values": self.values})

    @staticmethod
    def decode(data: bytes | None, file: str) -> Record | None:
        """Return the record in *file*, None if there is none. Raises EditError if it cannot be read."""
        if data is None:
            return None
        what = f"{file}, the record of changes to the kubelet's configuration"
        try:
            content = content_of_record(data, FORMAT, what)
            return Record(Kept.decode(content["file"]), dict(content["values"]))
        except DAMAGED as exc:
            raise EditError(
                f"{what}, is damaged: put back a good copy, or move it away and take the settings out by hand; then run again."
            ) from exc
