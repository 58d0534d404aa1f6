# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every record of changes holds of a file. Private to this collection."""

from __future__ import annotations

import base64
import json
import typing as t
from dataclasses import dataclass

from .errors import EditError

#: What else is wrong with a record besides that it is no JSON.
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Kept:
    """One file: as it would be without us (None: there would be none), and the SHA-256 of what we wrote, newest first."""

    first: bytes | None
    written: tuple[str | None, ...]

    def encode(self) -> dict[str, t.Any]:
        """Return what a record in JSON holds of the file."""
        first = None if self.first is None else base64.b64encode(self.first).decode("ascii")
        return {"first": first, "written": list(self.written)}

    @staticmethod
    def decode(content: t.Mapping[str, t.Any]) -> Kept:
        """Read what encode() returns; raises one of DAMAGED."""
        first = content["first"]
        return Kept(None if first is None else base64.b64decode(first, validate=True), tuple(content["written"]))


def text_of_record(content: t.Mapping[str, t.Any]) -> bytes:
    """Return a record as text in JSON."""
    return json.dumps(content, indent=1, sort_keys=True).encode("utf-8") + b"\n"


def content_of_record(data: bytes, number: int, what: str) -> t.Mapping[str, t.Any]:
    """Read a record, *what* in words, which has to be of the format of this *number*. Raises one of DAMAGED, or EditError."""
    content: t.Mapping[str, t.Any] = json.loads(data.decode("utf-8"))
    if content["format"] != number:
        raise EditError(
            f"{what}, is of format {content['format']} and not {number}: run the release of gpu.kubernetes that wrote it."
        )
    return content
