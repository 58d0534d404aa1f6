# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on record of a node's kube-scheduler: the files as they would be without us, and what we made of them.

Private to this collection.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._yaml_files.errors import EditError
from .._yaml_files.record import DAMAGED, Kept, content_of_record, text_of_record

FORMAT = 1


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
            "manifest": self.manifest.encode(),
            "config": self.config.encode(),
            "path": self.path,
            "ref": self.ref,
            "extenders": [dict(each) for each in self.extenders],
            "minor": self.minor,
        }
        return text_of_record(content)

    @staticmethod
    def decode(data: bytes | None, file: str) -> Record | None:
        """Return the record in *file*, None if there is none. Raises EditError if it cannot be read."""
        if data is None:
            return None
        try:
            content = content_of_record(data, FORMAT, f"{file}, the record of changes to kube-scheduler")
            return Record(
                Kept.decode(content["manifest"]),
                Kept.decode(content["config"]),
                str(content["path"]),
                str(content["ref"]),
                tuple(
                    {"urlPrefix": e["urlPrefix"], "managedResources": e["managedResources"]}
                    for e in content["extenders"]
                ),
                int(content["minor"]),
            )
        except DAMAGED as exc:
            raise EditError(
                f"{file}, the record of changes to kube-scheduler, is damaged: put back a good copy, or move it away and take the extenders"
                " out by hand; then run again."
            ) from exc
