# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Package managers as data: how each installs, removes and holds packages."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Callable, ContextManager, Pattern

from .apt_preferences import preferring
from .patience import PATIENCE
from .request import PackageError, Request


@dataclass(frozen=True)
class Holding:
    """How a package manager keeps packages from being changed.

    ``listing`` shows what is on hold and ``names`` reads that; ``hold`` and ``release`` are the beginnings of commands.
    """

    listing: list[str]
    names: Callable[[str], list[str]]
    hold: list[str]
    release: list[str]


@dataclass(frozen=True)
class Manager:
    """One package manager.

    ``refresh`` is None where installing refreshes by itself; with ``stale`` it is run only if installing failed with
    such words. ``rehearse`` says what removing would do and changes nothing; ``concerned`` finds packages in its words.
    ``prefer`` has what the packages depend on come in their version, which was found for them, while it lasts.
    ``foresee`` says what installing would do, where that may remove packages of others, in words for ``concerned`` too.
    ``listing`` shows all installed packages, a name and a version a line, and with rpm an architecture; ``unneeded`` those that were
    installed for others which are gone, and ``unneeded_names`` reads that; ``requested`` those that somebody asked for, and ``requested_names`` reads that.
    ``offered`` is the beginning of a command that shows all versions of packages, and ``offers`` finds names and versions in its
    words; ``falls`` tells that installing a branch could end in an older one. ``kept`` finds words that blame holds for a failure.
    A transaction that is killed may leave behind what came for others as if somebody had asked for it, which the first of ``disown``
    that works puts right, and a ``lock`` that stays, or packages half way, which ``mend`` finishes. ``fine`` are the exit statuses of
    a success.
    """

    install: Callable[[Request], list[str]]
    remove: Callable[[Request], list[str]]
    rehearse: Callable[[Request], list[str]]
    concerned: Callable[[str], list[str]]
    listing: list[str]
    unneeded: list[str]
    unneeded_names: Callable[[str], list[str]]
    requested: list[str]
    requested_names: Callable[[str], list[str]] = str.split
    prefer: Callable[[Request], ContextManager[Request]] = nullcontext
    foresee: Callable[[Request], list[str]] | None = None
    holding: Holding | None = None
    offered: list[str] | None = None
    offers: Callable[[str], list[tuple[str, str]]] = lambda _words: []
    falls: bool = False
    kept: Pattern[str] | None = None
    disown: tuple[list[str], ...] = ()
    lock: str | None = None
    mend: tuple[str, ...] = ()
    refresh: Callable[[Request], list[str]] | None = None
    stale: Pattern[str] | None = None
    fine: frozenset[int] = frozenset([0])


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


def _apt_install(request: Request, *more: str) -> list[str]:
    options = [*more, "--no-install-recommends", "--allow-downgrades", "-o", "Dpkg::Options::=--force-confold"]
    if request.preferences:
        options += ["-o", f"Dir::Etc::preferences={request.preferences}"]
    # A version without a revision means every revision of it and no other version: 1.17.8* would match 1.17.80.
    ending = "" if "-" in (request.version or "") or (request.version or "").endswith("*") else "-*"
    return _apt(*options, "install", *_versioned(request, "=", ending))


def _apt_remove(request: Request, *options: str) -> list[str]:
    return _apt(*options, "-o", "APT::Get::AutomaticRemove=false", "purge", *request.names)


def _apt_concerned(words: str) -> list[str]:
    """Find the packages that a simulation removes."""
    return re.findall(r"^(?:Remv|Purg) (\S+)", words, re.MULTILINE)


def _versioned(request: Request, separator: str, ending: str = "") -> list[str]:
    suffix = f"{separator}{request.version}{ending}" if request.version else ""
    return [name if name in request.unversioned else name + suffix for name in request.names]


def _dnf(*words: str) -> list[str]:
    # Both options have these names with dnf 4 and dnf 5, which call --noautoremove differently.
    options = ["--setopt=exit_on_lock=True", "--setopt=clean_requirements_on_remove=False"]
    return ["dnf", "--assumeyes", "--quiet", *options, *words]


