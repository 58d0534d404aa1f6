# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records on a node: JSON files of one format, in which a module keeps what it did to a configuration file.

`{"format": 1, "path": the configuration file, "record": what the module keeps}`. Contents of files are in base64.
"""

from __future__ import annotations

import base64
import json
import os.path
import typing as t
from dataclasses import dataclass

from . import files
from .errors import ConfigError
from .tree import MISSING

FORMAT = 1

#: What reading a damaged record can raise.
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class FileRecord:
    """One file: as it would be without this collection (None: no file), and the SHA-256 of what was written, newest first."""

    original: bytes | None
    written: tuple[str | None, ...]

    def encode(self) -> dict[str, t.Any]:
        """Return what a record holds of the file."""
        return {"original": encode_bytes(self.original), "written": list(self.written)}

    @staticmethod
    def decode(content: t.Mapping[str, t.Any]) -> FileRecord:
        """Read what encode() returns; raises one of DAMAGED."""
        return FileRecord(decode_bytes(content["original"]), tuple(content["written"]))


def dump(path: str, record: t.Mapping[str, t.Any]) -> bytes:
    """Return the file with the *record* of changes to *path*."""
    content = {"format": FORMAT, "path": path, "record": record}
    return json.dumps(content, indent=1, sort_keys=True).encode("utf-8") + b"\n"


def load(data: bytes, file: str, subject: str) -> t.Any:
    """Return the record that *data*, the content of *file*, holds of *subject*; raises one of DAMAGED, or ConfigError."""
    content = json.loads(data.decode("utf-8"))
    if content["format"] != FORMAT:
        raise ConfigError(
            f"{file}, the record of changes to {subject}, is of format {content['format']} and not {FORMAT}: run the release of"
            " gpu.kubernetes that wrote it."
        )
    return content["record"]


def describe_damage(file: str, subject: str, exc: Exception) -> ConfigError:
    """Return the error for a damaged record."""
    cause = f"{exc} is missing" if isinstance(exc, KeyError) else str(exc).rstrip(".")
    return ConfigError(
        f"{file}, the record of changes to {subject}, is damaged ({cause}): restore a good copy, or move it away and remove by"
        " hand what earlier runs wrote; then run again."
    )


def encode_bytes(data: bytes | None) -> str | None:
    """Return the content of a file as JSON can hold it."""
    return None if data is None else base64.b64encode(data).decode("ascii")


def decode_bytes(text: str | None) -> bytes | None:
    """Read what encode_bytes() returns; raises one of DAMAGED."""
    return None if text is None else base64.b64decode(text, validate=True)


class VersionedRecord:
    """The record of one configuration file, with a version for each content that the file can have, by its SHA-256.

    The version for the new content is written before the file is replaced, beside that for the old content. A run that is killed between
    any two steps, and a rollback, therefore leave a record that fits the file. The file has mode 0600: it can hold credentials.
    """

    def __init__(self, target: str, file: str) -> None:
        self.target = os.path.realpath(target)
        self.file = file

    @property
    def written(self) -> t.Any:
        """Hash of the content that was written last (None: no file); MISSING if there is nothing on record."""
        return self.read()[0]

    def keep_only(self, sha: str | None) -> None:
        """Remove the versions for contents other than that with hash *sha*: nothing can restore these any more."""
        written, versions = self.read()
        if sha in versions and len(versions) > 1:
            self.save(written, {sha: versions[sha]})

    def clear(self) -> None:
        """Remove the record: nothing in the file is managed."""
        files.remove_file(self.file)

    def read(self) -> tuple[t.Any, dict[str | None, t.Any]]:
        """Return `written` and the versions by hash. Raises ConfigError for a damaged record."""
        data = files.read_bytes(self.file)
        if data is None:
            return MISSING, {}
        try:
            content = load(data, self.file, self.target)
            return content["written"], {version["sha"]: version["record"] for version in content["versions"]}
        except DAMAGED as exc:
            raise describe_damage(self.file, self.target, exc) from exc

    def save(self, written: t.Any, versions: t.Mapping[str | None, t.Any]) -> None:
        """Write the record, or remove it if no version has anything."""
        if not any(versions.values()):
            self.clear()
            return
        content = {
            "written": written,
            "versions": [{"sha": sha, "record": record} for sha, record in versions.items()],
        }
        files.make_dirs(os.path.dirname(self.file), 0o700)
        files.write_atomic(self.file, dump(self.target, content), mode=0o600)
