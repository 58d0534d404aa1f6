# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on record of a node's kube-scheduler: the files as they would be without us, and what we made of them.

Private to this collection.
"""

from __future__ import annotations

import base64
import json
import typing as t
from dataclasses import dataclass

from .errors import SchedulerError

FORMAT = 1


@dataclass(frozen=True)
class Kept:
    """One file: as it would be without us (None: there would be none), and the SHA-256 of what we wrote, newest first."""

    first: bytes | None
    written: tuple[str | None, ...]

    def _encode(self) -> dict[str, t.Any]:
        first = None if self.first is None else base64.b64encode(self.first).decode("ascii")
        return {"first": first, "written": list(self.written)}

    @staticmethod
    def _decode(content: t.Mapping[str, t.Any]) -> Kept:
        first = content["first"]
        return Kept(None if first is None else base64.b64decode(first, validate=True), tuple(content["written"]))


@dataclass(frozen=True)
class Record:
    """What we did to one static pod."""

    manifest: Kept
    config: Kept
    path: str  # of the configuration, on the node
    ref: str  # the same as the container sees it
    extenders: tuple[t.Mapping[str, t.Any], ...]  # identities
    minor: int  # of Kubernetes 1.x, when we wrote

    def encode(self) -> bytes:
        """Return the record as text in JSON."""
        content = {
            "format": FORMAT,
            "manifest": self.manifest._encode(),
            "config": self.config._encode(),
            "path": self.path,
            "ref": self.ref,
            "extenders": [dict(each) for each in self.extenders],
            "minor": self.minor,
        }
        return json.dumps(content, indent=1, sort_keys=True).encode("utf-8") + b"\n"

    @staticmethod
    def decode(data: bytes | None, file: str) -> Record | None:
        """Return the record in *file*, None if there is none. Raises SchedulerError if it cannot be read."""
        if data is None:
            return None
        try:
            content = json.loads(data.decode("utf-8"))
            if content["format"] != FORMAT:
                raise SchedulerError(
                    f"{file}, the record of changes to kube-scheduler, is of format {content['format']} and not {FORMAT}: run the release"
                    " of gpu.kubernetes that wrote it."
                )
            return Record(
                Kept._decode(content["manifest"]),
                Kept._decode(content["config"]),
                str(content["path"]),
                str(content["ref"]),
                tuple(
                    {"urlPrefix": e["urlPrefix"], "managedResources": e["managedResources"]}
                    for e in content["extenders"]
                ),
                int(content["minor"]),
            )
        except (ValueError, LookupError, TypeError, RecursionError) as exc:
            raise SchedulerError(
                f"{file}, the record of changes to kube-scheduler, is damaged: put back a good copy, or move it away and take the extenders"
                " out by hand; then run again."
            ) from exc
