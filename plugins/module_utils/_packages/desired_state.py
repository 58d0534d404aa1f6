# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired state of packages: a transaction with its record and its holds."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Callable, Iterable, Iterator, Sequence

from . import record as records
from .managers import MANAGERS, HoldCommands, Manager
from .record import Record
from .request import Installed, PackageError, Request, find_pending
from .runner import Runner, break_stale_lock, run_with_lock_wait
from .transaction import apply, check_available, find_removable, find_unneeded, list_holds, run_command


@dataclass(frozen=True)
class Desired:
    """A request, with the path of its record, and whether its packages should be on hold (None: holds do not change)."""

    request: Request
    record: str | None = None
    hold: bool | None = None


@dataclass(frozen=True)
class Outcome:
    """The changes of packages, with their versions ``before``, and of holds; in check mode the planned ones.

    ``removed`` are managed packages that conflict with them, if the package manager can predict that.
    """

    before: Installed
    packages: tuple[str, ...]
    held: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    record_removed: bool = False
    removed: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything changes. Removing the record of packages that are not installed counts too."""
        return bool(self.packages or self.held or self.released or self.record_removed)


def apply_desired(
    manager: str, desired: Desired, query: Callable[[Sequence[str]], Installed], run: Runner, check_mode: bool
) -> Outcome:
    """Bring the packages, their holds and their record into the desired state. Raises PackageError."""
    return (_apply_present if desired.request.present else _apply_absent)(
        MANAGERS[manager], manager, desired, query, run, check_mode
    )


def plan_changes(manager: str, desired: Desired, query: Callable[[Sequence[str]], Installed], run: Runner) -> Outcome:
    """Return the planned changes of packages, without holds. Raises PackageError if the packages are not available."""
    commands = MANAGERS[manager]
    record = records.read(desired.record) if desired.record else Record()
    request = _add_managed_packages(commands, desired.request, record, run)
    return Outcome(*check_available(manager, request, lambda: query(request.names), run))


def _apply_present(
    commands: Manager,
    manager: str,
    desired: Desired,
    query: Callable[[Sequence[str]], Installed],
    run: Runner,
    check_mode: bool,
) -> Outcome:
    if desired.hold is not None and commands.hold_commands is None:
        raise PackageError(f"hold is not supported with {manager}: leave it out")
    record = records.read(desired.record) if desired.record else Record()
    interrupted = record.before is not None and not check_mode
    if interrupted:
        _repair_interrupted(commands, run)
    request = _add_managed_packages(commands, desired.request, record, run)
    names = find_pending(request, query(request.names))
    holds_before = list_holds(commands, run) if record.held or desired.hold is not None else set()
    if names and desired.record and not check_mode:
        # Written first, so that an interrupted run leaves no packages that the undo does not know.
        record = _start_record(commands, record, request, run)
        records.write(desired.record, record)
    try:
        with _suspend_holds(commands, holds_before & set(record.held) if names and not check_mode else set(), run):
            before, names, removed = apply(manager, request, lambda: query(request.names), run, check_mode)
    finally:
        # Also after a failure: packages that are installed later do not belong to this request.
        if desired.record and record.before is not None and not check_mode:
            record = _complete_record(commands, record, request, run, interrupted)
            records.write(desired.record, record)
    if desired.hold is None or commands.hold_commands is None:
        return Outcome(before, names, removed=removed)
    held, released = _plan_holds(desired, record, names if check_mode else (), holds_before)
    if not check_mode:
        _change_holds(commands, commands.hold_commands, desired, record, held, released, run)
    return Outcome(before, names, held, released, removed=removed)


def _start_record(commands: Manager, record: Record, request: Request, run: Runner) -> Record:
    """Return the record before a transaction."""
    before = record.before
    if before is None:
        rows = _read_rows(commands, run)
        # With their long names: the next run may request one of these by its long name.
        long_names = (name for words in rows for name in _get_long_names(words))
        before = tuple(sorted({*_map_versions(rows, _get_requested_names(record, request)), *long_names}))
    # A run that resumes may request other packages, and needs these names to recognize the new packages.
    return replace(record, before=before, unversioned=tuple(sorted({*record.unversioned, *request.unversioned})))


def _add_managed_packages(commands: Manager, request: Request, record: Record, run: Runner) -> Request:
    """Return the request with the managed packages and holds of earlier runs, also of an interrupted one."""
    new = set() if record.before is None else set(_read_installed(commands, record, request, run)) - set(record.before)
    managed = frozenset({*record.packages, *new})
    return replace(
        request, managed_holds=frozenset(record.held), managed=managed, dependencies=frozenset(record.dependencies)
    )


def _plan_holds(
    desired: Desired, record: Record, new: Sequence[str], current: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the packages to put on hold, and those with a managed hold to release.

    *new* are the packages that a run would install; in check mode the package manager does not list them yet. *current* are on hold.
    """
    # Packages that were installed before are held too: an upgrade of one part breaks a driver.
    known = set(record.packages) | set(desired.request.names)
    if desired.hold:
        # Some unversioned packages are no longer requested, such as the headers of a former kernel.
        unversioned = desired.request.unversioned | (set(record.unversioned) - set(desired.request.names))
        return tuple(sorted((known | set(new)) - unversioned - current)), ()
    return (), tuple(sorted(set(record.held) & current))


