# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Having packages installed or removed, and seeing that they are."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Callable, ContextManager, Sequence

from .managers import MANAGERS, Manager
from .patience import LOCKED, PATIENCE, Runner, last_words, run_patiently
from .request import Installed, PackageError, Request, beside, common, enumerated, pending, satisfied


def apply(
    manager: str, request: Request, query: Callable[[], Installed], run: Runner, check_mode: bool = False
) -> tuple[Installed, tuple[str, ...], tuple[str, ...]]:
    """Do what is asked, or in check mode only see whether it can be done.

    Returns what was installed before; the packages that were not as asked for, with those of their company that have to go
    with them; and what an earlier request brought that makes way for them, as far as the manager foresees it.
    ``run`` has to use the C locale. Raises PackageError: somebody else's hold is respected, nothing is installed or removed if
    other packages would go for it, and a manager that says that all is well is not believed.
    """
    before = query()
    names = pending(request, before)
    if not names:
        return before, names, ()
    chosen = MANAGERS[manager]
    rest = replace(request, names=names)
    _refuse_held(chosen, rest, before, run)
    if not request.present:
        rest = _with_company(chosen, rest, run)
    # What the manager cannot be asked for is refused before anything is done.
    command = chosen.install(rest) if request.present else chosen.remove(rest)
    way: tuple[str, ...] = ()
    if check_mode:
        if request.present:
            rest, way = _foreseen(chosen, request, before, run)
        return before, rest.names, way
    try:
        if request.present:
            rest, way = _install(manager, request, before, run)
        else:
            _succeed(chosen, command, rest, run)
        _believe(manager, rest, query())
    except PackageError as error:
        error.details["changed"] = query() != before
        raise
    return before, rest.names, way


def available(
    manager: str, request: Request, query: Callable[[], Installed], run: Runner
) -> tuple[Installed, tuple[str, ...]]:
    """See whether what is asked for is offered; nothing changes but the lists of the package manager, if they have not got it yet.

    Returns what is installed, and the packages that are not as asked for. Raises PackageError.
    """
    before = query()
    names = pending(request, before)
    chosen = MANAGERS[manager]
    left = replace(request, names=names)
    _refuse_held(chosen, left, before, run)
    # Of what is installed too: it may be asked for because it is to come back some day.
    if chosen.offered is not None and _lack(chosen, request, run):
        if chosen.refresh is not None:
            _succeed(chosen, chosen.refresh(request), request, run)
        _refuse_lack(manager, request, run)
    rest = _suited(manager, request, before, run) if names else left
    with _preferring(chosen, request, rest) as asked:
        _refuse_losses(chosen, asked, run)
    return before, rest.names


def perform(chosen: Manager, command: Sequence[str], names: Sequence[str], run: Runner) -> str:
    """Run a command on packages with patience and return its output.  Raises PackageError."""
    status, output, errors = run_patiently(command, run)
    if status not in chosen.fine:
        raise failure(command, names, output, errors)
    return output


def unneeded(chosen: Manager, names: Sequence[str], run: Runner) -> set[str]:
    """Return those of the packages that nothing needs any more.  Raises PackageError."""
    status, output, errors = run_patiently(chosen.unneeded, run)
    # pacman has a status of its own for none, and says nothing then.
    if status not in chosen.fine and errors.strip():
        raise failure(chosen.unneeded, names, output, errors)
    return set(names) & set(chosen.unneeded_names(output))


def holds(chosen: Manager, run: Runner) -> set[str]:
    """Return the packages that are on hold; none where nobody can tell."""
    if chosen.holding is None:
        return set()
    status, output, _errors = run_patiently(chosen.holding.listing, run)
    return set(chosen.holding.names(output)) if status in chosen.fine else set()


def removable(manager: str, names: Sequence[str], run: Runner) -> tuple[str, ...]:
    """Return those of the packages that can be removed, together, without anything else.  Raises PackageError."""
    chosen = MANAGERS[manager]

    def others(some: Sequence[str]) -> frozenset[str]:
        return _others(chosen, Request(tuple(some), present=False), run) if some else frozenset()

    if not others(names):
        return tuple(names)
    needing = {name: others([name]) for name in names}
    left = set(names)
    while any(needing[name] - left for name in left):
        left = {name for name in left if needing[name] <= left}
    # Of two that could each stand in for the other, something may need one.
    return () if others(sorted(left)) else tuple(sorted(left))


def _refuse_held(chosen: Manager, request: Request, installed: Installed, run: Runner) -> None:
    """Raise PackageError if a package to change is on a hold that is not the caller's."""
    names = [name for name in request.names if installed.get(name) and name not in request.own_holds]
    kept = holds(chosen, run) if names else set()
    held = [name for name in names if name in kept]
    if held:
        raise _kept(chosen, held)


