# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drop-in for containerd 2, decided on plain data: what it has to say beside the file that imports it.

containerd 2 merges an imported file leaf by leaf, so that a drop-in needs the leaves that are not there yet and no others.
It reads nothing and writes nothing.  Private to this collection.
"""

from __future__ import annotations

import copy
import typing as t

from .._document import same
from .containerd import ContainerdPlan, Request, plan
from .draft import Owned
from .errors import ConfigError
from .imports import Imported, merged_section
from .schema import CRI_NAMES, Schema, schema_of
from .trees import MISSING, Path, Tree, changed_leaves, drop, get, merge, put, table

#: Lists of the file as a whole: what a drop-in says of them is added to them.
_ADDED = ("imports", "disabled_plugins", "required_plugins")


def plan_drop_in(
    tree: Tree,
    path: str,
    root: Tree,
    request: Request,
    owned: t.Mapping[Path, Owned],
    before: t.Sequence[Imported],
    after: t.Sequence[Imported],
) -> ContainerdPlan:
    """Decide what the drop-in *path*, which means *tree*, has to mean for *request*.

    *root* is what the file means that imports it, once it does; *before* and *after* are the other files that it imports, as
    containerd reads them before and after the drop-in.  Raises ConfigError if a drop-in cannot do it, with the remedy.
    """
    layout = schema_of(root)
    if layout is None:
        raise ValueError("the importing file has to state its version")
    _check(tree, path, root, layout, request)
    below = copy.deepcopy(root)
    if before:
        _merge_section(below, layout, merged_section(before, layout, request.release))
    whole = copy.deepcopy(below)
    merge(whole, {key: value for key, value in tree.items() if key not in _ADDED})
    decision = plan(
        whole,
        request,
        {leaf: _above(mine, get(below, leaf)) for leaf, mine in owned.items()},
        merged_section(after, layout, request.release),
    )
    target = {"version": layout.version, **copy.deepcopy(tree)}
    for leaf, (_old, new) in changed_leaves(whole, decision.target).items():
        if new is not MISSING and not same(new, get(below, leaf)):
            put(target, leaf, new)
        elif get(target, leaf) is not MISSING:
            drop(target, leaf)
    decision.kinds[("version",)] = "version"
    decision.target = target
    return decision


def _check(tree: Tree, path: str, root: Tree, layout: Schema, request: Request) -> None:
    """Refuse what a drop-in cannot do."""
    if not CRI_NAMES.isdisjoint(root.get("disabled_plugins", [])):
        raise ConfigError(
            f"{request.path} switches the CRI plugin off in disabled_plugins, which a drop-in cannot take back: take it out"
            " there, or leave drop_in out."
        )
    if table(root, (*layout.runtimes, request.runtime_name)):
        raise ConfigError(
            f"{request.path} describes runtime {request.runtime_name} itself, which a drop-in would only repeat: take it out"
            " there (state: absent, if this module put it in), or leave drop_in out."
        )
    version = tree.get("version", layout.version)
    if version != layout.version:
        raise ConfigError(
            f"{path} has configuration version {version} and {request.path} has {layout.version}: take the former's settings"
            " out (state: absent), or bring both to one version."
        )
    for key in _ADDED:
        if key in request.settings:
            raise ConfigError(
                f"settings: containerd adds {key} of a drop-in to that of {request.path} and takes nothing out: set it there."
            )


def _merge_section(tree: Tree, layout: Schema, section: Tree) -> None:
    known = copy.deepcopy(table(tree, layout.containerd))
    merge(known, section)
    put(tree, layout.containerd, known)


def _above(mine: Owned, below: t.Any) -> Owned:
    """Return *mine* as it stands in the whole: where the drop-in said nothing, the files *below* it count."""
    return Owned(mine.kind, below) if mine.before is MISSING else mine