def _dnf_here(*words: str) -> list[str]:
    """Return a command on what is installed alone: a repository that cannot be read is no hindrance."""
    return _dnf("--disablerepo=*", *words)


def _zypper(*words: str) -> list[str]:
    return ["zypper", "--non-interactive", *words]


def _zypper_here(*words: str) -> list[str]:
    """Return a command on what is installed alone, for which no repository is read anew."""
    return _zypper("--no-refresh", *words)


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


def _dnf_holds(words: str) -> list[str]:
    """Find NAME in "NAME-EPOCH:VERSION-RELEASE.*", as dnf 4 lists it, or in "Package name: NAME", as dnf 5 does."""
    older = re.findall(r"^(\S+)-\d+:[^-\s]+-[^-\s]+$", words, re.MULTILINE)
    return older + re.findall(r"^Package name: (\S+)", words, re.MULTILINE)


def _zypper_install(request: Request) -> list[str]:
    # It alone asks about licences, such as NVIDIA's, and takes no answer for no. Who asks for the packages has decided.
    install = ["install", "--auto-agree-with-licenses"]
    if not request.version:
        return _zypper(*install, *request.names)
    # The first option lets the packages themselves go down, the second what depends on them in the same version.
    options = ["--oldpackage", "--allow-downgrade"]
    if not request.version.endswith(".*"):
        return _zypper(*install, *options, *_rpm_versioned(request, "="))
    return _zypper(*install, *options, *_rpm_versioned(replace(request, version=_next(request.version)), "<"))


def _next(branch: str) -> str:
    """Return the first version after a branch, 1.18 for 1.17.*, since zypper knows relations and no patterns."""
    numbers = branch[: -len(".*")].split(".")
    if not numbers[-1].isdigit():
        raise PackageError(f"zypper takes no versions like {branch}: give the whole version")
    return ".".join([*numbers[:-1], str(int(numbers[-1]) + 1)])


def _zypper_offers(words: str) -> list[tuple[str, str]]:
    return re.findall(r'<solvable [^>]*\bname="([^"]+)"[^>]*\bedition="([^"]+)"', words)


def _zypper_column(number: int, first: str = r"\d+|i\S*") -> Callable[[str], list[str]]:
    """Return a reader of one column, counted from 0, of zypper's tables, whose lines begin with a number or a status like *first*."""

    def names(words: str) -> list[str]:
        rows = [[cell.strip() for cell in line.split("|")] for line in words.splitlines()]
        return [row[number] for row in rows if len(row) > number and re.fullmatch(first, row[0])]

    return names


def _pacman_install(request: Request) -> list[str]:
    if request.version:
        raise PackageError("pacman installs only the version of its repository: leave the version out")
    return ["pacman", "--sync", "--noconfirm", "--needed", *request.names]


_RPM_LISTING = ["rpm", "--query", "--all", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE} %{ARCH}\\n"]