def _kept(chosen: Manager, held: Sequence[str], **details: object) -> PackageError:
    """Return what is to be said of packages on a hold that is not the caller's."""
    release = chosen.holding.release if chosen.holding else []
    way = " ".join(word for word in [*release, *held] if not word.startswith("-"))
    return PackageError(
        f"Cannot change {enumerated(held)}, because somebody put a hold on it: let it go ({way}), or leave it as it is",
        **details,
    )


def _offers(chosen: Manager, names: Sequence[str], run: Runner) -> list[tuple[str, str]]:
    """Return the names and versions of the packages that are offered, by the lists that the manager has."""
    return chosen.offers(run_patiently([*(chosen.offered or []), *names], run)[1]) if names else []


def _missing(request: Request, offers: Sequence[tuple[str, str]]) -> list[str]:
    """Return the packages that are not offered in the version asked for."""
    there = {name for name, version in offers if satisfied(name, request, {name: version})}
    return [name for name in request.versioned if name not in there]


def _lack(chosen: Manager, request: Request, run: Runner) -> str:
    """Return what no repository has of what is asked for, nothing if each of it is somewhere."""
    missing = _missing(request, _offers(chosen, request.versioned, run))
    return (f"version {request.version} of " if request.version and missing else "") + enumerated(missing)


def _refuse_lack(manager: str, request: Request, run: Runner) -> None:
    """Raise PackageError if no repository has what is asked for."""
    lack = _lack(MANAGERS[manager], request, run)
    if lack:
        raise _unoffered(manager, lack)


def _unoffered(manager: str, lack: str) -> PackageError:
    return PackageError(
        f"{manager} has no {lack}: ask for one that its repositories have, or add a repository that has it"
    )


def _chooses(request: Request, offers: Sequence[tuple[str, str]]) -> bool:
    """Say whether a version has to be found that several packages have; one without a revision cannot be asked for upstream alone."""
    return request.together and len(request.versioned) > 1 and all("-" in version for _name, version in offers)


def _fit(chosen: Manager, request: Request, installed: Installed, run: Runner) -> Request | None:
    """Return what is left to install, in a version that fits what stays or that all have; None if none is offered."""
    rest = replace(request, names=pending(request, installed))
    wanted = beside(request, installed)
    if chosen.offered is None or not rest.versioned or not (wanted or _chooses(rest, ())):
        return rest
    offers = _offers(chosen, rest.versioned, run)
    if wanted:
        version = next((each for each in wanted if not _missing(replace(rest, version=each), offers)), None)
    elif _chooses(rest, offers):
        version = common(rest, offers, installed)
    else:
        return rest
    if version is None:
        return None
    rest = replace(rest, version=version)
    return replace(rest, names=tuple(name for name in rest.names if not satisfied(name, rest, installed)))


def _suited(manager: str, request: Request, installed: Installed, run: Runner, fresh: bool = False) -> Request:
    """Return what is left to install in the version that it is to be asked for in.  Raises PackageError if none is offered.

    The manager fetches its lists anew before it gives up, unless they are *fresh*.
    """
    chosen = MANAGERS[manager]
    wanted = beside(request, installed)
    rest = _fit(chosen, request, installed, run)
    if rest is None and chosen.refresh is not None and not fresh:
        _succeed(chosen, chosen.refresh(request), request, run)
        rest = _fit(chosen, request, installed, run)
    if rest is None:
        left = replace(request, names=pending(request, installed), version=wanted[-1] if wanted else request.version)
        shared = " ".join(
            ["version", *filter(None, [request.version]), "that all of", enumerated(left.versioned), "have"]
        )
        raise _unoffered(manager, _lack(chosen, left, run) or shared)
    return rest


def _foreseen(chosen: Manager, request: Request, installed: Installed, run: Runner) -> tuple[Request, tuple[str, ...]]:
    """Return what would be installed as far as the manager's lists tell, and what makes way.  Raises PackageError if others would."""
    rest = _fit(chosen, request, installed, run) or replace(request, names=pending(request, installed))
    with _preferring(chosen, request, rest) as asked:
        return rest, _refuse_losses(chosen, asked, run)


def _install(manager: str, request: Request, installed: Installed, run: Runner) -> tuple[Request, tuple[str, ...]]:
    """Install what is left, after a refresh where the manager wants one, and return it as it was asked for, and what made way."""
    chosen = MANAGERS[manager]
    left = replace(request, names=pending(request, installed))
    fresh = chosen.stale is None
    if chosen.refresh is not None and fresh:
        _succeed(chosen, chosen.refresh(left), left, run)
    rest = _suited(manager, request, installed, run, fresh)
    if chosen.falls and (rest.version or "").endswith(".*"):
        _refuse_lack(manager, rest, run)
    with _preferring(chosen, request, rest) as asked:
        return rest, _ask_for(chosen, asked, run)


