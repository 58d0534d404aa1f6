# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of a package manager."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Mapping, Optional, Sequence

# package name: installed version, None if it is not installed
Installed = Mapping[str, Optional[str]]
# What a manager could take for an option, a pattern, a path, a group or a wish of its own ("name-" with apt removes)
# is no package here. A version may have an epoch, and end in .* for all that begin so.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]*(?:[A-Za-z0-9._]|[+]{2}))?")
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+~^:-]*[A-Za-z0-9_~^])?(?:\.\*)?")


class PackageError(Exception):
    """What was asked cannot be done; the message is a sentence without a full stop, with cause and remedy.

    ``details`` has ``command``, ``stdout`` and ``stderr`` if a command failed, and ``changed`` where packages are others than before
    all the same.
    """

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True)
class Request:
    """Packages that should be there or not. Raises PackageError for an impossible name.

    ``version`` is asked of all but those that are ``unversioned``.
    """

    names: tuple[str, ...]
    present: bool = True
    version: str | None = None
    unversioned: frozenset[str] = frozenset()
    # apt only: the sources file whose repository is refreshed, so that other, broken repositories do not matter
    source: str | None = None
    # packages that are on hold because of an earlier request, and may be changed all the same
    own_holds: frozenset[str] = frozenset()
    # what an earlier request brought, and another one may replace
    own: frozenset[str] = frozenset()
    # what came with the packages of an earlier request, and may go with them
    company: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise PackageError(f"{name!r} is no name of a package: give plain names, without patterns or versions")
        if self.version is not None and not _VERSION.fullmatch(self.version):
            raise PackageError(f"{self.version!r} is no version of a package: write it as in 1.17.8 or 1.17.8-1")


def satisfied(name: str, request: Request, installed: Installed) -> bool:
    """Say whether a package is as asked for.

    A wanted version without the packager's revision matches every revision of exactly that version: 1.17.8 matches
    1.17.8-1, and neither 1.17 nor 1.17.8-2 does. 1.17.* matches all that begin with 1.17 and a dot.
    """
    version = installed.get(name)
    if not request.present or version is None:
        return request.present == (version is not None)
    if request.version is None or name in request.unversioned or version == request.version:
        return True
    if request.version.endswith(".*"):
        return version.startswith(request.version[:-1])
    return "-" not in request.version and version.startswith(request.version + "-")


def pending(request: Request, installed: Installed) -> tuple[str, ...]:
    """Return the packages that are not as asked for."""
    return tuple(name for name in request.names if not satisfied(name, request, installed))


def beside(request: Request, installed: Installed) -> Request:
    """Return the request with the version of those of its packages that an earlier one brought and that stay, if it leaves the version open.

    What joins them has to fit them, and the repository may have gone on since they came.
    """
    if not request.present or not (request.version is None or request.version.endswith(".*")):
        return request
    ours = (request.own - request.unversioned).intersection(request.names).difference(pending(request, installed))
    stay = {installed[name] for name in ours}
    version = stay.pop() if len(stay) == 1 else None
    # Without a revision it would mean every revision of it.
    return replace(request, version=version) if version and "-" in version else request


def upstream(version: str) -> str:
    """Return a version without epoch and packager's revision: 570.124.06 of 1:570.124.06-0ubuntu1."""
    return version.rpartition("-")[0].rpartition(":")[2] or version.rpartition(":")[2]


def enumerated(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