# Removing names what is to go and nothing else: what is unused beside it is not ours to judge.
MANAGERS: dict[str, Manager] = {
    "apt": Manager(
        install=_apt_install,
        remove=_apt_remove,
        # Our own holds are let go only when it is meant; those of others do not go unnoticed, since it names all that would go.
        rehearse=lambda request: _apt_remove(request, "--simulate", "--allow-change-held-packages"),
        concerned=_apt_concerned,
        prefer=preferring,
        # The others remove nothing for a conflict unless they are told to.
        foresee=lambda request: _apt_install(request, "--simulate", "--allow-change-held-packages"),
        refresh=_apt_refresh,
        listing=["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package} ${Version}\\n"],
        # What is merely suggested was never installed for that; what is recommended, whoever came since would have got.
        unneeded=_apt("--simulate", "-o", "APT::AutoRemove::SuggestsImportant=false", "autoremove"),
        unneeded_names=_apt_concerned,
        requested=["apt-mark", "showmanual"],
        holding=Holding(
            listing=["apt-mark", "showhold"],
            names=str.split,
            hold=["apt-mark", "hold"],
            release=["apt-mark", "unhold"],
        ),
        offered=["apt-cache", "madison"],
        offers=lambda words: re.findall(r"^ *(\S+) \| *(\S+) \|", words, re.MULTILINE),
        kept=re.compile("[Hh]eld (?:broken )?packages"),
        mend=("dpkg", "--force-confold", "--configure", "--pending"),
    ),
    "dnf": Manager(
        install=lambda request: _dnf("install", *_rpm_versioned(request, "-")),
        remove=lambda request: _dnf_here("remove", *request.names),
        rehearse=_rpm_rehearse,
        concerned=_rpm_concerned,
        listing=_RPM_LISTING,
        # dnf 4 takes no --installed beside it
        unneeded=_dnf_here("repoquery", "--unneeded", "--queryformat", "%{name}\\n"),
        unneeded_names=str.split,
        requested=_dnf_here("repoquery", "--userinstalled", "--queryformat", "%{name}\\n"),
        holding=Holding(
            listing=_dnf_here("versionlock", "list"),
            names=_dnf_holds,
            hold=_dnf_here("versionlock", "add"),
            release=_dnf_here("versionlock", "delete"),
        ),
        # dnf 5 ends no line by itself
        offered=[*_dnf("repoquery", "--available"), "--queryformat", "%{name} %{version}-%{release}\\n"],
        offers=lambda words: re.findall(r"^(\S+) (\S+)$", words, re.MULTILINE),
        # It trusts its lists for 48 hours, in which a version may have come.
        refresh=lambda _request: _dnf("--refresh", "makecache"),
        stale=re.compile("No match for argument|Unable to find a match"),
        # dnf 4 has the first of these, dnf 5 the second
        disown=(_dnf_here("mark", "remove"), _dnf_here("mark", "dependency")),
    ),
    "zypper": Manager(
        install=_zypper_install,
        remove=lambda request: _zypper_here("remove", "--no-clean-deps", *request.names),
        rehearse=_rpm_rehearse,
        concerned=_rpm_concerned,
        listing=_RPM_LISTING,
        unneeded=_zypper_here("--quiet", "packages", "--unneeded"),
        unneeded_names=_zypper_column(2),
        # older ones do not know --userinstalled
        requested=_zypper_here("--quiet", "packages", "--installed-only"),
        requested_names=_zypper_column(2, r"i\+\S*"),
        holding=Holding(
            listing=_zypper("--quiet", "locks"),
            names=_zypper_column(1),
            hold=_zypper("addlock"),
            release=_zypper("removelock"),
        ),
        offered=_zypper("--quiet", "--xmlout", "search", "--details", "--match-exact", "--type", "package"),
        offers=_zypper_offers,
        falls=True,
        # Done, but: a reboot or restart is due, or another repository could not be read. 107 is none of them: a package's script failed.
        fine=frozenset([0, 102, 103, 106]),
    ),
    "pacman": Manager(
        install=_pacman_install,
        remove=lambda request: ["pacman", "--remove", "--nosave", "--noconfirm", *request.names],
        rehearse=lambda request: ["pacman", "--remove", "--print", "--noconfirm", *request.names],
        concerned=lambda words: re.findall(r"breaks dependency .* required by (\S+)", words),
        listing=["pacman", "--query"],
        unneeded=["pacman", "--query", "--deps", "--unrequired", "--quiet"],
        unneeded_names=str.split,
        requested=["pacman", "--query", "--explicit", "--quiet"],
        lock="/var/lib/pacman/db.lck",
        # Not before it is needed: what was there before does not always run with the libraries of a newer database.
        refresh=lambda _request: ["pacman", "--sync", "--refresh", "--noconfirm"],
        stale=re.compile("target not found|failed retrieving file|failed to retrieve|database '[^']*' is not valid"),
    ),
}