def _preferring(chosen: Manager, request: Request, rest: Request) -> ContextManager[Request]:
    """Where a version was found for a request, have it preferred; one that was given has its pin."""
    return nullcontext(rest) if rest.version == request.version else chosen.prefer(rest)


def _ask_for(chosen: Manager, request: Request, run: Runner) -> tuple[str, ...]:
    command = chosen.install(request)
    if chosen.refresh is not None and chosen.stale is not None:
        status, output, errors = run_patiently(command, run)
        if status in chosen.fine:
            return ()
        if not chosen.stale.search(output + "\n" + errors):
            raise _why(chosen, command, request, output, errors, run)
        _succeed(chosen, chosen.refresh(request), request, run)
    way = _refuse_losses(chosen, request, run)
    _succeed(chosen, command, request, run)
    return way


def _refuse_losses(chosen: Manager, request: Request, run: Runner) -> tuple[str, ...]:
    """Return what makes way of that which earlier requests brought.  Raises PackageError if other packages would."""
    if chosen.foresee is None or not request.names:
        return ()
    # What keeps it from being installed, the installation tells.
    _status, output, _errors = run_patiently(chosen.foresee(request), run)
    concerned = frozenset(chosen.concerned(output)) - set(request.names)
    others = concerned - request.own
    lost = sorted(others - _own_company(chosen, request, run)) if others else []
    if lost:
        raise PackageError(
            f"Cannot install {enumerated(request.names)}, because {enumerated(lost)} would be removed for it: "
            "remove that first if it may go, or ask for packages that go with it"
        )
    return tuple(sorted(concerned & request.own))


def _with_company(chosen: Manager, request: Request, run: Runner) -> Request:
    """Return a removal with the company that has to go too.  Raises PackageError if anything else would have to."""
    others = _others(chosen, request, run)
    if not others:
        return request
    own = _own_company(chosen, request, run)
    if not others <= own:
        raise PackageError(
            f"Cannot remove {enumerated(request.names)}, because {enumerated(sorted(others - own))} would have to go too: "
            "remove what depends on it first, or leave it installed"
        )
    # Again: rpm and pacman tell only what depends on these themselves.
    return _with_company(chosen, replace(request, names=(*request.names, *sorted(others)), company=own), run)


def _others(chosen: Manager, request: Request, run: Runner) -> frozenset[str]:
    """Return what else would be removed with the packages.  Raises PackageError."""
    command = chosen.rehearse(request)
    status, output, errors = run_patiently(command, run)
    others = frozenset(chosen.concerned(output + "\n" + errors)) - set(request.names)
    if status and not others:
        raise failure(command, request.names, output, errors)
    return others


def _own_company(chosen: Manager, request: Request, run: Runner) -> frozenset[str]:
    """Return the company that nobody has asked for or put on hold since.  Raises PackageError."""
    if not request.company:
        return request.company
    requested = chosen.requested_names(perform(chosen, chosen.requested, sorted(request.company), run))
    return request.company - set(requested) - holds(chosen, run)


def _succeed(chosen: Manager, command: list[str], request: Request, run: Runner) -> None:
    status, output, errors = run_patiently(command, run)
    if status not in chosen.fine:
        raise _why(chosen, command, request, output, errors, run)


def _why(
    chosen: Manager, command: Sequence[str], request: Request, output: str, errors: str, run: Runner
) -> PackageError:
    """Return why a transaction failed: the manager does not name somebody else's holds where it blames them."""
    words = output + "\n" + errors
    if chosen.kept is not None and chosen.kept.search(words):
        held = sorted((holds(chosen, run) - request.own_holds) & set(re.findall(r"[^\s:,()]+", words)))
        if held:
            return _kept(chosen, held, command=list(command), stdout=output, stderr=errors)
    return failure(command, request.names, output, errors)


def failure(command: Sequence[str], names: Sequence[str], output: str, errors: str) -> PackageError:
    words = last_words(output, errors).rstrip(".")
    remedy = "put that right on the host or in its repositories, and run again"
    if LOCKED.search(output + "\n" + errors):
        remedy = f"{PATIENCE} s were not enough for the lock, so let the other package manager end, and run again"
    message = f"{command[0]} failed for {enumerated(names)} ({words}): {remedy}"
    return PackageError(message, command=list(command), stdout=output, stderr=errors)


def _believe(manager: str, request: Request, after: Installed) -> None:
    """Raise PackageError if the packages still are not as asked for."""
    left = pending(request, after)
    if left:
        found = enumerated([f"{name} is {after.get(name) or 'not installed'}" for name in left])
        wanted = f"version {request.version or 'any'}" if request.present else "none"
        raise PackageError(
            f"{manager} told of no error, but {found} (wanted: {wanted}): look for a pin or lock on it"
            + (", and give the version as the repository writes it" if request.version else "")
        )
