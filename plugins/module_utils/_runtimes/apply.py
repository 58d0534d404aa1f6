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
from .._toml import Document, TomlError
from . import imports, owners, proof
from .containerd import Plan, Request, plan
from .errors import ConfigError
from .journal import Change, Journal, Record, everything, extend, release, undone
from .patch import revert
from .schema import NEUTRAL_KEYS, Schema, is_version, schema
from .trees import MISSING, Path, Tree, dotted, drop, edits, get, put, same, table

#: Name of the mark that says: containerd has not been restarted with the file as it is.
RESTART_MARK = "containerd.restart"


@dataclass(frozen=True)
class Host:
    """The node as the run finds it, and what it may do there."""

    state_dir: str = _files.STATE_DIR
    check_mode: bool = False
    keep_copy: bool = True
    binary: str | None = None  # containerd; None: there is none, or it is not to be asked
    workdir: str | None = None  # where a private directory for the proof may be made
    lock_dirs: tuple[str, ...] = (_files.LOCK_DIR,)
    execute: proof.Run = proof.run

    @property
    def mark(self) -> str:
        """Path of the mark for a restart that nobody confirmed yet."""
        return os.path.join(self.state_dir, "pending", RESTART_MARK)

    @property
    def copies(self) -> str:
        """Directory of the files as first met."""
        return os.path.join(self.state_dir, "backups")

    @property
    def records(self) -> str:
        """Directory of the records of changes."""
        return os.path.join(self.state_dir, "state", "containerd_config")

    def journal(self, path: str) -> Journal:
        """Return the journal of the configuration file *path*."""
        return Journal(path, self.records)


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


@dataclass
class _File:
    """A configuration file as read: bytes, and the meaning of those bytes (the document is edited, `tree` stays)."""

    path: str
    data: bytes | None
    document: Document
    tree: Tree

    @property
    def sha(self) -> str | None:
        return _files.sha256(self.data)


def ensure_present(request: Request, host: Host) -> Outcome:
    """Merge the runtime into the file; raises ConfigError or FilesError, and then the file is as it was."""
    with _exclusive(request.path, host):
        warnings = _refuse_owned(request.path)
        file = _read(request.path)
        warnings += _warn_owned(file)
        record = host.journal(request.path).load(file.sha, file.tree)
        files = imports.imported_files(request.path, file.tree, _load_import)
        decision = _decide(request, file, record, files)
        warnings += decision.warnings
        changes = edits(file.tree, decision.target)
        base = _without_us(file, record) if record and changes else None
        after = _edit(file, decision.target) if changes else file.data
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
    with _exclusive(request.path, host):
        file = _read(request.path)
        journal = host.journal(request.path)
        record = journal.load(file.sha, file.tree)
        if record is None and not host.check_mode:
            journal.clear()
        if record is None or request.runtime_name not in record.runtimes:
            outcome = _outcome(False, file.data, file.data, file.tree, host)
            outcome.warnings = _unrecorded(file, request)
            return outcome
        undo, rest = release(record, request.runtime_name)
        target, warnings = _without(file, undo, request)
        base = _without_us(file, record)
        back = not rest.runtimes and same(_meaning(base), target)
        after = base if back else _edit(file, target)
        warnings += _prove_absent(file, after, host, first=back and file.data == record.written)
        changed = after != file.data
        outcome = _outcome(changed, file.data, after, target, host)
        outcome.warnings = warnings
        outcome.reasons = [f"take out {dotted(change.path)}" for change in undo] if changed else []
        if not host.check_mode:
            remaining = replace(rest, base=base, written=after) if rest.runtimes else None
            _commit(host, file, after, record, remaining)
            outcome.backup_file = record.copy if changed else None
        return outcome


# -- reading and deciding


@contextlib.contextmanager
def _exclusive(path: str, host: Host) -> t.Iterator[None]:
    if host.check_mode:
        yield
        return
    with _files.lock(path, (*host.lock_dirs, os.path.join(host.state_dir, "lock"))):
        _files.remove_stale_temps(path)
        for directory in (host.copies, host.records, os.path.dirname(host.mark)):
            _files.sweep(directory)
        yield


