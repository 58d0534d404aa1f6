# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transactions: check, install and remove packages, and verify the result."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Callable, ContextManager, Sequence

from .managers import MANAGERS, Manager
from .request import (
    Installed,
    PackageError,
    Request,
    choose_common_version,
    find_joining_versions,
    find_pending,
    is_satisfied,
    join_names,
)
from .runner import LOCK_ERROR, LOCK_TIMEOUT, Runner, run_with_lock_wait, summarize_error


def apply(
    manager: str, request: Request, query: Callable[[], Installed], run: Runner, check_mode: bool = False
) -> tuple[Installed, tuple[str, ...], tuple[str, ...]]:
    """Install or remove the packages, or in check mode only check whether that is possible.

    Returns the versions before; the changed packages, with the dependencies that are removed with them; and the managed packages that
    are removed because they conflict, if the manager can predict that. ``run`` has to use the C locale.
    Raises PackageError for unmanaged holds, if other packages would be removed, and if the result is not as requested.
    """
    before = query()
    names = find_pending(request, before)
    if not names:
        return before, names, ()
    commands = MANAGERS[manager]
    rest = replace(request, names=names)
    _reject_holds(commands, rest, before, run)
    if not request.present:
        rest = _add_dependencies(commands, rest, run)
    # Raises PackageError for an unsupported version before anything changes.
    command = commands.install(rest) if request.present else commands.remove(rest)
    conflicting: tuple[str, ...] = ()
    if check_mode:
        if request.present:
            rest, conflicting = _plan_install(commands, request, before, run)
        return before, rest.names, conflicting
    try:
        if request.present:
            rest, conflicting = _install(manager, request, before, run)
        else:
            _run_transaction(commands, command, rest, run)
        _verify_result(manager, rest, query())
    except PackageError as error:
        error.details["changed"] = query() != before
        raise
    return before, rest.names, conflicting


def check_available(
    manager: str, request: Request, query: Callable[[], Installed], run: Runner
) -> tuple[Installed, tuple[str, ...]]:
    """Return the installed versions and the packages to change. Raises PackageError if a requested version is not available.

    If the lists of the package manager do not contain it, the lists are refreshed. Nothing else changes.
    """
    before = query()
    names = find_pending(request, before)
    commands = MANAGERS[manager]
    left = replace(request, names=names)
    _reject_holds(commands, left, before, run)
    # Also for installed packages: the caller may have to install them again later, to roll back.
    if commands.list_available is not None and _describe_missing(commands, request, run):
        if commands.refresh is not None:
            _run_transaction(commands, commands.refresh(request), request, run)
        _reject_missing(manager, request, run)
    rest = _require_version(manager, request, before, run) if names else left
    with _prefer_chosen_version(commands, request, rest) as preferred:
        _reject_removals(commands, preferred, run)
    return before, rest.names


def run_command(commands: Manager, command: Sequence[str], names: Sequence[str], run: Runner) -> str:
    """Run a command on packages, wait for locks, and return its output. Raises PackageError."""
    status, output, errors = run_with_lock_wait(command, run)
    if status not in commands.success_codes:
        raise make_failure(command, names, output, errors)
    return output


def find_unneeded(commands: Manager, names: Sequence[str], run: Runner) -> set[str]:
    """Return the packages of *names* that nothing needs any more. Raises PackageError."""
    status, output, errors = run_with_lock_wait(commands.list_unneeded, run)
    # pacman fails without a message if there is none.
    if status not in commands.success_codes and errors.strip():
        raise make_failure(commands.list_unneeded, names, output, errors)
    return set(names) & set(commands.parse_unneeded(output))


def list_holds(commands: Manager, run: Runner) -> set[str]:
    """Return the packages on hold; none if that is unknown."""
    if commands.hold_commands is None:
        return set()
    status, output, _errors = run_with_lock_wait(commands.hold_commands.list_holds, run)
    return set(commands.hold_commands.parse_holds(output)) if status in commands.success_codes else set()


def find_removable(manager: str, names: Sequence[str], run: Runner) -> tuple[str, ...]:
    """Return the packages of *names* that can be removed together, without any other package. Raises PackageError."""
    commands = MANAGERS[manager]

    def list_others(some: Sequence[str]) -> frozenset[str]:
        return _list_other_removals(commands, Request(tuple(some), present=False), run) if some else frozenset()

    if not list_others(names):
        return tuple(names)
    dependents = {name: list_others([name]) for name in names}
    left = set(names)
    while any(dependents[name] - left for name in left):
        left = {name for name in left if dependents[name] <= left}
    # Another package may need either of two.
    return () if list_others(sorted(left)) else tuple(sorted(left))


def _reject_holds(commands: Manager, request: Request, installed: Installed, run: Runner) -> None:
    """Raise PackageError if a package to change has an unmanaged hold."""
    names = [name for name in request.names if installed.get(name) and name not in request.managed_holds]
    holds = list_holds(commands, run) if names else set()
    held = [name for name in names if name in holds]
    if held:
        raise _make_hold_error(commands, held)


