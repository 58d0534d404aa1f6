# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a containerd configuration imports: what they override of it, and what a drop-in among them has to set.

containerd 2 merges the plugins of an imported file leaf by leaf, so that a drop-in needs the leaves that are not there yet
and no others. Of the rest it replaces some as a whole, adds some up, and ignores zeroes, so that a drop-in is not for that.
"""

from __future__ import annotations

import copy
import fnmatch
import os.path
import typing as t
from dataclasses import dataclass

from ..._config.draft import Managed
from ..._config.errors import ConfigError
from ..._config.tree import MISSING, Path, Tree, compare_leaves, drop, get, merge, put, table
from ..._document import is_same
from .plan import ContainerdPlan, Request, plan
from .schema import CRI_NAMES, CRI_V2, CRI_V3, Release, Schema, check_file, is_version, schema_of


@dataclass(frozen=True)
class Imported:
    """A file that the configuration imports, in the order in which containerd loads them (the last one wins)."""

    path: str
    tree: Tree


def absolute_patterns(tree: Tree, directory: str) -> list[str]:
    """Return the `imports` of *tree* with relative ones taken from *directory*."""
    patterns = tree.get("imports", [])
    if not isinstance(patterns, list):
        return []
    return [os.path.normpath(os.path.join(directory, pattern)) for pattern in patterns if isinstance(pattern, str)]


def is_imported(path: str, tree: Tree, directory: str) -> bool:
    """Whether a file in *directory* that means *tree* imports *path* itself, once that exists."""
    return any(_matches(path, pattern) for pattern in absolute_patterns(tree, directory))


def imported_files(path: str, tree: Tree, load: t.Callable[[str], Tree | None], planned: str = "") -> list[Imported]:
    """Return all files that *path*, which means *tree*, imports, directly or not; *load* returns None for no file.

    The file *planned*, if any, counts as one that exists. Raises ConfigError if a setting in one of them has a type that it cannot have.
    """
    found: list[Imported] = []
    visited = {os.path.realpath(path)}
    queue = absolute_patterns(tree, os.path.dirname(path))
    while queue:
        pattern = queue.pop(0)
        for name in expand(pattern, planned):
            if os.path.realpath(name) in visited:
                continue
            visited.add(os.path.realpath(name))
            content = load(name)
            if content is not None:
                check_file(content, name)
                found.append(Imported(name, content))
                queue.extend(absolute_patterns(content, os.path.dirname(name)))
    return found


def _matches(path: str, pattern: str) -> bool:
    """Whether *pattern* finds *path*, both absolute if there is a path; a pattern is one only with an asterisk in it."""
    if "*" not in pattern:
        return path == pattern
    parts, patterns = path.split(os.sep), pattern.split(os.sep)
    return len(parts) == len(patterns) and all(map(fnmatch.fnmatchcase, parts, patterns))


def expand(pattern: str, planned: str) -> list[str]:
    """Return the files that *pattern* may find, in order, once the file *planned* exists ("": none is planned)."""
    if "*" not in pattern:
        return [pattern]
    return sorted({*_glob(pattern), *([planned] if _matches(planned, pattern) else [])})


def _glob(pattern: str) -> list[str]:
    """Return what *pattern* finds now; unlike in a shell, a wildcard finds hidden files too."""
    head, tail = os.path.split(pattern)
    found = []
    for folder in _glob(head) if "*" in head else [head]:
        try:
            found += [os.path.join(folder, name) for name in os.listdir(folder) if fnmatch.fnmatchcase(name, tail)]
        except OSError:
            continue
    return found


def merge_section(files: t.Sequence[Imported], layout: Schema, release: Release | None = None) -> Tree:
    """Return the table `containerd` of the CRI plugin as *files* have it together, the last one winning."""
    section: Tree = {}
    for file in files:
        if not _is_ignored(file, layout, release):
            merge(section, _section(file, layout))
    return section


def check_imports(files: t.Sequence[Imported], layout: Schema, request: Request) -> list[str]:
    """Return warnings about imported files; raise ConfigError if one would override the result of the merge."""
    if request.release is not None:
        merges: bool | None = request.release.merges_imports
    else:
        merges = True if layout.version >= 3 else None
    warnings: list[str] = []
    for file in files:
        if merges is not False:
            check_version(file, layout, request)
        if _is_ignored(file, layout, request.release):
            warnings.append(
                f"{request.path} has configuration version {layout.version} but imports {file.path} of version"
                f" {file.tree['version']}, whose settings containerd {request.release} ignores: bring both to one version."
            )
        elif merges:
            warnings.extend(_check_merged(file, layout, request))
        else:
            warnings.extend(_check_replaced(file, request, certain=merges is False))
    return warnings


def check_other_section(tree: Tree, request: Request) -> list[str]:
    """Refuse a version 2 file with a section of version 3, which overrides that of version 2 on containerd 2.x; warn on 1.x."""
    if tree.get("version") != 2 or not table(tree, ("plugins", CRI_V3, "containerd")):
        return []
    message = (
        f"{request.path} has configuration version 2, but also settings under {CRI_V3}.containerd, which containerd 1.x"
        f" ignores and containerd 2.x prefers: move them to {CRI_V2}."
    )
    if request.release is not None and request.release.major == 1:
        return [message]
    raise ConfigError(message)


def _section(file: Imported, layout: Schema) -> Tree:
    return table(file.tree, (schema_of(file.tree) or layout).containerd)


def _is_ignored(file: Imported, layout: Schema, release: Release | None) -> bool:
    """Whether containerd 2.0 to 2.2 ignores *file*, which has a lower version than the importing one."""
    version = file.tree.get("version", layout.version)
    lower = layout.version >= 3 and is_version(version) and version < layout.version
    return lower and release is not None and not release.migrates_imports


def check_version(file: Imported, layout: Schema, request: Request) -> None:
    """Refuse a file of a higher version than the importing one."""
    version = file.tree.get("version", layout.version)
    if is_version(version, layout.version + 1):
        raise ConfigError(
            f"{request.path} has configuration version {layout.version} but imports {file.path} of version {version},"
            " with which containerd 2.0 to 2.2 drops the settings of the former and newer releases do not start:"
            " bring both to one version."
        )


def _check_replaced(file: Imported, request: Request, certain: bool) -> list[str]:
    """containerd 1.x: the section of an imported file replaces the whole section of the file."""
    if get(file.tree, ("plugins", CRI_V2)) is MISSING:
        return []
    name = request.runtime_name
    section: Path = ("plugins", CRI_V2, "containerd")
    if get(file.tree, (*section, "runtimes", name, "options", "BinaryName")) == request.runtime_path:
        return [
            f"{request.path} imports {file.path}, which holds runtime {name} too and replaces the whole CRI section."
        ]
    message = (
        f"{request.path} imports {file.path}, whose section {CRI_V2} replaces that of the importing file as a whole on"
        f" containerd 1.x, with the runtime {name} in it: move that section into one file, or give path: {file.path}."
    )
    if certain:
        raise ConfigError(message)
    return [message]


def _check_merged(file: Imported, layout: Schema, request: Request) -> list[str]:
    """containerd 2.x: every leaf of an imported file wins over the same leaf of the file."""
    section, name = _section(file, layout), request.runtime_name
    binary = get(section, ("runtimes", name, "options", "BinaryName"))
    default = section.get("default_runtime_name", MISSING)
    if binary not in (MISSING, request.runtime_path):
        raise ConfigError(
            f"{request.path} imports {file.path}, which sets BinaryName of runtime {name} to {binary} and wins: remove"
            f" it there, or give {request.option}: {file.path}."
        )
    wrong_default = (
        default is not MISSING and request.set_default is not None and (default == name) != request.set_default
    )
    if wrong_default:
        raise ConfigError(
            f"{request.path} imports {file.path}, which sets default_runtime_name to {default} and wins: remove it"
            f" there, or give {request.option}: {file.path}."
        )
    if table(section, ("runtimes", name)):
        return [f"{request.path} imports {file.path}, which describes runtime {name} too and wins where they differ."]
    return []


# -- a drop-in, decided on plain data


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
    _check_drop_in(tree, path, root, layout, request)
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


def _check_drop_in(tree: Tree, path: str, root: Tree, layout: Schema, request: Request) -> None:
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