def _read(path: str) -> _File:
    data = _files.read_bytes(path)
    document = _parse(path, data or b"")
    return _File(path, data, document, document.tree)


def _parse(path: str, data: bytes) -> Document:
    try:
        return Document.from_bytes(data)
    except TomlError as exc:
        owner = owners.owner_of_broken(path, _text(data))
        if owner:
            raise ConfigError(owner.message) from exc
        cause = exc.message.rstrip(".")
        raise ConfigError(f"{path}, line {exc.line}, column {exc.column}: {cause}; correct it and run again.") from exc


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _refuse_owned(path: str) -> list[str]:
    """Refuse a file that another program renders, before it has to be TOML; return a warning for one that it"
    " rewrites."""
    text = _text(_files.read_bytes(path) or b"")
    owner = (
        owners.owner_of_path(path) or owners.owner_of_path(os.path.realpath(path)) or owners.owner_of_text(path, text)
    )
    if owner is None:
        return []
    if owner.refuse:
        raise ConfigError(owner.message)
    return [owner.message]


def _warn_owned(file: _File) -> list[str]:
    owner = (
        None if owners.owner_of_text(file.path, _text(file.data or b"")) else owners.owner_of_tree(file.path, file.tree)
    )
    return [owner.message] if owner else []


def _load_import(path: str) -> Tree | None:
    data = _files.read_bytes(path)
    return None if data is None else _parse(path, data).tree


def _decide(request: Request, file: _File, record: Record | None, files: list[imports.Imported]) -> Plan:
    owned = record.owned(request.runtime_name) if record else {}
    # Which plugin id imported files use can be told only with the version of this file.
    first = plan(file.tree, request, owned)
    foreign = imports.check_imports(files, first.schema, request) + imports.check_foreign_section(file.tree, request)
    merges = request.release.merges_imports if request.release else first.schema.version >= 3
    decision = (
        plan(file.tree, request, owned, imports.merged_section(files, first.schema)) if files and merges else first
    )
    decision.warnings.extend(foreign)
    return decision


def _edit(file: _File, target: Tree) -> bytes:
    """Return the file's bytes with the fewest edits that make it mean *target*."""
    document = file.document
    additions: Tree = {}
    try:
        for edit in edits(file.tree, target):
            if edit.value is MISSING:
                document.remove(edit.path)
            elif len(edit.path) == 1 or (isinstance(edit.value, dict) and get(file.tree, edit.path) is not MISSING):
                document.set(edit.path, edit.value)
            else:
                put(additions, edit.path, edit.value)
        document.merge(additions)  # all at once, because every edit reads the whole text again
    except TomlError as exc:
        raise ConfigError(f"{file.path} cannot be edited: {exc}; make that change by hand and run again.") from exc
    if not same(document.tree, target):
        raise ConfigError(f"{file.path} cannot be edited without changing more than was asked; nothing was written.")
    return document.to_bytes()


def _outcome(changed: bool, before: bytes | None, after: bytes | None, tree: Tree, host: Host) -> Outcome:
    layout = _schema_of(tree)
    default = get(tree, (*layout.containerd, "default_runtime_name"), None) if layout else None
    return Outcome(
        changed,
        before,
        after,
        config_version=layout.version if layout else None,
        plugin_id=layout.cri if layout else None,
        default_runtime_name=default,
        restart_required=changed or os.path.exists(host.mark),
    )


def _schema_of(tree: Tree) -> Schema | None:
    version: t.Any = tree.get("version")
    return schema(version) if is_version(version, 2) else None


# -- undoing


def _unrecorded(file: _File, request: Request) -> list[str]:
    layout = _schema_of(file.tree)
    if layout is None or get(file.tree, (*layout.runtimes, request.runtime_name)) is MISSING:
        return []
    message = (
        f"{request.path} holds runtime {request.runtime_name}, but no record says that this module put it there: it is"
        " left as it is."
    )
    return [message]


