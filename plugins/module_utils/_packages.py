# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package managers as data: how each installs and removes packages, and one way to have it done.

The modules of ansible-core need python3-apt or python3-dnf on the node, and know neither zypper nor pacman. Here a node
needs nothing but its package manager, and a check needs no repository that is not there yet.
Private to this collection.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import Callable, Mapping, Optional, Pattern, Sequence, Tuple

# package name: installed version, None if it is not installed
Installed = Mapping[str, Optional[str]]
# command -> (exit status, output, errors)
Runner = Callable[[Sequence[str]], Tuple[int, str, str]]

# What a manager could take for an option, a pattern, a path, a group or a wish of its own ("name-" with apt removes)
# is no package here. A version may have an epoch.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+-]*[A-Za-z0-9._])?")
_VERSION = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._+~^:-]*[A-Za-z0-9._~^])?")

# Seconds that a lock of somebody else is waited for.
PATIENCE = 300
# The managers' words in the C locale. apt waits by itself for the lock of dpkg but not for that of its lists, zypper
# where it knows ZYPP_LOCK_TIMEOUT, dnf 4 without end unless exit_on_lock is set, dnf 5 and pacman do not.
_LOCKED = re.compile(
    r"could not get lock|frontend lock was locked by another process|unable to lock database|could not lock database"
    r"|system management is locked|can't create transaction lock .*temporarily unavailable"
    r"|already locked by|failed to obtain (?:rpm|the) transaction lock",
    re.IGNORECASE,
)


class PackageError(Exception):
    """What was asked cannot be done; the message is a sentence without a full stop, with cause and remedy.

    ``details`` has ``command``, ``stdout`` and ``stderr`` if a command failed.
    """

    def __init__(self, message: str, **details: object) -> None:
        super().__init__(message)
        self.details = details


@dataclass(frozen=True)
class Request:
    """Packages that should be there (in ``version``, if given) or not. Raises PackageError for an impossible name."""

    names: tuple[str, ...]
    present: bool = True
    version: str | None = None
    # apt only: the sources file whose repository is refreshed, so that other, broken repositories do not matter
    source: str | None = None
    # apt only: whether packages that are on hold may be changed, because the hold is the caller's own
    change_held: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if not _NAME.fullmatch(name):
                raise PackageError(f"{name!r} is no name of a package: give plain names, without patterns or versions")
        if self.version is not None and not _VERSION.fullmatch(self.version):
            raise PackageError(f"{self.version!r} is no version of a package: write it as in 1.17.8 or 1.17.8-1")


@dataclass(frozen=True)
class Manager:
    """One package manager.

    ``refresh`` is None where installing refreshes by itself; with ``stale`` it is run only if installing failed with
    such words. ``rehearse`` says what removing would do and changes nothing; ``concerned`` finds packages in its words.
    ``held`` lists those of the given packages that are on hold; without it the manager's own refusal has to do.
    ``fine`` are the exit statuses of a success.
    """

    install: Callable[[Request], list[str]]
    remove: Callable[[Request], list[str]]
    rehearse: Callable[[Request], list[str]]
    concerned: Callable[[str], list[str]]
    refresh: Callable[[Request], list[str]] | None = None
    stale: Pattern[str] | None = None
    held: Callable[[Sequence[str]], list[str]] | None = None
    fine: frozenset[int] = frozenset([0])


def satisfied(name: str, request: Request, installed: Installed) -> bool:
    """Say whether a package is as asked for.

    A wanted version without the packager's revision matches every revision of exactly that version: 1.17.8 matches
    1.17.8-1, and neither 1.17 nor 1.17.8-2 does.
    """
    version = installed.get(name)
    if not request.present or version is None:
        return request.present == (version is not None)
    if request.version is None or version == request.version:
        return True
    return "-" not in request.version and version.startswith(request.version + "-")


def pending(request: Request, installed: Installed) -> tuple[str, ...]:
    """Return the packages that are not as asked for."""
    return tuple(name for name in request.names if not satisfied(name, request, installed))


def apply(
    manager: str, request: Request, query: Callable[[], Installed], run: Runner, check_mode: bool = False
) -> tuple[Installed, tuple[str, ...]]:
    """Do what is asked, or in check mode only see whether it can be done.

    Returns what was installed before, and the packages that were not as asked for. ``run`` has to use the C locale.
    Raises PackageError: somebody else's hold is respected, nothing is removed if other packages would go with it, and a
    manager that says that all is well is not believed.
    """
    before = query()
    names = pending(request, before)
    if not names:
        return before, names
    chosen, rest = MANAGERS[manager], replace(request, names=names)
    _refuse_held(chosen, rest, before, run)
    if not request.present:
        _refuse_company(chosen, rest, run)
    command = chosen.install(rest) if request.present else chosen.remove(rest)
    if not check_mode:
        act = _install if request.present else _succeed
        act(chosen, command, rest, run)
        _believe(manager, rest, query())
    return before, names


