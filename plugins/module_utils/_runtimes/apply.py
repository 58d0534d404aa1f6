# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring a containerd configuration file to what was asked, or back: read, decide, prove, record, replace.

The order of the steps is what makes it safe: nothing is written before containerd has accepted the candidate, the
record and the mark for the restart are on disk before the file is replaced.  Private to this collection.
"""

from __future__ import annotations

import contextlib
import os
import typing as t
from dataclasses import dataclass, field, replace

from .. import _files
from . import imports, owners, proof
from .config_file import ConfigFile, as_text, edited, meaning, parse, read
from .containerd import Plan, Request, plan
from .errors import ConfigError
from .journal import Journal, Record, extend, release
from .places import Places
from .schema import schema_of
from .shape import check_shape
from .trees import MISSING, Tree, dotted, edits, get, same
from .undo import without, without_us


@dataclass(frozen=True)
class Host(Places):
    """The node as the run finds it, and what it may do there."""

    check_mode: bool = False
    keep_copy: bool = True
    binary: str | None = None  # containerd; None: there is none, or it is not to be asked
    workdir: str | None = None  # where a private directory for the proof may be made
    execute: proof.Run = proof.run

    def journal(self, path: str) -> Journal:
        """Return the journal of the configuration file *path*."""
        return Journal(path, self.record(path))

    def can_roll_back(self, path: str) -> bool:
        """Say whether a snapshot may bring back what the file *path* held before."""
        return os.path.exists(self.snapshot(path))


@dataclass
class Outcome:
    """What a run did, or would do in check mode; `before` and `after` are bytes, None where there is no file."""

    changed: bool
    before: bytes | None
    after: bytes | None
    config_version: int | None = None
    plugin_id: str | None = None
    default_runtime_name: str | None = None
    backup_file: str | None = None
    restart_required: bool = False
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def ensure_present(request: Request, host: Host) -> Outcome:
    """Merge the runtime into the file; raises ConfigError or FilesError, and then the file is as it was."""
    with host.exclusive(request.path, host.check_mode):
        warnings = _refuse_owned(request.path)
        file = _read(request.path)
        warnings += _warn_owned(file)
        record = host.journal(request.path).load(file.sha, file.tree)
        files = imports.imported_files(request.path, file.tree, _load_import)
        decision = _decide(request, file, record, files)
        warnings += decision.warnings
        changes = edits(file.tree, decision.target)
        base = without_us(file, record) if record and changes else None
        after = edited(file, decision.target) if changes else file.data
        if changes:
            _prove_present(file, after, request, host)
        outcome = _outcome(bool(changes), file.data, after, decision.target, host)
        outcome.warnings, outcome.reasons = warnings, decision.reasons
        if changes and not host.check_mode:
            met = replace(record, base=base) if record else _first_meeting(file, host)
            new = extend(met, request.runtime_name, file.tree, decision.target, decision.kinds)
            _commit(host, file, after, record, replace(new, written=after))
            outcome.backup_file = met.copy
        return outcome


def ensure_absent(request: Request, host: Host) -> Outcome:
    """Take out what earlier runs put in for the runtime, and only that; raises as ensure_present."""
    with host.exclusive(request.path, host.check_mode):
        file = _read(request.path)
        journal = host.journal(request.path)
        record = journal.load(file.sha, file.tree)
        if record is None or request.runtime_name not in record.runtimes:
            if record is None and not host.check_mode and not host.can_roll_back(request.path):
                journal.clear()
            outcome = _outcome(False, file.data, file.data, file.tree, host)
            outcome.warnings = _unrecorded(file, request)
            return outcome
        undo, rest = release(record, request.runtime_name)
        target, warnings = without(file.path, file.tree, undo, meaning(record.base))
        base = without_us(file, record)
        back = not rest.runtimes and same(meaning(base), target)
        after = base if back else edited(file, target)
        warnings += _prove_absent(file, after, host, first=back and file.data == record.written)
        changed = after != file.data
        outcome = _outcome(changed, file.data, after, target, host)
        outcome.warnings = warnings
        outcome.reasons = [
            f"{'take out' if edit.value is MISSING else 'put back'} {dotted(edit.path)}"
            for edit in edits(file.tree, target)
        ]
        if not host.check_mode:
            remaining = replace(rest, base=base, written=after) if rest.runtimes else None
            _commit(host, file, after, record, remaining)
            outcome.backup_file = record.copy if changed else None
        return outcome


# -- reading and deciding


def _read(path: str) -> ConfigFile:
    file = read(path)
    check_shape(file.tree, path)
    return file


def _refuse_owned(path: str) -> list[str]:
    """Refuse a file that another program renders, before it has to be TOML; return warnings for one that it rewrites."""
    text = as_text(_files.read_bytes(path))
    owner = (
        owners.owner_of_path(path) or owners.owner_of_path(os.path.realpath(path)) or owners.owner_of_text(path, text)
    )
    if owner is None:
        return []
    if owner.refuse:
        raise ConfigError(owner.message)
    return [owner.message]


def _warn_owned(file: ConfigFile) -> list[str]:
    owner = None if owners.owner_of_text(file.path, as_text(file.data)) else owners.owner_of_tree(file.path, file.tree)
    return [owner.message] if owner else []


def _load_import(path: str) -> Tree | None:
    data = _files.read_bytes(path)
    return None if data is None else parse(path, data).tree


def _decide(request: Request, file: ConfigFile, record: Record | None, files: list[imports.Imported]) -> Plan:
    owned = record.owned(request.runtime_name) if record else {}
    # Which plugin id imported files use can be told only with the version of this file.
    first = plan(file.tree, request, owned)
    foreign = imports.check_imports(files, first.schema, request) + imports.check_foreign_section(file.tree, request)
    merges = request.release.merges_imports if request.release else first.schema.version >= 3
    section = imports.merged_section(files, first.schema, request.release) if merges else {}
    decision = plan(file.tree, request, owned, section) if section else first
    decision.warnings.extend(foreign)
    return decision


def _outcome(changed: bool, before: bytes | None, after: bytes | None, tree: Tree, host: Host) -> Outcome:
    layout = schema_of(tree)
    return Outcome(
        changed,
        before,
        after,
        config_version=layout.version if layout else None,
        plugin_id=layout.cri if layout else None,
        default_runtime_name=get(tree, (*layout.containerd, "default_runtime_name"), None) if layout else None,
        restart_required=changed or os.path.exists(host.mark),
    )


def _unrecorded(file: ConfigFile, request: Request) -> list[str]:
    layout = schema_of(file.tree)
    if layout is None or get(file.tree, (*layout.runtimes, request.runtime_name)) is MISSING:
        return []
    message = (
        f"{request.path} holds runtime {request.runtime_name}, but no record says that this module put it there: it is"
        " left as it is."
    )
    return [message]


# -- proving and writing


def _prove_present(file: ConfigFile, after: bytes | None, request: Request, host: Host) -> None:
    if host.binary is None or after is None:
        return
    verdict = proof.judge(host.binary, file.path, after, host.workdir, host.execute)
    if verdict.refusal is None:
        proof.check_effect(verdict, request)
        return
    now = proof.judge(host.binary, file.path, file.data, host.workdir, host.execute) if file.data else None
    if now and now.refusal is not None:
        raise ConfigError(
            f"containerd refuses {file.path} even as it is now: {now.refusal}; correct that first, nothing was written."
        )
    raise ConfigError(f"containerd refuses {file.path} with the change: {verdict.refusal}; nothing was written.")


def _prove_absent(file: ConfigFile, after: bytes | None, host: Host, first: bool) -> list[str]:
    if host.binary is None or after is None or after == file.data:
        return []
    verdict = proof.judge(host.binary, file.path, after, host.workdir, host.execute)
    if verdict.refusal is None:
        proof.check_default(verdict, file.path)
        return []
    message = f"containerd refuses {file.path} without the change: {verdict.refusal}"
    if not first:
        raise ConfigError(message + "; nothing was written.")
    return [message + "; it was like this before the first run."]


def _first_meeting(file: ConfigFile, host: Host) -> Record:
    copy = None  # of the file for people; the record has what it needs
    if host.keep_copy and file.data is not None:
        _files.make_dirs(host.state_dir, 0o755)
        copy = _files.backup(file.path, host.copies)
    made = _files.missing_dirs(os.path.dirname(os.path.realpath(file.path))) if file.data is None else []
    return Record(base=file.data, written=None, copy=copy, made_dirs=tuple(made))


def _commit(host: Host, file: ConfigFile, after: bytes | None, old: Record | None, new: Record | None) -> None:
    """Replace the file.  A run killed between any two of these steps is healed by the next one."""
    journal, sha = host.journal(file.path), _files.sha256(after)
    if after != file.data:
        _files.make_dirs(host.state_dir, 0o755)
        journal.note(sha, {file.sha: old, sha: new}, keep=True)
        _files.make_dirs(os.path.dirname(host.mark), 0o700)
        _files.write_atomic(host.mark, b"%s\n" % os.fsencode(file.path), mode=0o600)
        if after is None:
            _files.remove_file(file.path)
            _remove_dirs(old.made_dirs if old else ())
        else:
            _files.write_atomic(file.path, after)
    written = sha if after != file.data else journal.written
    journal.note(written, {sha: new}, keep=host.can_roll_back(file.path))


def _remove_dirs(directories: t.Sequence[str]) -> None:
    """Remove the directories that were made for the file, unless others use them."""
    for directory in reversed(directories):
        with contextlib.suppress(OSError):
            os.rmdir(directory)
