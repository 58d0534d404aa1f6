# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a daemon's configuration file to what was asked, or back: read, decide, prove, record, replace.

The order of the steps is what makes it safe: nothing is written before the daemon has accepted the candidate, the
record and the mark for the restart are on disk before the file is replaced.  Private to this collection.
"""

from __future__ import annotations

import contextlib
import os
import typing as t
from dataclasses import dataclass, field, replace

from .. import _files
from .._document import same
from . import proof
from .config_file import ConfigFile, as_text, edited, meaning, read
from .errors import ConfigError
from .formats import TOML
from .journal import Journal, Record, extend, release
from .masking import shown_pair
from .places import Places
from .trees import MISSING, Tree, dotted, edits
from .undo import without_us

if t.TYPE_CHECKING:
    from .._document import Format
    from .daemon import Daemon


@dataclass(frozen=True)
class Host(Places):
    """The node as the run finds it, and what it may do there."""

    check_mode: bool = False
    keep_copy: bool = True
    binary: str | None = None  # the daemon; None: there is none, or it is not to be asked
    workdir: str | None = None  # where a private directory for the proof may be made
    execute: proof.Run = proof.run

    def journal(self, path: str, syntax: Format = TOML) -> Journal:
        """Return the journal of the configuration file *path*."""
        return Journal(path, self.record(path), syntax)

    def can_roll_back(self, path: str) -> bool:
        """Say whether a snapshot may bring back what the file *path* held before."""
        return os.path.exists(self.snapshot(path))


@dataclass
class Outcome:
    """What a run did, or would do in check mode; `before` and `after` are bytes, None where there is no file."""

    changed: bool
    before: bytes | None
    after: bytes | None
    facts: dict[str, t.Any]  # what the daemon's module tells of the file
    restart_required: bool = False
    backup_file: str | None = None
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


#: What a module does on a host: for each file the daemon and what became of it.
Steps = t.Callable[[Host], t.Iterator[t.Tuple["Daemon", Outcome]]]


def one_file(daemon: Daemon, state: str) -> Steps:
    """Return the one step that brings the file of *daemon* to *state*."""
    ensure = ensure_present if state == "present" else ensure_absent
    return lambda host: iter([(daemon, ensure(daemon, host))])


def ensure_present(daemon: Daemon, host: Host) -> Outcome:
    """Merge the runtime into the file; raises ConfigError or FilesError, and then the file is as it was."""
    with host.exclusive(daemon.path, host.check_mode):
        warnings = daemon.admit(as_text(_files.read_bytes(daemon.path)))
        file = _read(daemon)
        record = host.journal(daemon.path, daemon.syntax).load(file.sha, file.tree)
        decision = daemon.plan(file, record.owned(daemon.runtime_name) if record else {})
        changes = edits(file.tree, decision.target)
        base = without_us(daemon, file, record) if record and changes else None
        after = edited(file, decision.target) if changes else file.data
        if changes:
            _prove_present(daemon, file, after, host)
        outcome = _outcome(daemon, bool(changes), file.data, after, decision.target, host)
        outcome.warnings, outcome.reasons = warnings + decision.warnings, decision.reasons
        if changes and not host.check_mode:
            met = replace(record, base=base) if record else _first_meeting(daemon, file, host)
            new = extend(met, daemon.runtime_name, file.tree, decision.target, decision.kinds)
            _commit(daemon, host, file, after, record, replace(new, written=after))
            outcome.backup_file = met.copy
        return outcome


def ensure_absent(daemon: Daemon, host: Host) -> Outcome:
    """Undo what earlier runs changed for the runtime, and only that; raises as ensure_present, and for a conflict."""
    with host.exclusive(daemon.path, host.check_mode):
        file = _read(daemon)
        journal = host.journal(daemon.path, daemon.syntax)
        if daemon.has_runtime(file.tree):
            journal.refuse_conflicts(file.sha, file.tree, daemon.runtime_name)
        record = journal.load(file.sha, file.tree)
        if record is None or daemon.runtime_name not in record.runtimes:
            if record is None and not host.check_mode and not host.can_roll_back(daemon.path):
                journal.clear()
            outcome = _outcome(daemon, False, file.data, file.data, file.tree, host)
            outcome.warnings = _unrecorded(daemon, file)
            return outcome
        undo, rest = release(record, daemon.runtime_name)
        target, warnings = daemon.without(file.tree, undo, meaning(record.base, file.syntax))
        base = without_us(daemon, file, record)
        back = not rest.runtimes and same(meaning(base, file.syntax), target)
        after = base if back else edited(file, target)
        warnings += _prove_absent(daemon, file, after, host, first=back and file.data == record.written)
        changed = after != file.data
        outcome = _outcome(daemon, changed, file.data, after, target, host)
        outcome.warnings = warnings
        outcome.reasons = [
            f"{'take out' if edit.value is MISSING else 'put back'} {dotted(edit.path)}"
            for edit in edits(file.tree, target)
        ]
        if not host.check_mode:
            remaining = replace(rest, base=base, written=after) if rest.runtimes else None
            _commit(daemon, host, file, after, record, remaining)
            outcome.backup_file = record.copy if changed else None
        return outcome


def answer(steps: t.Sequence[tuple[Daemon, Outcome]], diff: bool) -> dict[str, t.Any]:
    """Return what a module answers, but for the warnings; credentials are masked in the difference, which *diff* asks for."""
    outcomes = [outcome for _daemon, outcome in steps]
    result: dict[str, t.Any] = {
        "changed": any(outcome.changed for outcome in outcomes),
        "restart_required": any(outcome.restart_required for outcome in outcomes),
        "reasons": [reason for outcome in outcomes for reason in outcome.reasons],
        "files": list(dict.fromkeys(daemon.path for daemon, _outcome in steps)),
    }
    for outcome in outcomes:
        result.update(outcome.facts)
    copies = [outcome.backup_file for outcome in outcomes if outcome.backup_file]
    if copies:
        result["backup_file"] = copies[-1]
    differences = [_difference(daemon, outcome) for daemon, outcome in steps if outcome.changed]
    if diff and differences:
        result["diff"] = differences[0] if len(differences) == 1 else differences
    return result


def _difference(daemon: Daemon, outcome: Outcome) -> dict[str, str]:
    before, after = shown_pair(outcome.before, outcome.after, daemon.syntax)
    return {"before": before, "after": after, "before_header": daemon.path, "after_header": daemon.path}


def _read(daemon: Daemon) -> ConfigFile:
    file = read(daemon.path, daemon.syntax)
    daemon.check(file.tree)
    return file


def _outcome(
    daemon: Daemon, changed: bool, before: bytes | None, after: bytes | None, tree: Tree, host: Host
) -> Outcome:
    pending = changed or os.path.exists(host.mark(daemon.name))
    return Outcome(changed, before, after, daemon.facts(tree), restart_required=pending)


def _unrecorded(daemon: Daemon, file: ConfigFile) -> list[str]:
    if not daemon.has_runtime(file.tree):
        return []
    message = (
        f"{daemon.path} holds runtime {daemon.runtime_name}, but no record says that this module put it there: it is"
        " left as it is."
    )
    return [message]


# -- proving and writing


def _prove_present(daemon: Daemon, file: ConfigFile, after: bytes | None, host: Host) -> None:
    if host.binary is None or after is None:
        return
    verdict = daemon.judge(host.binary, after, host.workdir, host.execute)
    if verdict.refusal is None:
        daemon.check_effect(verdict)
        return
    now = daemon.judge(host.binary, file.data or b"", host.workdir, host.execute)
    if now.refusal is not None:
        place = file.path if daemon.imported_by is None else f"{daemon.imported_by} and what it imports"
        raise ConfigError(
            f"{daemon.name} refuses {place} even as it is now: {now.refusal}; correct that first, nothing was written."
        )
    raise ConfigError(f"{daemon.name} refuses {file.path} with the change: {verdict.refusal}; nothing was written.")


def _prove_absent(daemon: Daemon, file: ConfigFile, after: bytes | None, host: Host, first: bool) -> list[str]:
    if host.binary is None or after is None or after == file.data:
        return []
    verdict = daemon.judge(host.binary, after, host.workdir, host.execute)
    if verdict.refusal is None:
        daemon.check_default(verdict)
        return []
    message = f"{daemon.name} refuses {file.path} without the change: {verdict.refusal}"
    if not first:
        raise ConfigError(message + "; nothing was written.")
    return [message + "; it was like this before the first run."]


def _first_meeting(daemon: Daemon, file: ConfigFile, host: Host) -> Record:
    copy = None  # of the file for people; the record has what it needs
    if host.keep_copy and file.data is not None:
        _files.make_dirs(host.state_dir, 0o755)
        copy = _files.backup(file.path, host.copies)
    made = _files.missing_dirs(os.path.dirname(os.path.realpath(file.path))) if file.data is None else []
    root = os.path.realpath(daemon.imported_by) if daemon.imported_by else None
    return Record(base=file.data, written=None, copy=copy, made_dirs=tuple(made), root=root)


def _commit(
    daemon: Daemon, host: Host, file: ConfigFile, after: bytes | None, old: Record | None, new: Record | None
) -> None:
    """Replace the file.  A run killed between any two of these steps is healed by the next one."""
    journal, sha = host.journal(daemon.path, daemon.syntax), _files.sha256(after)
    if after != file.data:
        _files.make_dirs(host.state_dir, 0o755)
        journal.note(sha, {file.sha: old, sha: new}, keep=True)
        _files.make_dirs(host.pending, 0o700)
        _files.write_atomic(host.mark(daemon.name), b"%s\n" % os.fsencode(file.path), mode=0o600)
        if after is None:
            _files.remove_file(file.path)
            _remove_dirs(old.made_dirs if old else ())
        else:
            _files.write_atomic(file.path, after, mode=_new_mode(daemon))
    written = sha if after != file.data else journal.written
    journal.note(written, {sha: new}, keep=host.can_roll_back(file.path))


def _new_mode(daemon: Daemon) -> int:
    """Return the mode of a new file: who may not read the file that imports it has no business in this one either."""
    try:
        return 0o644 & os.stat(daemon.imported_by).st_mode if daemon.imported_by else 0o644
    except OSError:
        return 0o644


def _remove_dirs(directories: t.Sequence[str]) -> None:
    """Remove the directories that were made for the file, unless others use them."""
    for directory in reversed(directories):
        with contextlib.suppress(OSError):
            os.rmdir(directory)