def _change_holds(
    commands: Manager,
    hold_commands: HoldCommands,
    desired: Desired,
    record: Record,
    held: Sequence[str],
    released: Sequence[str],
    run: Runner,
) -> None:
    # A hold is on record as long as it may exist: else, after an interruption, it would count as a hold of others.
    managed = {*record.held, *held}
    if desired.record and held:
        records.write(desired.record, replace(record, held=tuple(sorted(managed))))
    _run_for_packages(commands, hold_commands.hold, held, run)
    _run_for_packages(commands, hold_commands.release, released, run)
    if desired.record and released:
        records.write(desired.record, replace(record, held=tuple(sorted(managed - set(released)))))


def _apply_absent(
    commands: Manager,
    manager: str,
    desired: Desired,
    query: Callable[[Sequence[str]], Installed],
    run: Runner,
    check_mode: bool,
) -> Outcome:
    record = original = records.read(desired.record) if desired.record else Record()
    if record.before is not None:
        if not check_mode:
            _repair_interrupted(commands, run)
        record = _complete_record(commands, record, desired.request, run, interrupted=not check_mode)
    # Packages that are not in an existing record were installed before, and stay.
    names = record.packages if desired.record else desired.request.names
    request = replace(
        desired.request, names=names, managed_holds=frozenset(record.held), dependencies=frozenset(record.dependencies)
    )
    managed = set(record.held) if not check_mode and find_pending(request, query(names)) else set()
    with _suspend_holds(commands, managed & list_holds(commands, run) if managed else managed, run):
        before, removed, _conflicting = apply(
            manager, request, lambda: query((*names, *record.dependencies)), run, check_mode
        )
    removed += _remove_dependencies(commands, manager, set(record.dependencies) - set(removed), query, run, check_mode)
    # Holds on packages that were installed before.
    released = tuple(sorted((set(record.held) - set(removed)) & list_holds(commands, run))) if record.held else ()
    if not check_mode:
        if commands.hold_commands is not None:
            _run_for_packages(commands, commands.hold_commands.release, released, run)
        if desired.record:
            records.write(desired.record, Record())
    return Outcome(before, removed, released=released, record_removed=original != Record())


