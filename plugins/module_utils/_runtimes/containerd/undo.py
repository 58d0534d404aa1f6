# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a containerd configuration means without changes, with what others wrote since."""

from __future__ import annotations

import typing as t

from ..._config.change_log import Change, Rules, undo_changes
from ..._config.tree import MISSING, Path, Tree, get, leaves, put, table
from ..._document import is_same
from ..runtime import build_rules, replace_default
from .schema import CRI_NAMES, NEUTRAL_KEYS, Schema, follow_migration, schema_of

RULES: Rules = build_rules("runtime_type", follow_migration)


def remove_changes(path: str, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
    """Return what *tree*, the meaning of the file *path*, means without *changes*, and warnings about what stays.

    If the whole is what it was originally, nothing stays. Else others have built on it since, and it has to
    stay a configuration that containerd can serve CRI with.
    """
    layout = schema_of(tree)
    runtimes = [layout.runtimes] if layout else []
    stay = _managed_in_shared_runc(tree, changes, layout) if layout else []
    warnings = []
    if stay:
        warnings.append(f"{path}: runtime runc stays, because others have written settings into its table.")
    target = undo_changes(tree, _without(changes, stay), runtimes, RULES, original)
    if is_same(target, original):
        return target, warnings
    cri = [change for change in changes if change.kind == "cri" or _switched_cri_on(change)]
    if any(_switched_cri_on(change) and is_same(get(tree, change.path), change.after) for change in cri):
        warnings.append(f"{path}: the CRI plugin stays switched on, because others have changed the file since.")
    if cri or ("version" not in target and not NEUTRAL_KEYS.issuperset(target)):
        # Names and settings of today's plugins need the version.
        stay += cri + [change for change in changes if change.kind == "version"]
    target = undo_changes(tree, _without(changes, stay), runtimes, RULES, original)
    if layout and "version" in target:
        warnings += _keep_runc(path, tree, target, layout) + replace_default(
            path, tree, target, (*layout.containerd, "default_runtime_name"), layout.runtimes
        )
    return target, warnings


def _switched_cri_on(change: Change) -> bool:
    names = change.before if change.path == ("disabled_plugins",) and isinstance(change.before, list) else []
    return not CRI_NAMES.isdisjoint(names)


def _without(changes: t.Sequence[Change], stay: t.Sequence[Change]) -> list[Change]:
    return [change for change in changes if change not in stay]


def _managed_in_shared_runc(tree: Tree, changes: t.Sequence[Change], layout: Schema) -> list[Change]:
    """Return the changes that make up a table runc in which others have written too; without its type it would be useless."""
    path: Path = (*layout.runtimes, "runc")
    managed = [
        change
        for change in changes
        if change.before is MISSING and (change.kind == "runc" or change.path == (*path, "runtime_type"))
    ]
    known = {change.path for change in changes if is_same(get(tree, change.path), change.after)}
    there = {(*path, *leaf) for leaf in leaves(table(tree, path))}
    return managed if managed and there - known else []


def _keep_runc(path: str, tree: Tree, target: Tree, layout: Schema) -> list[str]:
    runc: Path = (*layout.runtimes, "runc")
    now = get(tree, runc)
    if layout.builtin_runc or now is MISSING or get(target, runc) is not MISSING or not table(target, layout.runtimes):
        return []
    put(target, runc, now)
    return [f"{path}: runtime runc stays, because containerd 1.x needs it beside the runtimes that others added."]
