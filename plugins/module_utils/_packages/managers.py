# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of each package manager, and parsers of their output."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Callable, ContextManager, Pattern

from .apt import prefer_version
from .request import PackageError, Request
from .runner import LOCK_TIMEOUT


@dataclass(frozen=True)
class HoldCommands:
    """How a package manager holds packages at their versions.

    ``parse_holds`` reads the output of ``list_holds``; ``hold`` and ``release`` are commands without the names.
    """

    list_holds: list[str]
    parse_holds: Callable[[str], list[str]]
    hold: list[str]
    release: list[str]


@dataclass(frozen=True)
class Manager:
    """One package manager.

    ``refresh`` is None if an installation refreshes the lists itself; with ``stale_error`` it runs only after an error that matches.
    ``simulate_remove`` and ``simulate_install`` change nothing; ``parse_affected`` finds the other affected packages in their output.
    ``simulate_install`` is None if an installation never removes packages.
    ``prefer`` is a context in which dependencies get the chosen version too.
    ``list_installed`` prints a name and a version a line, and with rpm an architecture. ``list_unneeded`` prints dependencies that no
    package needs any more, ``list_requested`` the packages that someone requested; their parsers return the names.
    ``list_available`` is a command without the names that prints all versions of packages; ``parse_available`` returns names and versions.
    With ``may_downgrade``, the installation of a branch may choose an older branch. ``hold_error`` matches errors caused by holds.
    An interrupted transaction may leave dependencies that count as requested: the first working command of ``mark_dependency`` corrects
    that. It may also leave a ``lock_file``, or incomplete packages, which ``repair`` completes.
    ``success_codes`` are the exit statuses of a success.
    """

    install: Callable[[Request], list[str]]
    remove: Callable[[Request], list[str]]
    simulate_remove: Callable[[Request], list[str]]
    parse_affected: Callable[[str], list[str]]
    list_installed: list[str]
    list_unneeded: list[str]
    parse_unneeded: Callable[[str], list[str]]
    list_requested: list[str]
    parse_requested: Callable[[str], list[str]] = str.split
    prefer: Callable[[Request], ContextManager[Request]] = nullcontext
    simulate_install: Callable[[Request], list[str]] | None = None
    hold_commands: HoldCommands | None = None
    list_available: list[str] | None = None
    parse_available: Callable[[str], list[tuple[str, str]]] = lambda _words: []
    may_downgrade: bool = False
    hold_error: Pattern[str] | None = None
    mark_dependency: tuple[list[str], ...] = ()
    lock_file: str | None = None
    repair: tuple[str, ...] = ()
    refresh: Callable[[Request], list[str]] | None = None
    stale_error: Pattern[str] | None = None
    success_codes: frozenset[int] = frozenset([0])


def _apt(*words: str) -> list[str]:
    # Without Pattern-Only, apt reads an unknown name with a dot as a regular expression.
    options = ["-o", f"DPkg::Lock::Timeout={LOCK_TIMEOUT}", "-o", "APT::Cmd::Pattern-Only=true"]
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
    # A version without a revision matches each revision of it and no other version: 1.17.8* would match 1.17.80.
    ending = "" if "-" in (request.version or "") or (request.version or "").endswith("*") else "-*"
    return _apt(*options, "install", *_add_version(request, "=", ending))


def _apt_remove(request: Request, *options: str) -> list[str]:
    return _apt(*options, "-o", "APT::Get::AutomaticRemove=false", "purge", *request.names)


def _parse_apt_removals(words: str) -> list[str]:
    """Find the packages that a simulation removes."""
    return re.findall(r"^(?:Remv|Purg) (\S+)", words, re.MULTILINE)


def _add_version(request: Request, separator: str, ending: str = "") -> list[str]:
    suffix = f"{separator}{request.version}{ending}" if request.version else ""
    return [name if name in request.unversioned else name + suffix for name in request.names]


def _dnf(*words: str) -> list[str]:
    # These options have the same names in dnf 4 and dnf 5, unlike --noautoremove.
    options = ["--setopt=exit_on_lock=True", "--setopt=clean_requirements_on_remove=False"]
    return ["dnf", "--assumeyes", "--quiet", *options, *words]


def _dnf_offline(*words: str) -> list[str]:
    """Return a command for installed packages, which does not fail for an unreachable repository."""
    return _dnf("--disablerepo=*", *words)