def _remove_dependencies(
    commands: Manager,
    manager: str,
    dependencies: set[str],
    query: Callable[[Sequence[str]], Installed],
    run: Runner,
    check_mode: bool,
) -> tuple[str, ...]:
    """Remove the dependencies that nothing needs any more, and return them; in check mode those that nothing needs already.

    Dependencies stay if someone requested them, put them on hold, or installed a package that needs them.
    """
    removed: tuple[str, ...] = ()
    while dependencies - set(removed):
        left = find_unneeded(commands, sorted(dependencies - set(removed)), run)
        names = find_removable(manager, sorted(left - list_holds(commands, run)), run) if left else ()
        if names and not check_mode:
            rest = Request(names, present=False)
            apply(manager, rest, lambda: query(rest.names), run)  # noqa: B023
        removed += names
        if not names or check_mode:
            break
    return removed


def _complete_record(commands: Manager, record: Record, request: Request, run: Runner, interrupted: bool) -> Record:
    """Return the record after a transaction. After an interrupted one, mark its dependencies in the package manager, which did not do it.

    Dependencies of earlier transactions are not marked again: someone may have requested them since.
    """
    completed = record.complete(request, _read_installed(commands, record, request, run))
    new = sorted(set(completed.dependencies) - set(record.dependencies))
    for command in commands.mark_dependency if interrupted and new else ():
        if run_with_lock_wait([*command, *new], run)[0] in commands.success_codes:
            break
    return completed


@contextmanager
def _suspend_holds(commands: Manager, held: set[str], run: Runner) -> Iterator[None]:
    """Release the managed holds during a transaction: a hold on one part of a driver keeps all other parts at its version.

    Packages that are still installed get their holds again, also after a failure. After an interrupted run, the next one does this.
    """
    if commands.hold_commands is None or not held:
        yield
        return
    _run_for_packages(commands, commands.hold_commands.release, sorted(held), run)
    try:
        yield
    finally:
        _run_for_packages(
            commands, commands.hold_commands.hold, sorted(held & set(_read_versions(commands, held, run))), run
        )


def _repair_interrupted(commands: Manager, run: Runner) -> None:
    """Remove what an interrupted transaction left and what blocks the next one.

    If this fails, as for a kernel module that does not build, the next transaction reports it or removes the package.
    """
    if commands.lock_file:
        break_stale_lock(commands.lock_file)
    if commands.repair:
        run_with_lock_wait(commands.repair, run)


def _run_for_packages(commands: Manager, command: Sequence[str], names: Sequence[str], run: Runner) -> None:
    if names:
        run_command(commands, [*command, *names], names, run)


def _read_installed(commands: Manager, record: Record, request: Request, run: Runner) -> dict[str, str]:
    """The versions of all installed packages by name. Requested packages have their names from the request."""
    return _read_versions(commands, _get_requested_names(record, request), run)


def _get_requested_names(record: Record, request: Request) -> set[str]:
    return {*request.names, *record.packages, *record.unversioned}


def _read_versions(commands: Manager, requested: Iterable[str], run: Runner) -> dict[str, str]:
    """The versions of all installed packages by name, with the names in *requested*."""
    return _map_versions(_read_rows(commands, run), set(requested))


def _read_rows(commands: Manager, run: Runner) -> list[list[str]]:
    """Name, version and, with rpm, architecture of all installed packages."""
    output = run_command(commands, commands.list_installed, [], run)
    lines = [line.split() for line in output.splitlines()]
    # dpkg also lists removed packages that left their configuration. Incomplete packages count, so that they can be removed.
    absent = ("not-installed", "config-files")
    rows = (
        [words[1:] for words in lines if words[0] not in absent]
        if commands.list_installed[0] == "dpkg-query"
        else lines
    )
    return [words for words in rows if len(words) >= 2]


def _map_versions(rows: Iterable[Sequence[str]], requested: set[str]) -> dict[str, str]:
    """Versions by name.

    Packages that are *requested* as NAME-VERSION have this name: several versions of kernel-devel may be installed, some unmanaged.
    """
    return {next((name for name in _get_long_names(words) if name in requested), words[0]): words[1] for words in rows}


def _get_long_names(words: Sequence[str]) -> list[str]:
    """Other names by which rpm knows a package."""
    return [f"{words[0]}-{words[1]}.{words[2]}", f"{words[0]}-{words[1]}"] if len(words) > 2 else []
