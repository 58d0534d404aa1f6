# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages installed, kept from being changed, and all of it taken back: a transaction with its record and its holds."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Callable, Iterable, Iterator, Sequence

from . import record as records
from .managers import MANAGERS, Holding, Manager
from .patience import Runner, break_stale_lock, run_patiently
from .record import Record
from .request import Installed, PackageError, Request, pending
from .transaction import apply, available, holds, perform, removable, unneeded


@dataclass(frozen=True)
class Wish:
    """A request, with the file that remembers what came of it and whether its packages are to be on hold (None: as they are)."""

    request: Request
    record: str | None = None
    hold: bool | None = None


@dataclass(frozen=True)
class Outcome:
    """What a wish changed, or would: ``packages`` that were not as asked for, with their versions ``before``, and holds.

    ``way`` is what an earlier wish brought that makes way for them, where the package manager foresees it.
    """

    before: Installed
    packages: tuple[str, ...]
    held: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    forgotten: bool = False
    way: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything is, be it that a record of packages which are gone already is taken away."""
        return bool(self.packages or self.held or self.released or self.forgotten)


def keep(
    manager: str, wish: Wish, query: Callable[[Sequence[str]], Installed], run: Runner, check_mode: bool
) -> Outcome:
    """Bring the packages, their holds and their record to what is wished for.  Raises PackageError."""
    return (_present if wish.request.present else _absent)(MANAGERS[manager], manager, wish, query, run, check_mode)


def ask(manager: str, wish: Wish, query: Callable[[Sequence[str]], Installed], run: Runner) -> Outcome:
    """Return what would be changed of the packages, without holds.  Raises PackageError if they cannot be had."""
    chosen = MANAGERS[manager]
    record = records.read(wish.record) if wish.record else Record()
    request = _informed(chosen, wish.request, record, run)
    return Outcome(*available(manager, request, lambda: query(request.names), run))


def _present(
    chosen: Manager,
    manager: str,
    wish: Wish,
    query: Callable[[Sequence[str]], Installed],
    run: Runner,
    check_mode: bool,
) -> Outcome:
    if wish.hold is not None and chosen.holding is None:
        raise PackageError(f"{manager} is not asked to hold packages: leave hold out")
    record = records.read(wish.record) if wish.record else Record()
    interrupted = record.before is not None and not check_mode
    if interrupted:
        _mend(chosen, run)
    request = _informed(chosen, wish.request, record, run)
    names = pending(request, query(request.names))
    holds_before = holds(chosen, run) if record.held or wish.hold is not None else set()
    if names and wish.record and not check_mode:
        # Written first: a run that is killed while it installs must not leave packages that nobody takes out again.
        record = _begun(chosen, record, request, run)
        records.write(wish.record, record)
    try:
        with _let_go(chosen, holds_before & set(record.held) if names and not check_mode else set(), run):
            before, names, way = apply(manager, request, lambda: query(request.names), run, check_mode)
    finally:
        # Also if it failed: whatever comes later is not this request's.
        if wish.record and record.before is not None and not check_mode:
            record = _settled(chosen, record, request, run, interrupted)
            records.write(wish.record, record)
    if wish.hold is None or chosen.holding is None:
        return Outcome(before, names, way=way)
    held, released = _wanted_holds(wish, record, names if check_mode else (), holds_before)
    if not check_mode:
        _hold(chosen, chosen.holding, wish, record, held, released, run)
    return Outcome(before, names, held, released, way=way)


def _begun(chosen: Manager, record: Record, request: Request, run: Runner) -> Record:
    """Return the record before a transaction."""
    before = record.before
    if before is None:
        rows = _rows(chosen, run)
        # By their long names too: who goes on with this may ask for one so that was there under its short name.
        long = (name for words in rows for name in _long_names(words))
        before = tuple(sorted({*_called(rows, _asked(record, request)), *long}))
    # Their names are those of what they bring, also for a run that goes on with this one and asks for others or none.
    return replace(record, before=before, free=tuple(sorted({*record.free, *request.unversioned})))


def _informed(chosen: Manager, request: Request, record: Record, run: Runner) -> Request:
    """Return a request that knows what an earlier one put on hold and brought, be it cut off."""
    fresh = set() if record.before is None else set(_there(chosen, record, request, run)) - set(record.before)
    own = frozenset({*record.packages, *fresh})
    return replace(request, own_holds=frozenset(record.held), own=own, company=frozenset(record.company))


def _wanted_holds(
    wish: Wish, record: Record, fresh: Sequence[str], now: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is to be put on hold, and what is to be let go of that an earlier request put on hold.

    *fresh* are those that a check mode would install, which the package manager does not know yet.
    """
    # Also what was there before: one part of a driver that others move is as bad as any.
    known = set(record.packages) | set(wish.request.names)
    if wish.hold:
        # What was asked for in whatever version may be asked for no more, such as the headers of a former kernel.
        free = wish.request.unversioned | (set(record.free) - set(wish.request.names))
        return tuple(sorted((known | set(fresh)) - free - now)), ()
    return (), tuple(sorted(set(record.held) & now))


def _hold(
    chosen: Manager,
    holding: Holding,
    wish: Wish,
    record: Record,
    held: Sequence[str],
    released: Sequence[str],
    run: Runner,
) -> None:
    if wish.record and (held or released):
        kept = tuple(sorted({*record.held, *held} - set(released)))
        records.write(wish.record, replace(record, held=kept))
    _do(chosen, holding.hold, held, run)
    _do(chosen, holding.release, released, run)


