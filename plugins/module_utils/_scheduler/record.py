# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is on record of a node's kube-scheduler."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._config.record import DAMAGED, FileRecord, describe_damage, load


@dataclass(frozen=True)
class Record:
    """What was done to one static pod."""

    manifest: FileRecord
    config: FileRecord
    config_path: str  # on the node
    ref: str  # the same as the container sees it
    extenders: tuple[t.Mapping[str, t.Any], ...]  # identities
    minor: int  # of Kubernetes 1.x, when it was written

    @property
    def written(self) -> tuple[str | None, ...]:
        """The SHA-256 of what was written to either file."""
        return (*self.manifest.written, *self.config.written)

    def encode(self) -> dict[str, t.Any]:
        """Return the record as JSON can hold it."""
        return {
            "manifest": self.manifest.encode(),
            "config": self.config.encode(),
            "config_path": self.config_path,
            "ref": self.ref,
            "extenders": [dict(each) for each in self.extenders],
            "minor": self.minor,
        }

    @staticmethod
    def decode(data: bytes | None, file: str) -> Record | None:
        """Return the record in *file*, None if there is none. Raises ConfigError if it cannot be read."""
        if data is None:
            return None
        subject = "kube-scheduler"
        try:
            content = load(data, file, subject)
            identities = tuple(
                {"urlPrefix": each["urlPrefix"], "managedResources": each["managedResources"]}
                for each in content["extenders"]
            )
            return Record(
                FileRecord.decode(content["manifest"]),
                FileRecord.decode(content["config"]),
                str(content["config_path"]),
                str(content["ref"]),
                identities,
                int(content["minor"]),
            )
        except DAMAGED as exc:
            raise describe_damage(file, subject, exc) from exc
