# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package managers as data: how each installs and removes packages.

The modules of ansible-core need python3-apt or python3-dnf on the node, and know neither zypper nor pacman. Here a node
needs nothing but its package manager, and a check needs no repository that is not there yet.
Private to this collection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Mapping, Optional

# package name: installed version, None if it is not installed
Installed = Mapping[str, Optional[str]]


class PackageError(Exception):
    """The package manager cannot do what was asked; the message is a clause with cause and remedy."""


@dataclass(frozen=True)
class Request:
    """Packages that should be there (in ``version``, if given) or not."""

    names: tuple[str, ...]
    present: bool = True
    version: str | None = None
    # apt only: the sources file whose repository is refreshed, so that other, broken repositories do not matter
    source: str | None = None


@dataclass(frozen=True)
class Manager:
    """One package manager. ``refresh`` is None where installing refreshes by itself."""

    install: Callable[[Request], list[str]]
    remove: Callable[[Request], list[str]]
    refresh: Callable[[Request], list[str]] | None = None


def satisfied(name: str, request: Request, installed: Installed) -> bool:
    """Say whether a package is as asked for.

    A wanted version without the packager's revision matches every revision: 1.17.8 matches 1.17.8-1.
    """
    version = installed.get(name)
    if not request.present or version is None:
        return request.present == (version is not None)
    return request.version is None or version == request.version or version.startswith(request.version + "-")


def pending(request: Request, installed: Installed) -> tuple[str, ...]:
    """Return the packages that are not as asked for."""
    return tuple(name for name in request.names if not satisfied(name, request, installed))


def commands(manager: str, request: Request, installed: Installed) -> list[list[str]]:
    """Return the commands that do what is asked, none if nothing is to be done; raises PackageError."""
    names = pending(request, installed)
    if not names:
        return []
    chosen = MANAGERS[manager]
    rest = Request(names, request.present, request.version, request.source)
    if not request.present:
        return [chosen.remove(rest)]
    return [*([chosen.refresh(rest)] if chosen.refresh else []), chosen.install(rest)]


def last_words(output: str, errors: str) -> str:
    """Return what a package manager said last of an error, in one line."""
    lines = [line.strip() for line in (errors.strip() or output.strip()).splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith(("e:", "error"))]
    return " ".join((named or lines)[-2:]) or "no reason given"


def _apt(*words: str) -> list[str]:
    return ["apt-get", "--yes", "--quiet", "-o", "DPkg::Lock::Timeout=300", *words]


def _apt_refresh(request: Request) -> list[str]:
    only: list[str] = []
    if request.source:
        only += ["-o", f"Dir::Etc::sourcelist={request.source}", "-o", "Dir::Etc::sourceparts=-"]
        only += ["-o", "APT::Get::List-Cleanup=0"]
    return _apt("-o", "APT::Update::Error-Mode=any", *only, "update")


def _apt_install(request: Request) -> list[str]:
    options = ["--no-install-recommends", "--allow-downgrades", "-o", "Dpkg::Options::=--force-confold"]
    return _apt(*options, "install", *_versioned(request, "=", "*"))


def _versioned(request: Request, separator: str, ending: str = "") -> list[str]:
    suffix = f"{separator}{request.version}{ending}" if request.version else ""
    return [name + suffix for name in request.names]


def _pacman_install(request: Request) -> list[str]:
    if request.version:
        raise PackageError("pacman installs only the version of its repository; leave the version out")
    return ["pacman", "--sync", "--noconfirm", "--needed", *request.names]


# Removing names what is to go and nothing else: what is unused beside it is not ours to judge.
MANAGERS: dict[str, Manager] = {
    "apt": Manager(_apt_install, lambda request: _apt("purge", *request.names), _apt_refresh),
    "dnf": Manager(
        lambda request: ["dnf", "--assumeyes", "--quiet", "install", *_versioned(request, "-")],
        lambda request: ["dnf", "--assumeyes", "--quiet", "--noautoremove", "remove", *request.names],
    ),
    "zypper": Manager(
        lambda request: ["zypper", "--non-interactive", "install", "--oldpackage", *_versioned(request, "=")],
        lambda request: ["zypper", "--non-interactive", "remove", *request.names],
    ),
    "pacman": Manager(
        _pacman_install,
        lambda request: ["pacman", "--remove", "--nosave", "--noconfirm", *request.names],
    ),
}