def _make_hold_error(commands: Manager, held: Sequence[str], **details: object) -> PackageError:
    """Return the error for packages with an unmanaged hold, with the command that releases them."""
    release = commands.hold_commands.release if commands.hold_commands else []
    command = " ".join(word for word in [*release, *held] if not word.startswith("-"))
    return PackageError(
        f"Cannot change {join_names(held)}, because of an unmanaged hold: release it ({command}), or request the installed version",
        **details,
    )


def _list_available(commands: Manager, names: Sequence[str], run: Runner) -> list[tuple[str, str]]:
    """Return the available versions of the packages as (name, version), from the lists of the manager."""
    return (
        commands.parse_available(run_with_lock_wait([*(commands.list_available or []), *names], run)[1])
        if names
        else []
    )


def _find_missing(request: Request, available: Sequence[tuple[str, str]]) -> list[str]:
    """Return the packages that are not available in the requested version."""
    found = {name for name, version in available if is_satisfied(name, request, {name: version})}
    return [name for name in request.versioned if name not in found]


def _describe_missing(commands: Manager, request: Request, run: Runner) -> str:
    """Return a phrase with the requested packages that no repository has; empty if none is missing."""
    missing = _find_missing(request, _list_available(commands, request.versioned, run))
    return (f"version {request.version} of " if request.version and missing else "") + join_names(missing)


def _reject_missing(manager: str, request: Request, run: Runner) -> None:
    """Raise PackageError if no repository has a requested package."""
    missing = _describe_missing(MANAGERS[manager], request, run)
    if missing:
        raise _make_missing_error(manager, missing)


def _make_missing_error(manager: str, missing: str) -> PackageError:
    return PackageError(
        f"{manager} has no {missing}: request one that its repositories have, or add a repository that has it"
    )


def _has_version_choice(request: Request, available: Sequence[tuple[str, str]]) -> bool:
    """Whether a common version has to be chosen. Each version needs a revision, because an upstream version matches each revision."""
    return (
        request.has_common_version
        and len(request.versioned) > 1
        and all("-" in version for _name, version in available)
    )


def _choose_version(commands: Manager, request: Request, installed: Installed, run: Runner) -> Request | None:
    """Return the request for the pending packages with the version of the other packages or a common one; None if not available."""
    rest = replace(request, names=find_pending(request, installed))
    joining = find_joining_versions(request, installed)
    if commands.list_available is None or not rest.versioned or not (joining or _has_version_choice(rest, ())):
        return rest
    available = _list_available(commands, rest.versioned, run)
    if joining:
        version = next((each for each in joining if not _find_missing(replace(rest, version=each), available)), None)
    elif _has_version_choice(rest, available):
        version = choose_common_version(rest, available, installed)
    else:
        return rest
    if version is None:
        return None
    rest = replace(rest, version=version)
    return replace(rest, names=tuple(name for name in rest.names if not is_satisfied(name, rest, installed)))


def _require_version(
    manager: str, request: Request, installed: Installed, run: Runner, refreshed: bool = False
) -> Request:
    """Return the request for the pending packages with their version. Raises PackageError if none is available.

    Unless the manager's lists are *refreshed* already, they are refreshed first if the version is missing.
    """
    commands = MANAGERS[manager]
    joining = find_joining_versions(request, installed)
    rest = _choose_version(commands, request, installed, run)
    if rest is None and commands.refresh is not None and not refreshed:
        _run_transaction(commands, commands.refresh(request), request, run)
        rest = _choose_version(commands, request, installed, run)
    if rest is None:
        left = replace(
            request, names=find_pending(request, installed), version=joining[-1] if joining else request.version
        )
        shared = " ".join(
            ["version", *filter(None, [request.version]), "that all of", join_names(left.versioned), "have"]
        )
        raise _make_missing_error(manager, _describe_missing(commands, left, run) or shared)
    return rest


def _plan_install(
    commands: Manager, request: Request, installed: Installed, run: Runner
) -> tuple[Request, tuple[str, ...]]:
    """Return the planned request and the managed packages that would be removed. Raises PackageError for unmanaged ones."""
    rest = _choose_version(commands, request, installed, run) or replace(
        request, names=find_pending(request, installed)
    )
    with _prefer_chosen_version(commands, request, rest) as preferred:
        return rest, _reject_removals(commands, preferred, run)


def _install(manager: str, request: Request, installed: Installed, run: Runner) -> tuple[Request, tuple[str, ...]]:
    """Install the pending packages, and return their request and the managed packages that were removed."""
    commands = MANAGERS[manager]
    left = replace(request, names=find_pending(request, installed))
    refreshes = commands.stale_error is None
    if commands.refresh is not None and refreshes:
        _run_transaction(commands, commands.refresh(left), left, run)
    rest = _require_version(manager, request, installed, run, refreshes)
    if commands.may_downgrade and (rest.version or "").endswith(".*"):
        _reject_missing(manager, rest, run)
    with _prefer_chosen_version(commands, request, rest) as preferred:
        return rest, _run_install(commands, preferred, run)