def _zypper(*words: str) -> list[str]:
    return ["zypper", "--non-interactive", *words]


def _zypper_offline(*words: str) -> list[str]:
    """Return a command for installed packages, which refreshes no repository."""
    return _zypper("--no-refresh", *words)


def _add_rpm_version(request: Request, separator: str) -> list[str]:
    if ":" in (request.version or ""):
        raise PackageError(f"The version {request.version} has an epoch, which rpm does not report: leave it out")
    return _add_version(request, separator)


def _rpm_simulate_remove(request: Request) -> list[str]:
    """Use rpm itself to find dependents: its output is the same with each version of dnf and zypper."""
    return ["rpm", "--erase", "--test", "--allmatches", *request.names]


def _parse_rpm_dependents(words: str) -> list[str]:
    """Find NAME in "something is needed by (installed) NAME-VERSION-RELEASE.ARCH"."""
    return [package.rsplit("-", 2)[0] for package in re.findall(r"is needed by \(installed\) (\S+)", words)]


def _parse_dnf_holds(words: str) -> list[str]:
    """Find NAME in "NAME-EPOCH:VERSION-RELEASE.*", as dnf 4 lists it, or in "Package name: NAME", as dnf 5 does."""
    older = re.findall(r"^(\S+)-\d+:[^-\s]+-[^-\s]+$", words, re.MULTILINE)
    return older + re.findall(r"^Package name: (\S+)", words, re.MULTILINE)


def _zypper_install(request: Request) -> list[str]:
    # Only zypper prompts for licences, such as NVIDIA's, and installs nothing without agreement.
    install = ["install", "--auto-agree-with-licenses"]
    if not request.version:
        return _zypper(*install, *request.names)
    # The first option permits a downgrade of the packages, the second one of their dependents.
    options = ["--oldpackage", "--allow-downgrade"]
    if not request.version.endswith(".*"):
        return _zypper(*install, *options, *_add_rpm_version(request, "="))
    return _zypper(
        *install, *options, *_add_rpm_version(replace(request, version=_get_next_version(request.version)), "<")
    )


def _get_next_version(branch: str) -> str:
    """Return the first version after a branch, 1.18 for 1.17.*: zypper supports relations, and no patterns."""
    numbers = branch[: -len(".*")].split(".")
    if not numbers[-1].isdigit():
        raise PackageError(f"zypper does not support versions such as {branch}: set the whole version")
    return ".".join([*numbers[:-1], str(int(numbers[-1]) + 1)])


def _parse_zypper_available(words: str) -> list[tuple[str, str]]:
    return re.findall(r'<solvable [^>]*\bname="([^"]+)"[^>]*\bedition="([^"]+)"', words)


def _make_column_parser(number: int, first: str = r"\d+|i\S*") -> Callable[[str], list[str]]:
    """Return a reader of one column, counted from 0, of zypper's tables, whose lines begin with a number or a status like *first*."""

    def parse(words: str) -> list[str]:
        rows = [[cell.strip() for cell in line.split("|")] for line in words.splitlines()]
        return [row[number] for row in rows if len(row) > number and re.fullmatch(first, row[0])]

    return parse


def _pacman_install(request: Request) -> list[str]:
    if request.version:
        raise PackageError("pacman installs only the version of its repository: leave the version out")
    return ["pacman", "--sync", "--noconfirm", "--needed", *request.names]


_RPM_LISTING = ["rpm", "--query", "--all", "--queryformat", "%{NAME} %{VERSION}-%{RELEASE} %{ARCH}\\n"]

