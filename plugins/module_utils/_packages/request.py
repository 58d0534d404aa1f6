# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of a package manager."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Sequence

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

    ``version`` is asked of all but those that are ``unversioned``. With ``same_version`` those get one upstream version, whichever it is;
    without, what joins those of an earlier request gets theirs, and with False each gets what there is.
    """

    names: tuple[str, ...]
    present: bool = True
    version: str | None = None
    unversioned: frozenset[str] = frozenset()
    same_version: bool | None = None
    # apt only: the sources file whose repository is refreshed, so that other, broken repositories do not matter
    source: str | None = None
    # apt only: a file to read instead of /etc/apt/preferences
    preferences: str | None = None
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

    @property
    def versioned(self) -> tuple[str, ...]:
        """The packages that the version is asked of."""
        return tuple(name for name in self.names if name not in self.unversioned)

    @property
    def together(self) -> bool:
        """Whether the packages have to have one upstream version and the request does not say which, as with a branch of a driver."""
        return self.present and (bool(self.same_version) if self.version is None else self.version.endswith(".*"))


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
    """Return the packages that are not as asked for; of those that have to be alike and are not, all."""
    left = tuple(name for name in request.names if not satisfied(name, request, installed))
    if request.together and len({upstream(version) for version in _staying(request, left, installed)}) > 1:
        return tuple(name for name in request.names if name in left or name in request.versioned)
    return left


def _staying(request: Request, left: Sequence[str], installed: Installed) -> set[str]:
    """Return the versions of the packages that are as asked for, of those alone that an earlier request brought if the others may differ."""
    names = {name for name in request.versioned if name not in left and (request.together or name in request.own)}
    return {version for version in map(installed.get, names) if version}


def beside(request: Request, installed: Installed) -> tuple[str, ...]:
    """Return the versions that packages may join in those that stay, the better one first; none if those tell nothing.

    What joins them has to fit them, and the repository may have gone on since they came. It has the same upstream version and not
    always the same revision: NVIDIA's fabric manager is 580.126.20-1 where the libraries are 580.126.20-1.amzn2023.
    """
    free = request.same_version is not False if request.version is None else request.version.endswith(".*")
    if not request.present or not free:
        return ()
    stay = _staying(request, pending(request, installed), installed)
    # Without a revision it would mean every revision of it.
    if len({upstream(version) for version in stay}) != 1 or not all("-" in version for version in stay):
        return ()
    # An epoch is part of the version, and is lost with the revision.
    alike = {upstream(version) for version in stay if ":" not in version}
    return (*(stay if len(stay) == 1 else ()), *alike)


def common(request: Request, offers: Iterable[tuple[str, str]], installed: Installed) -> str | None:
    """Return the upstream version as asked for that is offered of all packages, None if there is none.

    Of several it is the one that most of them are installed in, else the newest of their release, else the newest.
    """
    there = [upstream(version) for version in map(installed.get, request.versioned) if version]
    releases = {_release(version) for version in there}
    fit = [(name, upstream(version)) for name, version in offers if satisfied(name, request, {name: version})]
    shared = set.intersection(*({version for other, version in fit if other == name} for name in request.versioned))

    def order(version: str) -> tuple[object, ...]:
        return there.count(version), _release(version) in releases, _order(version)

    return max(shared, key=order, default=None)


def _release(version: str) -> str:
    return version.partition(".")[0]


def _order(version: str) -> tuple[list[int], bool, list[int]]:
    """Return what is greater of a newer upstream version; 1.18.0~rc.1 comes before 1.18.0."""
    release, tilde, more = version.partition("~")
    return _numbers(release), not tilde, _numbers(more)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def upstream(version: str) -> str:
    """Return a version without epoch and packager's revision: 570.124.06 of 1:570.124.06-0ubuntu1."""
    return version.rpartition("-")[0].rpartition(":")[2] or version.rpartition(":")[2]


def enumerated(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
