# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to a package manager, and how installed packages satisfy them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Sequence

# package name: installed version, None if it is not installed
Installed = Mapping[str, Optional[str]]
# Names that a manager could read as an option, a pattern, a path, a group or an action ("name-" with apt removes) are rejected.
# A version may have an epoch, and end in .* as a prefix.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]*(?:[A-Za-z0-9._]|[+]{2}))?")
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+~^:-]*[A-Za-z0-9_~^])?(?:\.\*)?")


class PackageError(Exception):
    """A request failed; the message is a sentence without a full stop, with cause and remedy.

    ``details`` has ``command``, ``stdout`` and ``stderr`` if a command failed, and ``changed`` if packages changed in spite of the error.
    """

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True)
class Request:
    """Packages that should be installed or absent. Raises PackageError for an invalid name or version.

    ``version`` applies to all packages that are not ``unversioned``. With ``same_version`` these get one upstream version, whichever it is.
    With None, packages that join managed ones get their version; with False each gets its own available version.
    """

    names: tuple[str, ...]
    present: bool = True
    version: str | None = None
    unversioned: frozenset[str] = frozenset()
    same_version: bool | None = None
    # apt only: the sources file whose repository is refreshed; without it all repositories are
    source: str | None = None
    # apt only: a file to read instead of /etc/apt/preferences
    preferences: str | None = None
    # packages that an earlier request put on hold, and that may change
    managed_holds: frozenset[str] = frozenset()
    # packages that an earlier request installed, and that may be replaced
    managed: frozenset[str] = frozenset()
    # dependencies of an earlier request, which may be removed with its packages
    dependencies: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise PackageError(f"{name!r} is not a package name: use plain names, without patterns or versions")
        if self.version is not None and not _VERSION.fullmatch(self.version):
            raise PackageError(f"{self.version!r} is not a package version: write it as in 1.17.8 or 1.17.8-1")

    @property
    def versioned(self) -> tuple[str, ...]:
        """The packages that the version applies to."""
        return tuple(name for name in self.names if name not in self.unversioned)

    @property
    def has_common_version(self) -> bool:
        """Whether the packages get one upstream version that the request does not name, as with a branch of a driver."""
        return self.present and (bool(self.same_version) if self.version is None else self.version.endswith(".*"))


def is_satisfied(name: str, request: Request, installed: Installed) -> bool:
    """Whether a package is as requested.

    A requested version without the packager's revision matches each revision of exactly that version: 1.17.8 matches 1.17.8-1. 1.17 does
    not match it, and neither does 1.17.8-2. 1.17.* matches all versions that begin with 1.17 and a dot.
    """
    version = installed.get(name)
    if not request.present or version is None:
        return request.present == (version is not None)
    if request.version is None or name in request.unversioned or version == request.version:
        return True
    if request.version.endswith(".*"):
        return version.startswith(request.version[:-1])
    return "-" not in request.version and version.startswith(request.version + "-")


def find_pending(request: Request, installed: Installed) -> tuple[str, ...]:
    """Return the packages that are not as requested; all of them if they need a common version and their versions differ."""
    left = tuple(name for name in request.names if not is_satisfied(name, request, installed))
    if (
        request.has_common_version
        and len({get_upstream_version(version) for version in _find_staying_versions(request, left, installed)}) > 1
    ):
        return tuple(name for name in request.names if name in left or name in request.versioned)
    return left


def _find_staying_versions(request: Request, left: Sequence[str], installed: Installed) -> set[str]:
    """Return the versions of the packages that do not change; only of managed ones if the request has no common version."""
    names = {
        name
        for name in request.versioned
        if name not in left and (request.has_common_version or name in request.managed)
    }
    return {version for version in map(installed.get, names) if version}


def find_joining_versions(request: Request, installed: Installed) -> tuple[str, ...]:
    """Return the possible versions for packages that join installed ones, the preferred one first; none if there is no restriction.

    They need the upstream version of the installed ones, also if the repository has newer ones. Revisions may differ: NVIDIA's fabric
    manager is 580.126.20-1 where the libraries are 580.126.20-1.amzn2023.
    """
    has_free_version = request.same_version is not False if request.version is None else request.version.endswith(".*")
    if not request.present or not has_free_version:
        return ()
    stay = _find_staying_versions(request, find_pending(request, installed), installed)
    # A version without a revision would match each revision of it.
    if len({get_upstream_version(version) for version in stay}) != 1 or not all("-" in version for version in stay):
        return ()
    # An epoch is part of the version, and an upstream version has none.
    upstream = {get_upstream_version(version) for version in stay if ":" not in version}
    return (*(stay if len(stay) == 1 else ()), *upstream)


def choose_common_version(request: Request, available: Iterable[tuple[str, str]], installed: Installed) -> str | None:
    """Return a requested upstream version that is available for all packages, None if there is none.

    It is the most frequent installed one, else the newest of the installed releases, else the newest.
    """
    current = [get_upstream_version(version) for version in map(installed.get, request.versioned) if version]
    releases = {_get_release(version) for version in current}
    matching = [
        (name, get_upstream_version(version))
        for name, version in available
        if is_satisfied(name, request, {name: version})
    ]
    shared = set.intersection(
        *({version for other, version in matching if other == name} for name in request.versioned)
    )

    def rank(version: str) -> tuple[object, ...]:
        return current.count(version), _get_release(version) in releases, _get_sort_key(version)

    return max(shared, key=rank, default=None)


def _get_release(version: str) -> str:
    return version.partition(".")[0]


def _get_sort_key(version: str) -> tuple[list[int], bool, list[int]]:
    """Return a sort key that is greater for a newer upstream version; 1.18.0~rc.1 comes before 1.18.0."""
    release, tilde, more = version.partition("~")
    return _parse_numbers(release), not tilde, _parse_numbers(more)


def _parse_numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def get_upstream_version(version: str) -> str:
    """Return a version without epoch and packager's revision: 570.124.06 of 1:570.124.06-0ubuntu1."""
    return version.rpartition("-")[0].rpartition(":")[2] or version.rpartition(":")[2]


def join_names(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