# A removal names its packages. Other unneeded packages are unmanaged and stay.
MANAGERS: dict[str, Manager] = {
    "apt": Manager(
        install=_apt_install,
        remove=_apt_remove,
        # Managed holds are released only before the real removal. The simulation lists all packages, so that unmanaged holds are found.
        simulate_remove=lambda request: _apt_remove(request, "--simulate", "--allow-change-held-packages"),
        parse_affected=_parse_apt_removals,
        prefer=prefer_version,
        # Other managers remove nothing for a conflict without an option.
        simulate_install=lambda request: _apt_install(request, "--simulate", "--allow-change-held-packages"),
        refresh=_apt_refresh,
        list_installed=["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package} ${Version}\\n"],
        # A suggestion does not keep a package. A recommendation does, because apt installs recommended packages by default.
        list_unneeded=_apt("--simulate", "-o", "APT::AutoRemove::SuggestsImportant=false", "autoremove"),
        parse_unneeded=_parse_apt_removals,
        list_requested=["apt-mark", "showmanual"],
        hold_commands=HoldCommands(
            list_holds=["apt-mark", "showhold"],
            parse_holds=str.split,
            hold=["apt-mark", "hold"],
            release=["apt-mark", "unhold"],
        ),
        list_available=["apt-cache", "madison"],
        parse_available=lambda words: re.findall(r"^ *(\S+) \| *(\S+) \|", words, re.MULTILINE),
        hold_error=re.compile("[Hh]eld (?:broken )?packages"),
        repair=("dpkg", "--force-confold", "--configure", "--pending"),
    ),
    "dnf": Manager(
        install=lambda request: _dnf("install", *_add_rpm_version(request, "-")),
        remove=lambda request: _dnf_offline("remove", *request.names),
        simulate_remove=_rpm_simulate_remove,
        parse_affected=_parse_rpm_dependents,
        list_installed=_RPM_LISTING,
        # dnf 4 rejects it together with --installed.
        list_unneeded=_dnf_offline("repoquery", "--unneeded", "--queryformat", "%{name}\\n"),
        parse_unneeded=str.split,
        list_requested=_dnf_offline("repoquery", "--userinstalled", "--queryformat", "%{name}\\n"),
        hold_commands=HoldCommands(
            list_holds=_dnf_offline("versionlock", "list"),
            parse_holds=_parse_dnf_holds,
            hold=_dnf_offline("versionlock", "add"),
            release=_dnf_offline("versionlock", "delete"),
        ),
        # dnf 5 adds no line ends.
        list_available=[*_dnf("repoquery", "--available"), "--queryformat", "%{name} %{version}-%{release}\\n"],
        parse_available=lambda words: re.findall(r"^(\S+) (\S+)$", words, re.MULTILINE),
        # dnf does not refresh its lists for 48 hours, and new versions may be missing.
        refresh=lambda _request: _dnf("--refresh", "makecache"),
        stale_error=re.compile("No match for argument|Unable to find a match"),
        # The first one is for dnf 4, the second one for dnf 5.
        mark_dependency=(_dnf_offline("mark", "remove"), _dnf_offline("mark", "dependency")),
    ),
    "zypper": Manager(
        install=_zypper_install,
        remove=lambda request: _zypper_offline("remove", "--no-clean-deps", *request.names),
        simulate_remove=_rpm_simulate_remove,
        parse_affected=_parse_rpm_dependents,
        list_installed=_RPM_LISTING,
        list_unneeded=_zypper_offline("--quiet", "packages", "--unneeded"),
        parse_unneeded=_make_column_parser(2),
        # Older versions do not support --userinstalled.
        list_requested=_zypper_offline("--quiet", "packages", "--installed-only"),
        parse_requested=_make_column_parser(2, r"i\+\S*"),
        hold_commands=HoldCommands(
            list_holds=_zypper("--quiet", "locks"),
            parse_holds=_make_column_parser(1),
            hold=_zypper("addlock"),
            release=_zypper("removelock"),
        ),
        list_available=_zypper("--quiet", "--xmlout", "search", "--details", "--match-exact", "--type", "package"),
        parse_available=_parse_zypper_available,
        may_downgrade=True,
        # A reboot or restart is required, or another repository is unreachable. 107 is an error: a package's script failed.
        success_codes=frozenset([0, 102, 103, 106]),
    ),
    "pacman": Manager(
        install=_pacman_install,
        remove=lambda request: ["pacman", "--remove", "--nosave", "--noconfirm", *request.names],
        simulate_remove=lambda request: ["pacman", "--remove", "--print", "--noconfirm", *request.names],
        parse_affected=lambda words: re.findall(r"breaks dependency .* required by (\S+)", words),
        list_installed=["pacman", "--query"],
        list_unneeded=["pacman", "--query", "--deps", "--unrequired", "--quiet"],
        parse_unneeded=str.split,
        list_requested=["pacman", "--query", "--explicit", "--quiet"],
        lock_file="/var/lib/pacman/db.lck",
        # Only if required: installed programs may not run with the libraries of a newer database.
        refresh=lambda _request: ["pacman", "--sync", "--refresh", "--noconfirm"],
        stale_error=re.compile(
            "target not found|failed retrieving file|failed to retrieve|database '[^']*' is not valid"
        ),
    ),
}