def _without(file: _File, undo: t.Sequence[Change], request: Request) -> tuple[Tree, list[str]]:
    """Return what the file means without our changes, still a configuration that containerd can serve CRI with."""
    layout = _schema_of(file.tree)
    runtimes = _tables_of_runtimes(file.tree)
    target, left = undone(file.tree, undo, runtimes)
    if "version" not in target and not NEUTRAL_KEYS.issuperset(target):
        # Others have added settings of today's plugins: those need the version.
        target, left = undone(file.tree, [c for c in undo if c.kind not in ("version", "cri")], runtimes)
    warnings = [f"{file.path}: {dotted(path)} was changed by others since and is left as it is." for path in left]
    if layout and "version" in target:
        warnings += _keep_runc(file, target, layout) + _keep_default(file, target, layout, request)
    return target, warnings


def _keep_runc(file: _File, target: Tree, layout: Schema) -> list[str]:
    runc: Path = (*layout.runtimes, "runc")
    ours = get(file.tree, runc)
    if layout.builtin_runc or ours is MISSING or get(target, runc) is not MISSING or not table(target, layout.runtimes):
        return []
    put(target, runc, ours)
    return [f"{file.path}: runtime runc stays, because containerd 1.x needs it beside the runtimes that others added."]


def _keep_default(file: _File, target: Tree, layout: Schema, request: Request) -> list[str]:
    path: Path = (*layout.containerd, "default_runtime_name")
    name, runtimes = request.runtime_name, table(target, layout.runtimes)
    if get(target, path) != name or name in runtimes:
        return []
    if "runc" in runtimes:
        put(target, path, "runc")
    else:
        drop(target, path)
    return [f"{file.path}: the default runtime is runc again, because {name} is gone."]


def _without_us(file: _File, record: Record) -> bytes | None:
    """Return the file as it would be if we had never been there, with what others wrote since (None: no file).

    Unchanged by others, it is the file as first met, to the byte; else our lines are taken out, or, if others changed
    those too, our settings.
    """
    if file.data == record.written:
        return record.base
    target, _left = undone(file.tree, everything(record), _tables_of_runtimes(file.tree))
    reverted = revert(record.base or b"", record.written or b"", file.data or b"")
    if reverted is not None and same(_meaning(reverted), target):
        return reverted
    return _edit(_read(file.path), target)


def _meaning(data: bytes | None) -> Tree | None:
    """Return what *data* means, an empty tree for no file and None if it is no TOML."""
    try:
        return Document.from_bytes(data or b"").tree
    except TomlError:
        return None


def _tables_of_runtimes(tree: Tree) -> list[Path]:
    layout = _schema_of(tree)
    return [layout.runtimes] if layout else []


# -- proving and writing


def _prove_present(file: _File, after: bytes | None, request: Request, host: Host) -> None:
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


def _prove_absent(file: _File, after: bytes | None, host: Host, first: bool) -> list[str]:
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


def _first_meeting(file: _File, host: Host) -> Record:
    copy = None  # of the file for people; the record has what it needs
    if host.keep_copy and file.data is not None:
        _files.make_dirs(host.state_dir, 0o755)
        copy = _files.backup(file.path, host.copies)
    made = _files.missing_dirs(os.path.dirname(os.path.realpath(file.path))) if file.data is None else []
    return Record(base=file.data, written=None, copy=copy, made_dirs=tuple(made))


def _commit(host: Host, file: _File, after: bytes | None, old: Record | None, new: Record | None) -> None:
    """Replace the file.  A run killed between any two of these steps is healed by the next one."""
    journal = host.journal(file.path)
    if after == file.data:
        journal.settle(new)
        return
    _files.make_dirs(host.state_dir, 0o755)
    journal.intend(old, new, file.sha, _files.sha256(after))
    _files.make_dirs(os.path.dirname(host.mark), 0o700)
    _files.write_atomic(host.mark, b"%s\n" % os.fsencode(file.path), mode=0o600)
    if after is None:
        _files.remove_file(file.path)
        _remove_dirs(old.made_dirs if old else ())
    else:
        _files.write_atomic(file.path, after)
    journal.settle(new)


def _remove_dirs(directories: t.Sequence[str]) -> None:
    """Remove the directories that were made for the file, unless others use them."""
    for directory in reversed(directories):
        with contextlib.suppress(OSError):
            os.rmdir(directory)
