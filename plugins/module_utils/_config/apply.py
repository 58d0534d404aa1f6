# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a daemon's configuration file to the desired state, or undo that: read, decide, validate, record, replace.

The order of the steps makes it safe: nothing is written before the daemon has accepted the candidate, and the
record and the marker for the restart are on disk before the file is replaced.
"""

from __future__ import annotations

import contextlib
import os
import stat
import typing as t
from dataclasses import dataclass, field, replace

from .._document import is_same
from . import files
from .change_log import ChangeLog, Record, add_step, split_record
from .config_file import ConfigFile, decode_text, edit, parse_or_none, read
from .errors import ConfigError
from .patch import revert
from .paths import StatePaths
from .redact import list_secrets, redact_pair
from .tree import MISSING, Tree, find_edits, format_path
from .validate import Run, run

if t.TYPE_CHECKING:
    from .._document import Format
    from .change_log import Change, Rules
    from .draft import Managed, Plan
    from .tree import Path
    from .validate import Verdict


class Daemon(t.Protocol):
    """One daemon, one configuration file, one entry in it. Every method may raise ConfigError."""

    @property
    def name(self) -> str:
        """Name of the daemon, in messages and of the marker for its restart."""

    @property
    def path(self) -> str:
        """The configuration file."""

    @property
    def imported_by(self) -> str | None:
        """The file that makes the daemon read this one, None if the daemon reads it by itself."""

    @property
    def entry(self) -> str:
        """What is added to the file or removed from it, for the record; an absolute path for a file that it imports."""

    @property
    def syntax(self) -> Format:
        """The syntax of the file."""

    @property
    def rules(self) -> Rules:
        """How changes of the file are undone."""

    def check_owner(self, text: str) -> list[str]:
        """Refuse a file that another program renders, before it is parsed; return warnings for one that it rewrites."""

    def check_types(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> Plan:
        """Decide what the file should mean; *managed* are the leaves that earlier runs for this entry changed."""

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays; *original*: before all changes."""

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let the daemon check *data* as content of the file, without starting."""

    def check_effect(self, verdict: Verdict) -> None:
        """Refuse an accepted file that does not do what was requested."""

    def check_default(self, verdict: Verdict) -> None:
        """Refuse an accepted file whose default is an entry that is not there."""

    def has_entry(self, tree: Tree) -> bool:
        """Whether the entry is in *tree*."""

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What a module returns of the file that means *tree*."""


# -- what a run finds, may do, and has done


@dataclass(frozen=True)
class Host(StatePaths):
    """The node as the run finds it, and what the run may do there."""

    check_mode: bool = False
    keep_backup: bool = True
    binary: str | None = None  # the daemon's program; None: there is none
    validate: bool = True  # whether the program checks what is written
    workdir: str | None = None  # where a private directory for the check may be made
    execute: Run = run

    @property
    def validator(self) -> str | None:
        """The program that checks what is written, None for none."""
        return self.binary if self.validate else None

    def change_log(self, daemon: Daemon) -> ChangeLog:
        """Return the record of changes to the file of *daemon*."""
        return ChangeLog(daemon.path, self.record(daemon.path), daemon.syntax, daemon.rules)

    def can_roll_back(self, path: str) -> bool:
        """Whether a snapshot may restore what the file *path* held before."""
        return os.path.exists(self.snapshot(path))


@dataclass
class Outcome:
    """What a run did, or would do in check mode; `before` and `after` are bytes, None where there is no file."""

    changed: bool
    before: bytes | None
    after: bytes | None
    facts: dict[str, t.Any]  # what the daemon's module returns of the file
    restart_required: bool = False
    backup_file: str | None = None
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


#: What a module did, file by file.
Outcomes = t.Iterator[t.Tuple["Daemon", Outcome]]


def ensure(daemon: Daemon, state: str, host: Host) -> Outcomes:
    """Bring the file of *daemon* to *state*."""
    yield daemon, (ensure_present if state == "present" else ensure_absent)(daemon, host)


def ensure_present(daemon: Daemon, host: Host) -> Outcome:
    """Merge the entry into the file; raises ConfigError or FilesError, and then the file is as it was."""
    with host.lock(daemon.path, host.check_mode):
        warnings = daemon.check_owner(decode_text(files.read_bytes(daemon.path)))
        file = _read(daemon)
        record = host.change_log(daemon).load(file.sha, file.tree)
        plan = daemon.plan(file, record.managed(daemon.entry) if record else {})
        changes = find_edits(file.tree, plan.target)
        original = _restore_original(daemon, file, record) if record and changes else None
        after = edit(file, plan.target) if changes else file.data
        if changes:
            _validate_present(daemon, file, after, host)
        outcome = _outcome(daemon, bool(changes), file.data, after, plan.target, host)
        outcome.warnings = warnings + plan.warnings + _warn_readable(file, plan.target)
        outcome.reasons = plan.reasons
        if changes and not host.check_mode:
            known = replace(record, original=original) if record else _start_record(daemon, file, host)
            new = add_step(known, daemon.entry, file.tree, plan.target, plan.kinds, daemon.rules)
            outcome.warnings += _keep_unmanaged(file, record, host)
            _commit(daemon, host, file, after, record, replace(new, written=after))
            outcome.backup_file = known.backup
        return outcome


