# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drop-in for containerd 2, decided on plain data: what it has to set beside the file that imports it.

containerd 2 merges the plugins of an imported file leaf by leaf, so that a drop-in needs the leaves that are not there yet
and no others. Of the rest it replaces some as a whole, adds some up, and ignores zeroes, so that a drop-in is not for that.

It reads nothing and writes nothing.
"""

from __future__ import annotations

import copy
import typing as t

from ..._config.draft import Managed
from ..._config.errors import ConfigError
from ..._config.tree import MISSING, Path, Tree, compare_leaves, drop, get, merge, put, table
from ..._document import is_same
from .imports import Imported, merge_section
from .plan import ContainerdPlan, Request, plan
from .schema import CRI_NAMES, Schema, schema_of


def plan_drop_in(
    tree: Tree,
    path: str,
    root: Tree,
    request: Request,
    managed: t.Mapping[Path, Managed],
    before: t.Sequence[Imported],
    after: t.Sequence[Imported],
) -> ContainerdPlan:
    """Decide what the drop-in *path*, which means *tree*, has to mean for *request*.

    *root* is what the file means that imports it, once it does; *before* and *after* are the other files that it imports, as
    containerd reads them before and after the drop-in. Raises ConfigError if a drop-in cannot do it, with the remedy.
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
        {leaf: _with_former(each, get(below, leaf)) for leaf, each in managed.items()},
        merge_section(after, layout, request.release),
    )
    target = {"version": layout.version, **copy.deepcopy(tree)}
    for leaf, (_old, new) in compare_leaves(whole, decision.target).items():
        if new is not MISSING and not is_same(new, get(below, leaf)):
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
            f"{request.path} describes runtime {request.runtime_name} itself, which a drop-in would only repeat: remove it"
            " there (state: absent, if this module added it), or leave drop_in out."
        )
    version = tree.get("version", layout.version)
    if version != layout.version:
        raise ConfigError(
            f"{path} has configuration version {version} and {request.path} has {layout.version}: remove the former's settings"
            " (state: absent), or bring both to one version."
        )
    others = sorted(set(request.settings) - {"plugins"})
    if others:
        raise ConfigError(
            f"settings: containerd does not read {' and '.join(others)} from a drop-in as from {request.path}: set that there."
        )


def _check_cri(files: t.Sequence[tuple[str, Tree]]) -> None:
    """Refuse CRI switched off in any file: containerd adds these lists up, and no file can undo it."""
    for path, tree in files:
        if not CRI_NAMES.isdisjoint(tree.get("disabled_plugins", [])):
            raise ConfigError(
                f"{path} switches the CRI plugin off in disabled_plugins, which a drop-in cannot undo: remove it"
                " there, or leave drop_in out."
            )


def _merge_plugins(tree: Tree, file: Imported, layout: Schema, request: Request) -> None:
    """Merge the plugins of *file* into *tree* in place; of a file of another version the CRI section counts, if any does."""
    if file.tree.get("version", layout.version) == layout.version:
        plugins = copy.deepcopy(file.tree.get("plugins", {}))
    else:
        plugins = {layout.cri: {"containerd": merge_section([file], layout, request.release)}}
    if isinstance(plugins, dict):
        merge(tree, {"plugins": plugins})


def _with_former(managed: Managed, below: t.Any) -> Managed:
    """Return *managed* for the whole configuration: where the drop-in had no such setting, that of the files *below* it counts."""
    return Managed(managed.kind, below) if managed.before is MISSING else managed
