# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of the settings that this collection changed in a file, from which they can be undone."""

from __future__ import annotations

import contextlib
import copy
import glob
import json
import os.path
import typing as t
from dataclasses import dataclass, field, replace

from .._document import Format, is_same
from . import files
from .draft import Managed
from .errors import ConfigError
from .paths import StatePaths
from .record import DAMAGED, VersionedRecord, decode_bytes, describe_damage, encode_bytes
from .tree import MISSING, Path, Tree, compare_leaves, drop, format_path, get, put, table


@dataclass(frozen=True)
class Change:
    """One leaf: what it was and what a run made it (MISSING: no leaf there)."""

    path: Path
    kind: str
    before: t.Any
    after: t.Any


@dataclass(frozen=True)
class Rules:
    """How changes of a daemon's file are undone, by their kind, which is the decision that made them."""

    #: The setting without which an entry of the file is not one.
    essential: str
    #: Other entries rely on these changes: they stay until the last entry on record is removed.
    shared: frozenset[str] = frozenset()
    #: Changes of the entry itself. Without any of their settings, the entry is not in the file.
    defining: frozenset[str] = frozenset()
    #: Changes that add to a list: only the items that they added are undone.
    appended: frozenset[str] = frozenset()
    #: Settings that are removed with the entry whatever their value, but for the essential one.
    inherited: frozenset[str] = frozenset()
    #: Settings of which another value prevents no undo.
    unopposed: frozenset[str] = frozenset()
    #: Where a setting is in a file that the daemon's own tools have migrated since.
    locate: t.Callable[[Path, Tree], Path] = lambda path, _tree: path


