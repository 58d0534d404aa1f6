# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drop-in for containerd 2, decided on plain data: what it has to say beside the file that imports it.

containerd 2 merges what an imported file says of plugins leaf by leaf, so that a drop-in needs the leaves that are not there yet
and no others.  Of the rest it takes some as a whole, adds some up, and overlooks zeroes, so that a drop-in is not for that.

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
    _check_cri([(request.path, root), *((file.path, file.tree) for file in [*before, *after]), (path, tree)])
    below = copy.deepcopy(root)
    for file in before:
        _merge_plugins(below, file, layout, request)
    whole = copy.deepcopy(below)
    merge(whole, {"plugins": tree.get("plugins", {})})
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
    others = sorted(set(request.settings) - {"plugins"})
    if others:
        raise ConfigError(
            f"settings: containerd does not take {' and '.join(others)} from a drop-in as from {request.path}: set that there."
        )


def _check_cri(files: t.Sequence[tuple[str, Tree]]) -> None:
    """Refuse CRI switched off in any file: what they say of it is added up, and none can take it back."""
    for path, tree in files:
        if not CRI_NAMES.isdisjoint(tree.get("disabled_plugins", [])):
            raise ConfigError(
                f"{path} switches the CRI plugin off in disabled_plugins, which a drop-in cannot take back: take it out"
                " there, or leave drop_in out."
            )


def _merge_plugins(tree: Tree, file: Imported, layout: Schema, request: Request) -> None:
    """Merge what *file* says of plugins into *tree* in place; of one of another version the CRI section counts, if any does."""
    if file.tree.get("version", layout.version) == layout.version:
        plugins = copy.deepcopy(file.tree.get("plugins", {}))
    else:
        plugins = {layout.cri: {"containerd": merged_section([file], layout, request.release)}}
    if isinstance(plugins, dict):
        merge(tree, {"plugins": plugins})


def _above(mine: Owned, below: t.Any) -> Owned:
    """Return *mine* as it stands in the whole: where the drop-in said nothing, the files *below* it count."""
    return Owned(mine.kind, below) if mine.before is MISSING else mine