def ensure_absent(daemon: Daemon, host: Host) -> Outcome:
    """Undo what earlier runs changed for the entry, and only that; raises as ensure_present, and for a conflict."""
    with host.lock(daemon.path, host.check_mode):
        file, log = read(daemon.path, daemon.syntax), host.change_log(daemon)
        if log.entries:
            daemon.check_types(file.tree)
        if daemon.has_entry(file.tree):
            log.refuse_conflicts(file.sha, file.tree, daemon.entry)
        record = log.load(file.sha, file.tree)
        if record is None or daemon.entry not in record.entries:
            if record is None and not host.check_mode and not host.can_roll_back(daemon.path):
                log.clear()
            outcome = _outcome(daemon, False, file.data, file.data, file.tree, host)
            outcome.warnings = _warn_unrecorded(daemon, file)
            return outcome
        undo, rest = split_record(record, daemon.entry, daemon.rules)
        target, warnings = daemon.undo(file.tree, undo, parse_or_none(record.original, file.syntax))
        original = _restore_original(daemon, file, record)
        former = parse_or_none(original, file.syntax)
        if not rest.entries and file.data == record.written and former is not None:
            target, warnings = former, []  # an empty table, too, in which other entries have been since
        is_original = not rest.entries and is_same(former, target)
        after = original if is_original else edit(file, target)
        warnings += _validate_absent(daemon, file, after, host, is_original and file.data == record.written)
        changed = after != file.data
        outcome = _outcome(daemon, changed, file.data, after, target, host)
        outcome.warnings = warnings
        outcome.reasons = [
            f"{'remove' if each.value is MISSING else 'restore'} {format_path(each.path)}"
            for each in find_edits(file.tree, target)
        ]
        if not host.check_mode:
            remaining = replace(rest, original=original, written=after) if rest.entries else None
            outcome.warnings += _keep_unmanaged(file, record, host) if changed else []
            _commit(daemon, host, file, after, record, remaining)
            outcome.backup_file = record.backup if changed and os.path.exists(record.backup or "") else None
        return outcome


def build_result(outcomes: t.Sequence[tuple[Daemon, Outcome]], diff: bool) -> dict[str, t.Any]:
    """Return a module's result without the warnings, with the difference if *diff*; credentials are masked in it."""
    result: dict[str, t.Any] = {
        "changed": any(outcome.changed for _daemon, outcome in outcomes),
        "restart_required": any(outcome.restart_required for _daemon, outcome in outcomes),
        "reasons": [reason for _daemon, outcome in outcomes for reason in outcome.reasons],
        "files": list(dict.fromkeys(daemon.path for daemon, _outcome in outcomes)),
    }
    for _daemon, outcome in outcomes:
        result.update(outcome.facts)
        if outcome.backup_file:
            result["backup_file"] = outcome.backup_file
    differences = [_difference(daemon, outcome) for daemon, outcome in outcomes if outcome.changed]
    if diff and differences:
        result["diff"] = differences[0] if len(differences) == 1 else differences
    return result


def _difference(daemon: Daemon, outcome: Outcome) -> dict[str, str]:
    before, after = redact_pair(outcome.before, outcome.after, daemon.syntax)
    return {"before": before, "after": after, "before_header": daemon.path, "after_header": daemon.path}


def _read(daemon: Daemon) -> ConfigFile:
    file = read(daemon.path, daemon.syntax)
    daemon.check_types(file.tree)
    return file


def _outcome(
    daemon: Daemon, changed: bool, before: bytes | None, after: bytes | None, tree: Tree, host: Host
) -> Outcome:
    pending = changed or os.path.exists(host.restart_marker(daemon.name))
    return Outcome(changed, before, after, daemon.facts(tree), restart_required=pending)


def _warn_unrecorded(daemon: Daemon, file: ConfigFile) -> list[str]:
    if not daemon.has_entry(file.tree):
        return []
    return [f"{daemon.path} has {daemon.entry}, but no record says that this module added it: it is left as it is."]


def _restore_original(daemon: Daemon, file: ConfigFile, record: Record) -> bytes | None:
    """Return the file as it would be without this collection, with what others wrote since (None: no file).

    Unchanged by others, it is the file as first found, to the byte; else the managed lines are removed, or, if others changed
    those too, the managed settings.
    """
    if file.data == record.written:
        return record.original
    target, _warnings = daemon.undo(file.tree, record.changes, parse_or_none(record.original, file.syntax))
    reverted = revert(record.original or b"", record.written or b"", file.data or b"")
    if reverted is not None and is_same(parse_or_none(reverted, file.syntax), target):
        return reverted
    return edit(read(file.path, file.syntax), target)


