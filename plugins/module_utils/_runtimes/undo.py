# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a file means once our changes are taken out, with what others wrote since.  Private to this collection."""

from __future__ import annotations

import typing as t

from .._document import same
from .config_file import ConfigFile, edited, meaning, read
from .journal import Change, Record, everything, undone
from .patch import revert
from .schema import CRI_NAMES, NEUTRAL_KEYS, Schema, schema_of
from .trees import MISSING, Path, Tree, drop, get, leaves, put, table

if t.TYPE_CHECKING:
    from .daemon import Daemon


def without(path: str, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
    """Return what *tree*, the meaning of containerd's file *path*, means without *changes*, and warnings about what stays.

    If the whole is what it was before us (*original*), nothing stays.  Else others have built on it since, and it has to
    stay a configuration that containerd can serve CRI with.
    """
    layout = schema_of(tree)
    runtimes = [layout.runtimes] if layout else []
    stay = _ours_in_foreign_runc(tree, changes, layout) if layout else []
    warnings = []
    if stay:
        warnings.append(f"{path}: runtime runc stays, because others have written settings into its table.")
    target = undone(tree, _but(changes, stay), runtimes, original)
    if same(target, original):
        return target, warnings
    cri = [change for change in changes if change.kind == "cri" or _switched_cri_on(change)]
    if any(_switched_cri_on(change) and same(get(tree, change.path), change.after) for change in cri):
        warnings.append(f"{path}: the CRI plugin stays switched on, because others have changed the file since.")
    if cri or ("version" not in target and not NEUTRAL_KEYS.issuperset(target)):
        # Names and settings of today's plugins need the version.
        stay += cri + [change for change in changes if change.kind == "version"]
    target = undone(tree, _but(changes, stay), runtimes, original)
    if layout and "version" in target:
        warnings += _keep_runc(path, tree, target, layout) + keep_default(
            path, tree, target, (*layout.containerd, "default_runtime_name"), layout.runtimes
        )
    return target, warnings


def taken_out(
    path: str,
    tree: Tree,
    changes: t.Sequence[Change],
    original: Tree | None,
    runtimes: Path,
    default: Path,
    essential: str,
    builtin: str | None = "runc",
) -> tuple[Tree, list[str]]:
    """Return what *tree*, the meaning of *path*, means without *changes*, and warnings, for daemons without further ties.

    *runtimes* and *default* are the paths of the table of runtimes and of the default runtime; a runtime without the
    setting *essential* is none.  *builtin* is the default of a file that names none; None: other files decide.
    """
    target = undone(tree, changes, [runtimes], original, essential)
    if same(target, original):
        return target, []
    return target, keep_default(path, tree, target, default, runtimes, builtin)


def without_us(daemon: Daemon, file: ConfigFile, record: Record) -> bytes | None:
    """Return the file as it would be if we had never been there, with what others wrote since (None: no file).

    Unchanged by others, it is the file as first met, to the byte; else our lines are taken out, or, if others changed
    those too, our settings.
    """
    if file.data == record.written:
        return record.base
    target, _warnings = daemon.without(file.tree, everything(record), meaning(record.base, file.syntax))
    reverted = revert(record.base or b"", record.written or b"", file.data or b"")
    if reverted is not None and same(meaning(reverted, file.syntax), target):
        return reverted
    return edited(read(file.path, file.syntax), target)


def _switched_cri_on(change: Change) -> bool:
    names = change.before if change.path == ("disabled_plugins",) and isinstance(change.before, list) else []
    return not CRI_NAMES.isdisjoint(names)


def _but(changes: t.Sequence[Change], stay: t.Sequence[Change]) -> list[Change]:
    return [change for change in changes if change not in stay]


def _ours_in_foreign_runc(tree: Tree, changes: t.Sequence[Change], layout: Schema) -> list[Change]:
    """Return our changes that make up a table runc in which others have written too; without its type it were useless."""
    path: Path = (*layout.runtimes, "runc")
    ours = [
        change
        for change in changes
        if change.before is MISSING and (change.kind == "runc" or change.path == (*path, "runtime_type"))
    ]
    known = {change.path for change in changes if same(get(tree, change.path), change.after)}
    there = {(*path, *leaf) for leaf in leaves(table(tree, path))}
    return ours if ours and there - known else []


def _keep_runc(path: str, tree: Tree, target: Tree, layout: Schema) -> list[str]:
    runc: Path = (*layout.runtimes, "runc")
    ours = get(tree, runc)
    if layout.builtin_runc or ours is MISSING or get(target, runc) is not MISSING or not table(target, layout.runtimes):
        return []
    put(target, runc, ours)
    return [f"{path}: runtime runc stays, because containerd 1.x needs it beside the runtimes that others added."]


def keep_default(
    path: str, tree: Tree, target: Tree, leaf: Path, place: Path, builtin: str | None = "runc"
) -> list[str]:
    """Make *builtin* the default runtime at *leaf* of *target*, if the one there is gone from *place* since *tree*; return a warning."""
    name, runtimes = get(target, leaf), table(target, place)
    if name == builtin or name in runtimes or name not in table(tree, place):
        return []
    if builtin in runtimes:
        put(target, leaf, builtin)
    else:
        drop(target, leaf)
    again = f"is {builtin} again" if builtin else "is left to the other files"
    return [f"{path}: the default runtime {again}, because {name} is gone."]