def _absent(
    chosen: Manager,
    manager: str,
    wish: Wish,
    query: Callable[[Sequence[str]], Installed],
    run: Runner,
    check_mode: bool,
) -> Outcome:
    record = noted = records.read(wish.record) if wish.record else Record()
    if record.before is not None:
        if not check_mode:
            _mend(chosen, run)
        record = _settled(chosen, record, wish.request, run, interrupted=not check_mode)
    # With a record, what is not in it was there before, and stays.
    names = record.packages if wish.record else wish.request.names
    request = replace(wish.request, names=names, own_holds=frozenset(record.held), company=frozenset(record.company))
    ours = set(record.held) if not check_mode and pending(request, query(names)) else set()
    with _let_go(chosen, ours & holds(chosen, run) if ours else ours, run):
        before, gone, _way = apply(manager, request, lambda: query((*names, *record.company)), run, check_mode)
    gone += _remove_company(chosen, manager, set(record.company) - set(gone), query, run, check_mode)
    # Those of packages that were there before.
    released = tuple(sorted((set(record.held) - set(gone)) & holds(chosen, run))) if record.held else ()
    if not check_mode:
        if chosen.holding is not None:
            _do(chosen, chosen.holding.release, released, run)
        if wish.record:
            records.write(wish.record, Record())
    return Outcome(before, gone, released=released, forgotten=noted != Record())


def _remove_company(
    chosen: Manager,
    manager: str,
    company: set[str],
    query: Callable[[Sequence[str]], Installed],
    run: Runner,
    check_mode: bool,
) -> tuple[str, ...]:
    """Remove what came with the packages and nothing needs any more; what somebody asked for or put on hold since stays.

    So does what a package of others needs, even if nothing needs that one. Returns what went; in check mode what nothing needs already.
    """
    gone: tuple[str, ...] = ()
    while company - set(gone):
        left = unneeded(chosen, sorted(company - set(gone)), run)
        names = removable(manager, sorted(left - holds(chosen, run)), run) if left else ()
        if names and not check_mode:
            rest = Request(names, present=False)
            apply(manager, rest, lambda: query(rest.names), run)  # noqa: B023
        gone += names
        if not names or check_mode:
            break
    return gone


def _settled(chosen: Manager, record: Record, request: Request, run: Runner, interrupted: bool) -> Record:
    """Return the record after a transaction. Of one that was killed the manager is told what came for others, which it did not note.

    What came with an earlier one stays as it is: somebody may have asked for it since.
    """
    settled = record.settled(request, _there(chosen, record, request, run))
    fresh = sorted(set(settled.company) - set(record.company))
    for command in chosen.disown if interrupted and fresh else ():
        if run_patiently([*command, *fresh], run)[0] in chosen.fine:
            break
    return settled


@contextmanager
def _let_go(chosen: Manager, held: set[str], run: Runner) -> Iterator[None]:
    """Let our own holds go meanwhile: a hold on one part of a driver keeps all others at its version.

    Those that are still installed are put on again, also if the transaction fails. A run that is killed leaves that to the next.
    """
    if chosen.holding is None or not held:
        yield
        return
    _do(chosen, chosen.holding.release, sorted(held), run)
    try:
        yield
    finally:
        _do(chosen, chosen.holding.hold, sorted(held & set(_installed(chosen, held, run))), run)


def _mend(chosen: Manager, run: Runner) -> None:
    """Take away what a killed transaction keeps the next one from beginning with.

    What cannot be finished, such as a kernel module that does not build, the transaction tells, unless it removes it.
    """
    if chosen.lock:
        break_stale_lock(chosen.lock)
    if chosen.mend:
        run_patiently(chosen.mend, run)


def _do(chosen: Manager, command: Sequence[str], names: Sequence[str], run: Runner) -> None:
    if names:
        perform(chosen, [*command, *names], names, run)


def _there(chosen: Manager, record: Record, request: Request, run: Runner) -> dict[str, str]:
    """All installed packages with their versions, those that are or were asked for by the names that they were asked for with."""
    return _installed(chosen, _asked(record, request), run)


def _asked(record: Record, request: Request) -> set[str]:
    return {*request.names, *record.packages, *record.free}


def _installed(chosen: Manager, asked: Iterable[str], run: Runner) -> dict[str, str]:
    """All installed packages with their versions, called as in *asked*."""
    return _called(_rows(chosen, run), set(asked))


def _rows(chosen: Manager, run: Runner) -> list[list[str]]:
    """Name, version and, with rpm, architecture of all installed packages."""
    output = perform(chosen, chosen.listing, [], run)
    lines = [line.split() for line in output.splitlines()]
    # dpkg also tells of those that were removed and left their configuration; one that is there by half has to go by whole.
    gone = ("not-installed", "config-files")
    rows = [words[1:] for words in lines if words[0] not in gone] if chosen.listing[0] == "dpkg-query" else lines
    return [words for words in rows if len(words) >= 2]


def _called(rows: Iterable[Sequence[str]], asked: set[str]) -> dict[str, str]:
    """Versions by name.

    Those *asked* for as NAME-VERSION are called so, as kernel-devel is, of which several versions may be installed, some of them somebody's.
    """
    return {next((name for name in _long_names(words) if name in asked), words[0]): words[1] for words in rows}


def _long_names(words: Sequence[str]) -> list[str]:
    """What else rpm takes for the name of a package."""
    return [f"{words[0]}-{words[1]}.{words[2]}", f"{words[0]}-{words[1]}"] if len(words) > 2 else []