def run_patiently(
    command: Sequence[str],
    run: Runner,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[int, str, str]:
    """Run the command again as long as it fails for a lock of somebody else, for PATIENCE seconds."""
    end = clock() + PATIENCE
    wait = 0.5
    while True:
        status, output, errors = run(command)
        if status == 0 or not _LOCKED.search(output + "\n" + errors) or clock() >= end:
            return status, output, errors
        pause(min(wait, max(end - clock(), 0)))
        wait = min(wait * 2, 5.0)


def last_words(output: str, errors: str) -> str:
    """Return what a package manager said last of an error, in one line."""
    lines = [line.strip() for line in (errors.strip() or output.strip()).splitlines() if line.strip()]
    named = [line for line in lines if line.lower().startswith(("e:", "error"))]
    return " ".join((named or lines)[-2:]) or "no reason given"


def _refuse_held(chosen: Manager, request: Request, installed: Installed, run: Runner) -> None:
    """Raise PackageError if a package to change is on a hold that is not the caller's."""
    names = [name for name in request.names if installed.get(name)]
    if chosen.held is None or request.change_held or not names:
        return
    _status, output, _errors = run(chosen.held(names))
    held = [name for name in names if name in output.split()]
    if held:
        raise PackageError(
            f"Cannot change {_list(held)}, because somebody put a hold on it: "
            f"let it go (apt-mark unhold {' '.join(held)}), or allow it with change_held if the hold is your own"
        )


def _install(chosen: Manager, command: list[str], request: Request, run: Runner) -> None:
    """Install, after a refresh where the manager wants one."""
    if chosen.refresh is not None:
        if chosen.stale is not None:
            status, output, errors = run_patiently(command, run)
            if status in chosen.fine:
                return
            if not chosen.stale.search(output + "\n" + errors):
                raise _failure(command, request, output, errors)
        _succeed(chosen, chosen.refresh(request), request, run)
    _succeed(chosen, command, request, run)


def _refuse_company(chosen: Manager, request: Request, run: Runner) -> None:
    """Raise PackageError if removing the packages would remove others too."""
    command = chosen.rehearse(request)
    status, output, errors = run_patiently(command, run)
    others = sorted(set(chosen.concerned(output + "\n" + errors)) - set(request.names))
    if others:
        raise PackageError(
            f"Cannot remove {_list(request.names)}, because {_list(others)} would have to go too: "
            "remove what depends on it first, or leave it installed"
        )
    if status:
        raise _failure(command, request, output, errors)


def _succeed(chosen: Manager, command: list[str], request: Request, run: Runner) -> None:
    status, output, errors = run_patiently(command, run)
    if status not in chosen.fine:
        raise _failure(command, request, output, errors)


def _failure(command: list[str], request: Request, output: str, errors: str) -> PackageError:
    words = last_words(output, errors).rstrip(".")
    remedy = "put that right on the host or in its repositories, and run again"
    if _LOCKED.search(output + "\n" + errors):
        remedy = f"{PATIENCE} s were not enough for the lock, so let the other package manager end, and run again"
    message = f"{command[0]} failed for {_list(request.names)} ({words}): {remedy}"
    return PackageError(message, command=command, stdout=output, stderr=errors)


def _believe(manager: str, request: Request, after: Installed) -> None:
    """Raise PackageError if the packages still are not as asked for."""
    left = pending(request, after)
    if left:
        found = _list([f"{name} is {after.get(name) or 'not installed'}" for name in left])
        wanted = f"version {request.version or 'any'}" if request.present else "none"
        raise PackageError(
            f"{manager} told of no error, but {found} (wanted: {wanted}): look for a pin or lock on it"
            + (", and give the version as the repository writes it" if request.version else "")
        )


def _list(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def _apt(*words: str) -> list[str]:
    # Pattern-Only: a name with a dot in it, if there is no such package, is no regular expression.
    options = ["-o", f"DPkg::Lock::Timeout={PATIENCE}", "-o", "APT::Cmd::Pattern-Only=true"]
    return ["apt-get", "--yes", "--quiet", *options, *words]


def _apt_refresh(request: Request) -> list[str]:
    only: list[str] = []
    if request.source:
        only += ["-o", f"Dir::Etc::sourcelist={request.source}", "-o", "Dir::Etc::sourceparts=-"]
        only += ["-o", "APT::Get::List-Cleanup=0"]
    return _apt("-o", "APT::Update::Error-Mode=any", *only, "update")


def _apt_install(request: Request) -> list[str]:
    options = ["--no-install-recommends", "--allow-downgrades", "-o", "Dpkg::Options::=--force-confold"]
    # A version without a revision means every revision of it and no other version: 1.17.8* would match 1.17.80.
    ending = "" if "-" in (request.version or "") else "-*"
    return _apt(*options, *_apt_held(request), "install", *_versioned(request, "=", ending))


def _apt_remove(request: Request, *options: str) -> list[str]:
    return _apt(*options, *_apt_held(request), "-o", "APT::Get::AutomaticRemove=false", "purge", *request.names)


def _apt_held(request: Request) -> list[str]:
    return ["--allow-change-held-packages"] if request.change_held else []


def _apt_concerned(words: str) -> list[str]:
    """Find the packages that the simulation removes."""
    return re.findall(r"^(?:Remv|Purg) (\S+)", words, re.MULTILINE)


def _versioned(request: Request, separator: str, ending: str = "") -> list[str]:
    suffix = f"{separator}{request.version}{ending}" if request.version else ""
    return [name + suffix for name in request.names]


def _dnf(*words: str) -> list[str]:
    # Both options have these names with dnf 4 and dnf 5, which call --noautoremove differently.
    options = ["--setopt=exit_on_lock=True", "--setopt=clean_requirements_on_remove=False"]
    return ["dnf", "--assumeyes", "--quiet", *options, *words]


def _zypper(*words: str) -> list[str]:
    return ["zypper", "--non-interactive", *words]


def _rpm_versioned(request: Request, separator: str) -> list[str]:
    if ":" in (request.version or ""):
        raise PackageError(f"The version {request.version} has an epoch, which rpm does not tell: leave it out")
    return _versioned(request, separator)


def _rpm_rehearse(request: Request) -> list[str]:
    """Let rpm itself look for what depends on the packages: one answer under every dnf and zypper."""
    return ["rpm", "--erase", "--test", "--allmatches", *request.names]


def _rpm_concerned(words: str) -> list[str]:
    """Find NAME in "something is needed by (installed) NAME-VERSION-RELEASE.ARCH"."""
    return [package.rsplit("-", 2)[0] for package in re.findall(r"is needed by \(installed\) (\S+)", words)]


def _pacman_install(request: Request) -> list[str]:
    if request.version:
        raise PackageError("pacman installs only the version of its repository: leave the version out")
    return ["pacman", "--sync", "--noconfirm", "--needed", *request.names]


# Removing names what is to go and nothing else: what is unused beside it is not ours to judge.
MANAGERS: dict[str, Manager] = {
    "apt": Manager(
        install=_apt_install,
        remove=_apt_remove,
        rehearse=lambda request: _apt_remove(request, "--simulate"),
        concerned=_apt_concerned,
        refresh=_apt_refresh,
        held=lambda names: ["apt-mark", "showhold", *names],
    ),
    "dnf": Manager(
        install=lambda request: _dnf("install", *_rpm_versioned(request, "-")),
        remove=lambda request: _dnf("remove", *request.names),
        rehearse=_rpm_rehearse,
        concerned=_rpm_concerned,
    ),
    "zypper": Manager(
        install=lambda request: _zypper("install", "--oldpackage", *_rpm_versioned(request, "=")),
        remove=lambda request: _zypper("remove", "--no-clean-deps", *request.names),
        rehearse=_rpm_rehearse,
        concerned=_rpm_concerned,
        # done, but: a reboot or restart is due, or another repository could not be read
        fine=frozenset([0, 102, 103, 106]),
    ),
    "pacman": Manager(
        install=_pacman_install,
        remove=lambda request: ["pacman", "--remove", "--nosave", "--noconfirm", *request.names],
        rehearse=lambda request: ["pacman", "--remove", "--print", "--noconfirm", *request.names],
        concerned=lambda words: re.findall(r"breaks dependency .* required by (\S+)", words),
        # Not before it is needed: what was there before does not always run with the libraries of a newer database.
        refresh=lambda _request: ["pacman", "--sync", "--refresh", "--noconfirm"],
        stale=re.compile("target not found|failed retrieving file|failed to retrieve"),
    ),
}
