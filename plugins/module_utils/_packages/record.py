# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was installed because of a request, remembered for the way back."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Iterable, Mapping

from .._config import files as _files
from .request import PackageError, Request, upstream


@dataclass(frozen=True)
class Record:
    """Packages that are there because of a request, sorted.

    ``packages`` are those asked for and those of the same upstream version that came with them, without those that were there
    before; ``free`` those of them that were asked for in whatever version; ``company`` what else came with them; ``held`` those put
    on hold. ``before`` is what was installed before a transaction of which nobody knows yet whether it ended, and then ``free`` has
    also what that was asked for.
    """

    packages: tuple[str, ...] = ()
    company: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    before: tuple[str, ...] | None = None
    free: tuple[str, ...] = ()

    def settled(self, request: Request, installed: Mapping[str, str]) -> Record:
        """Return the record after a transaction that brought what is *installed* now."""
        if self.before is None:
            return self
        new = set(installed) - set(self.before)
        versioned = [name for name in request.names if name in installed and name not in request.unversioned]
        versions = {upstream(installed[name]) for name in versioned}
        asked = {*request.names, *self.free}
        ours = {name for name in new if name in asked or upstream(installed[name]) in versions}
        packages = ours | (set(self.packages) & set(installed))
        company = ((new | set(self.company)) & set(installed)) - packages
        free = ({*request.unversioned, *self.free} - set(versioned)) & packages
        return Record(_sorted(packages), _sorted(company), self.held, free=_sorted(free))


def read(path: str) -> Record:
    """Return the record in a file, an empty one if there is no such file.  Raises PackageError."""
    try:
        data = _files.read_bytes(path)
        found = {} if data is None else json.loads(data.decode("utf-8"))
        return Record(**{key: tuple(map(str, value)) for key, value in found.items()})
    except (_files.FilesError, ValueError, TypeError, AttributeError) as error:
        raise PackageError(
            f"Cannot read the record of packages {path} ({error}): repair it, or take it away"
        ) from error


def write(path: str, record: Record) -> None:
    """Write a record; an empty one is no file.  Raises PackageError."""
    try:
        if record == Record():
            _files.remove_file(path)
        else:
            known = {key: value for key, value in asdict(record).items() if value is not None}
            _files.write_atomic(
                path, json.dumps(known, sort_keys=True).encode("ascii") + b"\n", mode=0o600, dir_mode=0o700
            )
    except _files.FilesError as error:
        raise PackageError(str(error).rstrip(".")) from error


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))