def _prefer_chosen_version(commands: Manager, request: Request, rest: Request) -> ContextManager[Request]:
    """Make the manager prefer a version that was chosen here; a version of the request has its own pin."""
    return nullcontext(rest) if rest.version == request.version else commands.prefer(rest)


def _run_install(commands: Manager, request: Request, run: Runner) -> tuple[str, ...]:
    command = commands.install(request)
    if commands.refresh is not None and commands.stale_error is not None:
        status, output, errors = run_with_lock_wait(command, run)
        if status in commands.success_codes:
            return ()
        if not commands.stale_error.search(output + "\n" + errors):
            raise _explain_failure(commands, command, request, output, errors, run)
        _run_transaction(commands, commands.refresh(request), request, run)
    conflicting = _reject_removals(commands, request, run)
    _run_transaction(commands, command, request, run)
    return conflicting


def _reject_removals(commands: Manager, request: Request, run: Runner) -> tuple[str, ...]:
    """Return the managed packages that the installation would remove. Raises PackageError if it would remove others."""
    if commands.simulate_install is None or not request.names:
        return ()
    # Other errors are reported by the installation itself.
    _status, output, _errors = run_with_lock_wait(commands.simulate_install(request), run)
    affected = frozenset(commands.parse_affected(output)) - set(request.names)
    others = affected - request.managed
    lost = sorted(others - _find_removable_dependencies(commands, request, run)) if others else []
    if lost:
        raise PackageError(
            f"Cannot install {join_names(request.names)}, because {join_names(lost)} would be removed for it: "
            "remove it first if it is not needed, or request packages that do not conflict with it"
        )
    return tuple(sorted(affected & request.managed))


def _add_dependencies(commands: Manager, request: Request, run: Runner) -> Request:
    """Return the removal with the dependencies that would be removed too. Raises PackageError if other packages would be."""
    others = _list_other_removals(commands, request, run)
    if not others:
        return request
    removable = _find_removable_dependencies(commands, request, run)
    if not others <= removable:
        raise PackageError(
            f"Cannot remove {join_names(request.names)}, because {join_names(sorted(others - removable))} would be removed too: "
            "remove the packages that need it first, or keep it installed"
        )
    # Recursive: rpm and pacman report only direct dependents.
    return _add_dependencies(
        commands, replace(request, names=(*request.names, *sorted(others)), dependencies=removable), run
    )


def _list_other_removals(commands: Manager, request: Request, run: Runner) -> frozenset[str]:
    """Return the other packages that would be removed with the requested ones. Raises PackageError."""
    command = commands.simulate_remove(request)
    status, output, errors = run_with_lock_wait(command, run)
    others = frozenset(commands.parse_affected(output + "\n" + errors)) - set(request.names)
    if status and not others:
        raise make_failure(command, request.names, output, errors)
    return others


def _find_removable_dependencies(commands: Manager, request: Request, run: Runner) -> frozenset[str]:
    """Return the dependencies that were neither requested nor put on hold since. Raises PackageError."""
    if not request.dependencies:
        return request.dependencies
    requested = commands.parse_requested(
        run_command(commands, commands.list_requested, sorted(request.dependencies), run)
    )
    return request.dependencies - set(requested) - list_holds(commands, run)


def _run_transaction(commands: Manager, command: list[str], request: Request, run: Runner) -> None:
    status, output, errors = run_with_lock_wait(command, run)
    if status not in commands.success_codes:
        raise _explain_failure(commands, command, request, output, errors, run)


def _explain_failure(
    commands: Manager, command: Sequence[str], request: Request, output: str, errors: str, run: Runner
) -> PackageError:
    """Return the error of a failed transaction. If unmanaged holds are the cause, it names them, which the manager does not."""
    words = output + "\n" + errors
    if commands.hold_error is not None and commands.hold_error.search(words):
        held = sorted((list_holds(commands, run) - request.managed_holds) & set(re.findall(r"[^\s:,()]+", words)))
        if held:
            return _make_hold_error(commands, held, command=list(command), stdout=output, stderr=errors)
    return make_failure(command, request.names, output, errors)


def make_failure(command: Sequence[str], names: Sequence[str], output: str, errors: str) -> PackageError:
    words = summarize_error(output, errors).rstrip(".")
    remedy = "correct that on the host or in its repositories, and run again"
    if LOCK_ERROR.search(output + "\n" + errors):
        remedy = f"the lock was not released within {LOCK_TIMEOUT} s; wait until the other package manager ends, and run again"
    message = f"{command[0]} failed for {join_names(names)} ({words}): {remedy}"
    return PackageError(message, command=list(command), stdout=output, stderr=errors)


def _verify_result(manager: str, request: Request, after: Installed) -> None:
    """Raise PackageError if the packages are not as requested."""
    left = find_pending(request, after)
    if left:
        found = join_names([f"{name} is {after.get(name) or 'not installed'}" for name in left])
        requested = f"version {request.version or 'any'}" if request.present else "none"
        raise PackageError(
            f"{manager} reported no error, but {found} (requested: {requested}): check for a pin or lock on it"
            + (", and write the version as the repository does" if request.version else "")
        )