@dataclass(frozen=True)
class Record:
    """What was done to one file since it was first found, by the entry for which it was done; an imported file is an entry, too."""

    original: bytes | None  # the file as it would be without this collection; None: there would be none
    written: bytes | None  # the file as it was last written
    backup: str | None = None  # where the file as first found is kept for people to read
    created_dirs: tuple[str, ...] = ()
    imported_by: str | None = None  # the file that imports this one, links resolved
    entries: t.Mapping[str, tuple[Change, ...]] = field(default_factory=dict)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes; no two of them are of the same leaf, but for those that add to a list."""
        return tuple(change for changes in self.entries.values() for change in changes)

    def managed(self, entry: str) -> dict[Path, Managed]:
        """Return the leaves changed for *entry*, for the next decision about it."""
        return {change.path: Managed(change.kind, change.before) for change in self.entries.get(entry, ())}


class ChangeLog(VersionedRecord):
    """The records of changes to one configuration file."""

    def __init__(self, target: str, file: str, syntax: Format, rules: Rules) -> None:
        super().__init__(target, file)
        self.syntax = syntax
        self.rules = rules

    def load(self, sha: str | None, tree: Tree) -> Record | None:
        """Return the record for the file with hash *sha*, which means *tree*; None if nothing in it is managed.

        A record whose hash is *sha* is returned unchanged. Of a file that others changed, the latest record is returned,
        without the settings that are no longer as it left them. Raises ConfigError for an unreadable record.
        """
        exact, record = self._find(sha)
        return record if exact or record is None else _keep_applied(record, tree, self.rules)

    def refuse_conflicts(self, sha: str | None, tree: Tree, entry: str) -> None:
        """Raise ConfigError if others changed a setting that an undo of *entry* would remove or restore."""
        exact, record = self._find(sha)
        if exact or record is None:
            return
        conflicts = find_conflicts(split_record(record, entry, self.rules)[0], tree, self.rules)
        if conflicts:
            settings = " and ".join(map(format_path, conflicts))
            backup = f", or restore the former value from {record.backup}" if record.backup else ""
            raise ConfigError(
                f"{self.target} was left as it is, because others changed {settings} after this module set it: remove"
                f" that setting{backup}, then run again."
            )

    def find_drift(self, sha: str | None, tree: Tree) -> list[Path]:
        """Return the settings of the latest run that the file with hash *sha*, which means *tree*, does not have any more.

        Empty for a content of which something is on record, which a rollback may have restored. Raises ConfigError for an unreadable record.
        """
        written, versions = self.read()
        record = self._decode(versions.get(written))
        if record is None or versions.get(sha):
            return []
        return [
            self.rules.locate(change.path, tree)
            for change in record.changes
            if change.kind not in self.rules.unopposed and not _is_applied(change, tree, self.rules)
        ]

    @property
    def entries(self) -> set[str]:
        """For what there is something on record, whatever the file is now."""
        records = (self._decode(content) for content in self.read()[1].values())
        return {name for record in records if record for name in record.entries}

    def write(self, written: str | None, records: t.Mapping[str | None, Record | None], keep: bool) -> None:
        """Write which content was written last, and the record for each content, the latest one last.

        The records for other contents are kept if *keep*. All contents are named by their hash, None for no file.
        """
        fresh = {sha: _encode(record, self.syntax) for sha, record in records.items()}
        others = {sha: content for sha, content in self.read()[1].items() if keep and sha not in fresh}
        self.save(written, {**others, **fresh})

    def _find(self, sha: str | None) -> tuple[bool, Record | None]:
        """Return whether the content with hash *sha* is on record, and its record or else the latest one."""
        records = {known: self._decode(content) for known, content in self.read()[1].items()}
        if sha in records:
            return True, records[sha]
        known = [record for record in records.values() if record is not None]
        if any(sha == files.sha256(record.original) for record in known):
            return True, None
        return False, known[-1] if known else None

    def _decode(self, content: t.Any) -> Record | None:
        try:
            return _decode(content, self.syntax)
        except DAMAGED as exc:
            raise describe_damage(self.file, self.target, exc) from exc


def add_step(
    record: Record, entry: str, before: Tree, after: Tree, kinds: t.Mapping[Path, str], rules: Rules
) -> Record:
    """Return *record* with the step from *before* to *after*, made for *entry*.

    A leaf changed twice keeps its first value as the one to restore, and belongs to the entry that changed it last;
    one that has its first value again is removed from the record.
    """
    entries = {name: {change.path: change for change in changes} for name, changes in record.entries.items()}
    changes = entries.setdefault(entry, {})
    for path, (old, new) in compare_leaves(before, after).items():
        kind = kinds.get(path)
        known = next((each.pop(path) for each in entries.values() if _continues(each.get(path), kind, rules)), None)
        origin = known.before if known else old
        if not is_same(origin, new):
            changes[path] = Change(path, kind or (known.kind if known else "settings"), origin, new)
    return replace(record, entries={name: tuple(each.values()) for name, each in entries.items()})


def _continues(known: Change | None, kind: str | None, rules: Rules) -> bool:
    """Whether a change of *kind* replaces the *known* one of that leaf; what is added to a list stands beside it."""
    return known is not None and rules.appended.isdisjoint([known.kind, kind])


def split_record(record: Record, entry: str, rules: Rules) -> tuple[tuple[Change, ...], Record]:
    """Return the changes to undo for *entry*, and the record without it.

    What other entries of the file rely on is assigned to one of them.
    """
    others = {name: changes for name, changes in record.entries.items() if name != entry and changes}
    changes = record.entries.get(entry, ())
    if not others:
        return changes, replace(record, entries={})
    successor = min(others)
    assigned = tuple(change for change in changes if change.kind in rules.shared)
    undo = tuple(change for change in changes if change.kind not in rules.shared)
    return undo, replace(record, entries={**others, successor: others[successor] + assigned})


def undo_changes(
    tree: Tree,
    changes: t.Sequence[Change],
    tables: t.Sequence[Path],
    rules: Rules,
    original: Tree | None = None,
) -> Tree:
    """Return what *tree* means without *changes*; a setting that is not as they left it stays.

    *tables* are the paths of tables of entries. An entry that loses its essential setting is removed as a whole, unless
    it was there before the first change (*original*).
    """
    result = copy.deepcopy(tree)
    empty_before = {change.path for change in changes if change.before == {}}
    for change in changes:
        if change.kind in rules.appended:
            _remove_items(result, change, original)
        elif isinstance(change.before, dict) or not is_same(get(result, change.path), change.after):
            continue
        elif change.before is MISSING:
            drop(result, change.path, keep=empty_before)
        else:
            put(result, change.path, change.before)
    for change in changes:
        entry = change.path[:-1]
        rest = change.path[-1] == rules.essential and entry[:-1] in tables and table(result, entry)
        if rest and rules.essential not in rest and get(original, entry) is MISSING:
            drop(result, entry, keep=empty_before)
    return result


def find_conflicts(changes: t.Sequence[Change], tree: Tree, rules: Rules) -> list[Path]:
    """Return the settings of *changes* that others gave a third value: neither the one before nor the one after.

    A setting that others removed is not a conflict.
    """
    found = {rules.locate(change.path, tree): change for change in changes if _can_conflict(change, rules)}
    return [
        path
        for path, change in found.items()
        if not any(is_same(get(tree, path), value) for value in (MISSING, change.before, change.after))
    ]


def _can_conflict(change: Change, rules: Rules) -> bool:
    """Whether another value of the setting prevents an undo."""
    if change.kind in rules.inherited:
        return change.path[-1] == rules.essential
    return change.kind not in rules.unopposed | rules.appended and not isinstance(change.before, dict)


def _added_items(change: Change) -> list[t.Any]:
    return [value for value in change.after if value not in (change.before or [])]


def _remove_items(tree: Tree, change: Change, original: Tree | None) -> None:
    """Remove in place what *change* added to a list, and the list if it is empty by that and was not there originally."""
    now, added = get(tree, change.path, []), _added_items(change)
    rest = [value for value in now if value not in added]
    if rest or get(original, change.path) is not MISSING:
        put(tree, change.path, rest)
    elif now:
        drop(tree, change.path)


def _keep_applied(record: Record, tree: Tree, rules: Rules) -> Record | None:
    """Return the part of *record* that others have left in *tree*; None if they removed the entry itself.

    Without the entry, a table beside it looks like one that others wrote, and counts as unmanaged.
    """
    defining = [change for change in record.changes if change.kind in rules.defining]
    if defining and not any(_is_applied(change, tree, rules) for change in defining):
        return None
    if not defining and not all(_is_applied(change, tree, rules) for change in record.changes):
        return None
    applied = {
        name: tuple(replace(c, path=rules.locate(c.path, tree)) for c in changes if _is_applied(c, tree, rules))
        for name, changes in record.entries.items()
    }
    entries = {name: changes for name, changes in applied.items() if changes}
    return replace(record, entries=entries) if entries else None


def _is_applied(change: Change, tree: Tree, rules: Rules) -> bool:
    """Whether *tree* has what *change* made of the setting."""
    now = get(tree, rules.locate(change.path, tree))
    if change.kind in rules.appended:
        return isinstance(now, list) and all(value in now for value in _added_items(change))
    return is_same(now, change.after) or (isinstance(change.before, dict) and isinstance(now, dict))


def list_changed_files(state_dir: str, besides: str | None = None) -> list[str]:
    """Return the configuration files of which a record has an entry, without the file *besides* and those that it imports.

    A file that only imports another one, whose entries are all named by an absolute path, does not count.
    """
    known = os.path.realpath(besides) if besides else None
    return sorted(
        {
            path
            for path, imported_by, entries in _read_all(state_dir)
            if (known is None or known not in (path, imported_by)) and not all(map(os.path.isabs, entries))
        }
    )


def list_recorded_files(state_dir: str) -> list[str]:
    """Return the configuration files of which there is a record; a damaged record is left out."""
    return sorted({path for path, _imported_by, _entries in _read_all(state_dir)})


def list_imported_files(state_dir: str, path: str) -> list[str]:
    """Return the files that *path* imports and of which there is a record, if only for what a snapshot can restore."""
    here = os.path.realpath(path)
    return sorted({imported for imported, imported_by, _entries in _read_all(state_dir) if imported_by == here})


def add_imported_files(state_dir: str, paths: t.Sequence[str]) -> list[str]:
    """Return the paths, and then the files that they import and of which there is a record."""
    known = [os.path.realpath(path) for path in paths]
    imported = [each for path in known for each in list_imported_files(state_dir, path)]
    return [*paths, *(each for each in imported if each not in known)]


def _read_all(state_dir: str) -> t.Iterator[tuple[str, t.Any, list[str]]]:
    """Yield each file on record, the file that imports it, and its entries; a damaged record is left out."""
    for name in glob.glob(os.path.join(glob.escape(StatePaths(state_dir).records()), "*.json")):
        with contextlib.suppress(OSError, *DAMAGED), open(name, encoding="utf-8") as stream:
            content = json.load(stream)
            records = [version["record"] for version in content["record"]["versions"] if version["record"]]
            yield from [(str(content["path"]), each["imported_by"], list(each["entries"])) for each in records]


def _encode(record: Record | None, syntax: Format) -> dict[str, t.Any] | None:
    if record is None:
        return None
    return {
        "original": encode_bytes(record.original),
        "written": encode_bytes(record.written),
        "backup": record.backup,
        "created_dirs": list(record.created_dirs),
        "imported_by": record.imported_by,
        "entries": {
            name: [
                {
                    "path": list(c.path),
                    "kind": c.kind,
                    "before": _encode_value(c.before, syntax),
                    "after": _encode_value(c.after, syntax),
                }
                for c in changes
            ]
            for name, changes in record.entries.items()
        },
    }


def _decode(content: dict[str, t.Any] | None, syntax: Format) -> Record | None:
    if content is None:
        return None
    return Record(
        decode_bytes(content["original"]),
        decode_bytes(content["written"]),
        content["backup"],
        tuple(content["created_dirs"]),
        content["imported_by"],
        {
            name: tuple(
                Change(
                    tuple(c["path"]), c["kind"], _decode_value(c["before"], syntax), _decode_value(c["after"], syntax)
                )
                for c in changes
            )
            for name, changes in content["entries"].items()
        },
    )


def _encode_value(value: t.Any, syntax: Format) -> str | None:
    """Values are kept in the syntax of their file: TOML has dates and infinity, JSON has null."""
    return None if value is MISSING else syntax.dumps({"value": value})


def _decode_value(text: str | None, syntax: Format) -> t.Any:
    return MISSING if text is None else syntax.loads(text)["value"]
