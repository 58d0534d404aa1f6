# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of the settings that this collection changed in a file, from which they can be undone.

The record for the new content is written before the file is replaced, beside the record for the old content.  A run that
is killed between any two steps, and a rollback, therefore leave a record that fits the file.
"""

from __future__ import annotations

import base64
import copy
import json
import os.path
import typing as t
from dataclasses import dataclass, field, replace

from .. import _files
from .._document import DocumentError, Format, same
from .draft import Owned
from .errors import ConfigError
from .formats import TOML
from .schema import follow_migration
from .trees import MISSING, Path, Tree, changed_leaves, dotted, drop, get, put, table

FORMAT = 1

#: Decisions that other runtimes in the same file rely on: they stay until the last runtime on record is removed.
_SHARED_KINDS = frozenset(["version", "cri", "runc", "cgroup", "cdi"])

#: Decisions about the runtime itself. Without any of their settings, the runtime is not in the file.
_RUNTIME_KINDS = frozenset(["runtime", "inherit", "default", "import"])

#: The decision that adds to a list: only the items that it added are undone.
_ADDING = "import"


@dataclass(frozen=True)
class Change:
    """One leaf: what it was and what we made it (MISSING: no leaf there)."""

    path: Path
    kind: str
    before: t.Any
    after: t.Any


@dataclass(frozen=True)
class Record:
    """What we did to one file since we first met it."""

    base: bytes | None  # the file as it would be without us; None: there would be none
    written: bytes | None  # the file as we left it
    copy: str | None = None  # where the file as first met is kept for people to look at
    made_dirs: tuple[str, ...] = ()
    root: str | None = None  # of a drop-in: the file that imports it, links resolved
    runtimes: t.Mapping[str, tuple[Change, ...]] = field(default_factory=dict)

    def owned(self, runtime: str) -> dict[Path, Owned]:
        """Return the leaves changed for *runtime*, for the next decision about it."""
        return {change.path: Owned(change.kind, change.before) for change in self.runtimes.get(runtime, ())}


class Journal:
    """The file with the records of one configuration file (mode 0600: it can hold credentials).

    There is one record for each content that the file can have, by its hash: for those before and after a change, because a
    run can be killed in between, and for those that a snapshot can still restore.
    """

    def __init__(self, target: str, file: str, syntax: Format = TOML) -> None:
        self.target = os.path.realpath(target)
        self.file = file
        self.syntax = syntax

    def load(self, sha: str | None, tree: Tree) -> Record | None:
        """Return the record for the file with hash *sha*, which means *tree*; None if nothing in it is managed.

        A record whose hash is *sha* is returned unchanged.  Of a file that others changed, the latest record is returned,
        without the settings that are no longer as it left them.  Raises ConfigError for an unreadable record.
        """
        exact, record = self._lookup(sha)
        return record if exact or record is None else _keep_applied(record, tree)

    def refuse_conflicts(self, sha: str | None, tree: Tree, runtime: str) -> None:
        """Raise ConfigError if others changed a setting that an undo of *runtime* would remove or restore."""
        exact, record = self._lookup(sha)
        if exact or record is None:
            return
        conflicts = find_conflicts(release(record, runtime)[0], tree)
        if conflicts:
            settings = " and ".join(map(dotted, conflicts))
            backup = f", or restore the former value from {record.copy}" if record.copy else ""
            raise ConfigError(
                f"{self.target} was left as it is, because others changed {settings} after this module set it: remove"
                f" that setting{backup}, then run again."
            )

    def _lookup(self, sha: str | None) -> tuple[bool, Record | None]:
        """Return whether the content with hash *sha* is on record, and its record or else the latest one."""
        records = {known: self._decoded(content) for known, content in self._read()[1].items()}
        if sha in records:
            return True, records[sha]
        known = [record for record in records.values() if record is not None]
        if any(sha == _files.sha256(record.base) for record in known):
            return True, None
        return False, known[-1] if known else None

    @property
    def runtimes(self) -> set[str]:
        """For what there is something on record, whatever the file is by now."""
        records = (self._decoded(content) for content in self._read()[1].values())
        return {name for record in records if record for name in record.runtimes}

    @property
    def written(self) -> t.Any:
        """Hash of the content that was written last (None: no file); MISSING if there is nothing on record."""
        return self._read()[0]

    def note(self, written: str | None, records: t.Mapping[str | None, Record | None], keep: bool) -> None:
        """Write which content was written last, and the record for each content, the latest one last.

        The records for other contents are kept if *keep*.  All contents are named by their hash, None for no file.
        """
        fresh = {sha: _encode(record, self.syntax) for sha, record in records.items()}
        others = {sha: content for sha, content in self._read()[1].items() if keep and sha not in fresh}
        self._write(written, {**others, **fresh})

    def settle(self, sha: str | None) -> None:
        """Forget what holds for contents other than that with hash *sha*: nobody will bring them back."""
        last, known = self._read()
        if sha in known and len(known) > 1:
            self._write(last, {sha: known[sha]})

    def clear(self) -> None:
        """Forget everything: nothing of ours is in the file."""
        _files.remove_file(self.file)

    def _read(self) -> tuple[t.Any, dict[str | None, t.Any]]:
        """Return `written` and the records, not decoded yet, by the hash of the content for which they hold."""
        data = _files.read_bytes(self.file)
        if data is None:
            return MISSING, {}
        try:
            content = json.loads(data.decode("utf-8"))
            if content["format"] != FORMAT:
                raise ConfigError(
                    f"{self.file}, the record of changes to {self.target}, is of format {content['format']} and not"
                    f" {FORMAT}: run the release of gpu.kubernetes that wrote it."
                )
            return content["written"], {version["sha"]: version["record"] for version in content["versions"]}
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise self._damaged(exc) from exc

    def _decoded(self, content: t.Any) -> Record | None:
        try:
            return _decode(content, self.syntax)
        except (ValueError, KeyError, TypeError, AttributeError, DocumentError) as exc:
            raise self._damaged(exc) from exc

    def _damaged(self, exc: Exception) -> ConfigError:
        cause = f"{exc} is missing" if isinstance(exc, KeyError) else str(exc).rstrip(".")
        return ConfigError(
            f"{self.file}, the record of changes to {self.target}, is damaged ({cause}): put back a good copy, or move it"
            " away and take out by hand what earlier runs wrote; then run again."
        )

    def _write(self, written: t.Any, versions: t.Mapping[str | None, t.Any]) -> None:
        if not any(versions.values()):
            self.clear()
            return
        content = {
            "format": FORMAT,
            "path": self.target,
            "written": written,
            "versions": [{"sha": sha, "record": record} for sha, record in versions.items()],
        }
        text = json.dumps(content, indent=1, sort_keys=True)
        _files.make_dirs(os.path.dirname(self.file), 0o700)
        _files.write_atomic(self.file, text.encode("utf-8") + b"\n", mode=0o600)


def extend(record: Record, runtime: str, before: Tree, after: Tree, kinds: t.Mapping[Path, str]) -> Record:
    """Return *record* with the step from *before* to *after*, made for *runtime*.

    A leaf changed twice keeps its first value as what to go back to, and belongs to the runtime that changed it last;
    one that is back at its first value is forgotten.
    """
    runtimes = {name: {change.path: change for change in changes} for name, changes in record.runtimes.items()}
    mine = runtimes.setdefault(runtime, {})
    for path, (old, new) in changed_leaves(before, after).items():
        kind = kinds.get(path)
        known = next((changes.pop(path) for changes in runtimes.values() if _continues(changes.get(path), kind)), None)
        origin = known.before if known else old
        if not same(origin, new):
            mine[path] = Change(path, kind or (known.kind if known else "settings"), origin, new)
    return replace(record, runtimes={name: tuple(changes.values()) for name, changes in runtimes.items()})


def _continues(known: Change | None, kind: str | None) -> bool:
    """Whether a change of *kind* takes the place of the *known* one of that leaf; what is added to a list stands beside it."""
    return known is not None and _ADDING not in (known.kind, kind)


def everything(record: Record) -> tuple[Change, ...]:
    """Return all changes in *record*; no two of them are of the same leaf, but for those that add to a list."""
    return tuple(change for changes in record.runtimes.values() for change in changes)


def release(record: Record, runtime: str) -> tuple[tuple[Change, ...], Record]:
    """Return the changes to undo for *runtime*, and the record without it.

    What other runtimes in the file rely on is handed to one of them.
    """
    others = {name: changes for name, changes in record.runtimes.items() if name != runtime and changes}
    mine = record.runtimes.get(runtime, ())
    if not others:
        return mine, replace(record, runtimes={})
    heir = min(others)
    handed = tuple(change for change in mine if change.kind in _SHARED_KINDS)
    undo = tuple(change for change in mine if change.kind not in _SHARED_KINDS)
    return undo, replace(record, runtimes={**others, heir: others[heir] + handed})


def undone(
    tree: Tree,
    changes: t.Sequence[Change],
    runtimes: t.Sequence[Path],
    original: Tree | None = None,
    essential: str = "runtime_type",
) -> Tree:
    """Return what *tree* means without *changes*; a setting that is not as they left it stays.

    *runtimes* are the paths of tables of runtimes.  A runtime that loses the setting *essential* is removed as a whole, unless
    it was there before the first change (*original*).
    """
    result = copy.deepcopy(tree)
    empty_before = {change.path for change in changes if change.before == {}}
    for change in changes:
        if change.kind == _ADDING:
            _take_out(result, change, original)
        elif isinstance(change.before, dict) or not same(get(result, change.path), change.after):
            continue
        elif change.before is MISSING:
            drop(result, change.path, keep=empty_before)
        else:
            put(result, change.path, change.before)
    for change in changes:
        runtime = change.path[:-1]
        useless = change.path[-1] == essential and runtime[:-1] in runtimes and table(result, runtime)
        if useless and essential not in useless and get(original, runtime) is MISSING:
            drop(result, runtime, keep=empty_before)
    return result


def find_conflicts(changes: t.Sequence[Change], tree: Tree) -> list[Path]:
    """Return the settings of *changes* that others gave a third value: neither the one before nor the one after.

    A setting that others removed is not a conflict.
    """
    found = {follow_migration(change.path, tree): change for change in changes if _can_conflict(change)}
    return [
        path
        for path, change in found.items()
        if not any(same(get(tree, path), value) for value in (MISSING, change.before, change.after))
    ]


def _can_conflict(change: Change) -> bool:
    """Whether another value of the setting prevents an undo.

    The version does not, for the whole file is written in it.  A setting that a runtime inherited is removed with the runtime.
    """
    if change.kind == "inherit":
        return change.path[-1] == "runtime_type"
    return change.kind not in ("version", _ADDING) and not isinstance(change.before, dict)


def _added(change: Change) -> list[t.Any]:
    return [value for value in change.after if value not in (change.before or [])]


def _take_out(tree: Tree, change: Change, original: Tree | None) -> None:
    """Take out in place what *change* added to a list, and the list if it is empty by it and was not there before us."""
    now, added = get(tree, change.path, []), _added(change)
    rest = [value for value in now if value not in added]
    if rest or get(original, change.path) is not MISSING:
        put(tree, change.path, rest)
    elif now:
        drop(tree, change.path)


def _keep_applied(record: Record, tree: Tree) -> Record | None:
    """Return the part of *record* that others have left in *tree*; None if they removed the runtime itself.

    Without the runtime, a table such as runc cannot be told from one that others wrote, so that it counts as theirs.
    """
    own = [change for change in everything(record) if change.kind in _RUNTIME_KINDS]
    if own and not any(_is_applied(change, tree) for change in own):
        return None
    if not own and not all(_is_applied(change, tree) for change in everything(record)):
        return None
    applied = {
        name: tuple(replace(c, path=follow_migration(c.path, tree)) for c in changes if _is_applied(c, tree))
        for name, changes in record.runtimes.items()
    }
    runtimes = {name: changes for name, changes in applied.items() if changes}
    return replace(record, runtimes=runtimes) if runtimes else None


def _is_applied(change: Change, tree: Tree) -> bool:
    """Whether *tree* has what *change* made of the setting."""
    now = get(tree, follow_migration(change.path, tree))
    if change.kind == _ADDING:
        return isinstance(now, list) and all(value in now for value in _added(change))
    return same(now, change.after) or (isinstance(change.before, dict) and isinstance(now, dict))


def _encode(record: Record | None, syntax: Format) -> dict[str, t.Any] | None:
    if record is None:
        return None
    return {
        "base": _encode_bytes(record.base),
        "written": _encode_bytes(record.written),
        "copy": record.copy,
        "made_dirs": list(record.made_dirs),
        "root": record.root,
        "runtimes": {
            name: [
                {
                    "path": list(c.path),
                    "kind": c.kind,
                    "before": _encode_value(c.before, syntax),
                    "after": _encode_value(c.after, syntax),
                }
                for c in changes
            ]
            for name, changes in record.runtimes.items()
        },
    }


def _decode(content: dict[str, t.Any] | None, syntax: Format) -> Record | None:
    if content is None:
        return None
    return Record(
        _decode_bytes(content["base"]),
        _decode_bytes(content["written"]),
        content["copy"],
        tuple(content["made_dirs"]),
        content["root"],
        {
            name: tuple(
                Change(
                    tuple(c["path"]), c["kind"], _decode_value(c["before"], syntax), _decode_value(c["after"], syntax)
                )
                for c in changes
            )
            for name, changes in content["runtimes"].items()
        },
    )


def _encode_bytes(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _decode_bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def _encode_value(value: t.Any, syntax: Format) -> str | None:
    """Values are kept in the syntax of their file: TOML has dates and infinity, JSON has null."""
    return None if value is MISSING else syntax.dumps({"value": value})


def _decode_value(text: str | None, syntax: Format) -> t.Any:
    return MISSING if text is None else syntax.loads(text)["value"]