def _warn_readable(file: ConfigFile, target: Tree) -> list[str]:
    """Return a warning if the file gets credentials that every user of the host can read; a mode that others chose stays."""
    try:
        is_readable = os.stat(file.path).st_mode & stat.S_IROTH
    except OSError:
        return []
    if not is_readable or list_secrets(target) <= list_secrets(file.tree):
        return []
    return [f"{file.path} gets credentials, and every user of the host can read it: give it the mode 0600."]


# -- validate and write


def _validate_present(daemon: Daemon, file: ConfigFile, after: bytes | None, host: Host) -> None:
    if host.validator is None or after is None:
        return
    verdict = daemon.validate(host.validator, after, host.workdir, host.execute)
    if verdict.refusal is None:
        daemon.check_effect(verdict)
        return
    now = daemon.validate(host.validator, file.data or b"", host.workdir, host.execute)
    if now.refusal is not None:
        place = file.path if daemon.imported_by is None else f"{daemon.imported_by} and what it imports"
        raise ConfigError(
            f"{daemon.name} refuses {place} even as it is now: {now.refusal}; correct that first, nothing was written."
        )
    raise ConfigError(f"{daemon.name} refuses {file.path} with the change: {verdict.refusal}; nothing was written.")


def _validate_absent(daemon: Daemon, file: ConfigFile, after: bytes | None, host: Host, is_original: bool) -> list[str]:
    if host.validator is None or after is None or after == file.data:
        return []
    verdict = daemon.validate(host.validator, after, host.workdir, host.execute)
    if verdict.refusal is None:
        daemon.check_default(verdict)
        return []
    message = f"{daemon.name} refuses {file.path} without the change: {verdict.refusal}"
    if not is_original:
        raise ConfigError(message + "; nothing was written.")
    return [message + "; it was like this before the first run."]


def _start_record(daemon: Daemon, file: ConfigFile, host: Host) -> Record:
    backup = None  # of the file for people; the record has what it needs
    if host.keep_backup and file.data is not None:
        files.make_dirs(host.state_dir, 0o755)
        backup = files.keep_copy(file.path, file.data, host.backups)
    missing = files.missing_dirs(os.path.dirname(os.path.realpath(file.path))) if file.data is None else []
    imported_by = os.path.realpath(daemon.imported_by) if daemon.imported_by else None
    return Record(file.data, written=None, backup=backup, created_dirs=tuple(missing), imported_by=imported_by)


def _keep_unmanaged(file: ConfigFile, record: Record | None, host: Host) -> list[str]:
    """Keep a copy of a file that others have changed since the first run; return a warning that names it."""
    if record is None or not host.keep_backup or file.data is None or file.data in (record.original, record.written):
        return []
    copy = files.keep_copy(file.path, file.data, host.backups)
    return [f"{file.path} was changed by others since; what it held is kept in {copy}."]


def _commit(
    daemon: Daemon, host: Host, file: ConfigFile, after: bytes | None, old: Record | None, new: Record | None
) -> None:
    """Replace the file. The next run resumes after one that was killed between any two of these steps."""
    log, sha = host.change_log(daemon), files.sha256(after)
    if after != file.data:
        files.make_dirs(host.state_dir, 0o755)
        _replace(daemon, host, file, after, {file.sha: old, sha: new})
        if after is None:
            _remove_dirs(old.created_dirs if old else ())
    written = sha if after != file.data else log.written
    can_roll_back = host.can_roll_back(file.path)
    log.write(written, {sha: new}, keep=can_roll_back)
    if new is None and after is not None and not can_roll_back:
        files.drop_copy(file.path, after, host.backups)


def _replace(
    daemon: Daemon, host: Host, file: ConfigFile, after: bytes | None, records: t.Mapping[str | None, Record | None]
) -> None:
    """Write the record and the marker for the restart, and replace the file as it was read; if that fails, restore both."""
    log, marker = host.change_log(daemon), host.restart_marker(daemon.name)
    known, is_marked = log.read(), os.path.exists(marker)
    try:
        log.write(files.sha256(after), records, keep=True)
        files.make_dirs(host.pending, 0o700)
        files.write_atomic(marker, b"%s\n" % os.fsencode(file.path), mode=0o600)
        if after is None:
            files.remove_file(file.path, (file.sha,))
        else:
            files.write_atomic(file.path, after, mode=_new_mode(daemon, after), expected=(file.sha,))
    except files.FilesError:
        with contextlib.suppress(files.FilesError):
            if files.read_bytes(file.path) != after:
                if not is_marked:
                    files.remove_file(marker)
                log.save(*known)
        raise


def _new_mode(daemon: Daemon, after: bytes) -> int:
    """Return the mode of a new file: for root only with credentials, else at most that of the file that imports it."""
    if list_secrets(parse_or_none(after, daemon.syntax)):
        return 0o600
    try:
        return 0o644 & os.stat(daemon.imported_by).st_mode if daemon.imported_by else 0o644
    except OSError:
        return 0o644


def _remove_dirs(directories: t.Sequence[str]) -> None:
    """Remove the directories that were created for the file, unless others use them."""
    for directory in reversed(directories):
        with contextlib.suppress(OSError):
            os.rmdir(directory)
