# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of packages that were installed for a request, which the undo needs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Iterable, Mapping

from .._config import files as _files
from .request import PackageError, Request, get_upstream_version

VERSION = 1


@dataclass(frozen=True)
class Record:
    """Packages that were installed for a request, sorted.

    ``packages`` are the requested ones and dependencies of the same upstream version, if they were not installed before; ``unversioned``
    those of them that were requested without a version; ``dependencies`` the other dependencies; ``held`` the packages put on hold.
    ``before`` has the packages that were installed before a transaction that may not have ended; then ``unversioned`` has also the
    requested ones of that transaction.
    """

    packages: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    before: tuple[str, ...] | None = None
    unversioned: tuple[str, ...] = ()

    def complete(self, request: Request, installed: Mapping[str, str]) -> Record:
        """Return the record after a transaction; *installed* are the versions now."""
        if self.before is None:
            return self
        new = set(installed) - set(self.before)
        versioned = [name for name in request.names if name in installed and name not in request.unversioned]
        versions = {get_upstream_version(installed[name]) for name in versioned}
        requested = {*request.names, *self.unversioned}
        managed = {name for name in new if name in requested or get_upstream_version(installed[name]) in versions}
        packages = managed | (set(self.packages) & set(installed))
        dependencies = ((new | set(self.dependencies)) & set(installed)) - packages
        unversioned = ({*request.unversioned, *self.unversioned} - set(versioned)) & packages
        return Record(_sort(packages), _sort(dependencies), self.held, unversioned=_sort(unversioned))


def read(path: str) -> Record:
    """Return the record in a file, or an empty one if the file does not exist. Raises PackageError."""
    try:
        data = _files.read_bytes(path)
        found = {} if data is None else json.loads(data.decode("utf-8"))
        if found.pop("version", VERSION) != VERSION:
            raise PackageError(f"{path} is of another version than {VERSION}: run the collection that wrote it")
        return Record(**{key: tuple(map(str, value)) for key, value in found.items()})
    except (_files.FilesError, ValueError, TypeError, AttributeError) as error:
        raise PackageError(f"Cannot read the record of packages {path} ({error}): repair it, or remove it") from error


def write(path: str, record: Record) -> None:
    """Write a record, or remove the file if the record is empty. Raises PackageError."""
    try:
        if record == Record():
            _files.remove_file(path)
        else:
            known = {key: value for key, value in asdict(record).items() if value is not None}
            _files.write_atomic(
                path,
                json.dumps({"version": VERSION, **known}, sort_keys=True).encode("ascii") + b"\n",
                mode=0o600,
                dir_mode=0o700,
            )
    except _files.FilesError as error:
        raise PackageError(str(error).rstrip(".")) from error


def _sort(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
