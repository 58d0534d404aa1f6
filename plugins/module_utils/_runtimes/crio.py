# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O's configuration: a drop-in of ours beside the main file, decided on what both and all other drop-ins mean.

CRI-O reads the main file, then every file below `crio.conf.d` in the order of their paths, whatever its name.  A setting
replaces what was read before, and so does the table of a runtime or a workload, as a whole.

Source: CRI-O's crio.conf(5) and `pkg/config`, 1.26 and newer.  Private to this collection.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, field

from .. import _files
from .._document import same
from . import owners, proof
from .config_file import ConfigFile, parse
from .draft import Draft, Owned, Plan, check_handler
from .errors import ConfigError
from .formats import TOML
from .shape import check_shape
from .shims import is_nvidia_path
from .trees import MISSING, Path, Tree, dotted, drop, get, leaves, merge, table
from .undo import taken_out

if t.TYPE_CHECKING:
    from .journal import Change

RUNTIME: Path = ("crio", "runtime")
DEFAULT: Path = (*RUNTIME, "default_runtime")
RUNTIMES: Path = (*RUNTIME, "runtimes")
WORKLOADS: Path = (*RUNTIME, "workloads")

_SHAPE: list[tuple[Path, str]] = [
    (("crio",), "table"),
    (RUNTIME, "table"),
    (DEFAULT, "text"),
    *((path, "table") for place in (RUNTIMES, WORKLOADS) for path in (place, (*place, "*"))),
    ((*RUNTIMES, "*", "runtime_path"), "text"),
    ((*RUNTIMES, "*", "runtime_type"), "text"),
    ((*RUNTIMES, "*", "inherit_default_runtime"), "switch"),
]
#: Settings of a runtime with which CRI-O takes another program than runtime_path, or none.
_OVERRIDES = ("inherit_default_runtime", "platform_runtime_paths", "runtime_config_path")
#: Settings of a runtime that say which program it is.
_PROGRAM = frozenset(["runtime_path", "runtime_type", *_OVERRIDES])
#: Runtimes of which one is CRI-O's own default: crun since 1.31, runc before.
_OWN_DEFAULTS = ("crun", "runc")

#: A file that CRI-O reads: its path and what it means.
File = t.Tuple[str, Tree]


@dataclass(frozen=True)
class Crio:
    """The daemon CRI-O with what is asked.  None means: not asked, leave it as it is.

    *path* is the drop-in, which is written, *main* the main file, which is only read.  Raises ConfigError for what no
    runtime can have and for what CRI-O has no setting for.
    """

    path: str
    main: str
    runtime_name: str = "nvidia"
    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    set_default: bool | None = None
    enable_cdi: bool | None = None
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    name = "crio"
    syntax = TOML
    imported_by = None

    def __post_init__(self) -> None:
        check_handler(self.runtime_name)
        if self.enable_cdi is False:
            raise ConfigError("enable_cdi is false, but CRI-O has no switch for CDI, which is always on: leave it out.")
        if not os.path.abspath(self.path).startswith(os.path.join(self.folder, "")):
            raise ConfigError(f"drop_in {self.path} lies where CRI-O does not look: give a file in {self.folder}.")

    @property
    def folder(self) -> str:
        """The folder of drop-ins, all of which CRI-O reads."""
        return os.path.join(os.path.dirname(os.path.abspath(self.main)), "crio.conf.d")

    def admit(self, _text: str) -> list[str]:
        """Refuse a template."""
        owners.refuse_rendered(self.path)
        return []

    def check(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_shape(tree, self.path, _SHAPE)

    def plan(self, file: ConfigFile, owned: t.Mapping[Path, Owned]) -> Plan:
        """Decide what the drop-in should mean, with a look at all that CRI-O reads before and after it."""
        before, after = self._neighbours(_read)
        self._check_settings(file.tree, before)
        for path, tree in after:
            self._check_later(path, tree)
        decision = plan(file.tree, self, owned, _merged(before), _merged(after))
        mine: Path = (*RUNTIMES, self.runtime_name)
        decision.warnings += [
            f"{path} describes runtime {self.runtime_name} too; {self.path} is read later and replaces it."
            for path, tree in before
            if get(tree, mine) is not MISSING
        ]
        decision.warnings += [
            f"{path} is read after {self.path} and replaces its runtime {self.runtime_name}."
            for path, tree in after
            if get(tree, mine) is not MISSING
        ]
        return decision

    def without(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        target, warnings = taken_out(
            self.path, tree, changes, original, RUNTIMES, DEFAULT, essential="runtime_path", builtin=None
        )
        before, after = self._neighbours(_read_if_possible)
        files = [*before, (self.path, target), *after]
        whole = _merged(files)
        if get(whole, DEFAULT) == self.runtime_name and get(whole, (*RUNTIMES, self.runtime_name)) is MISSING:
            last = next(path for path, meaning in reversed(files) if get(meaning, DEFAULT) == self.runtime_name)
            raise ConfigError(
                f"{last} makes {self.runtime_name} the default runtime, and CRI-O does not start without it: take"
                " default_runtime out there first."
            )
        return target, warnings

    def judge(self, binary: str, data: bytes, workdir: str | None, execute: proof.Run) -> proof.Verdict:
        """Let CRI-O load *data* with all that it reads beside it."""
        return proof.judge_crio(binary, self.path, self.main, self._others(), data, workdir, execute)

    def check_effect(self, verdict: proof.Verdict) -> None:
        """Refuse an accepted file that does not do what was asked for."""
        found = get(verdict.effective, (*RUNTIMES, self.runtime_name, "runtime_path"))
        if verdict.effective and found != self.runtime_path:
            raise ConfigError(
                f"{self.path} would not give CRI-O the runtime {self.runtime_name} with {self.runtime_path}, but with"
                f" {'none' if found is MISSING else found}; look for another file beside it that describes that runtime."
            )

    def check_default(self, _verdict: proof.Verdict) -> None:
        """Nothing: CRI-O refuses a default runtime that is none."""

    def has_runtime(self, tree: Tree) -> bool:
        """Whether the runtime is in *tree*."""
        return get(tree, (*RUNTIMES, self.runtime_name)) is not MISSING

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module tells of the configuration as a whole."""
        before, after = self._neighbours(_read_if_possible)
        whole = _merged([*before, (self.path, tree), *after])
        return {"default_runtime": get(whole, DEFAULT, None), "drop_in": self.path}

    def _others(self) -> list[str]:
        """Return every other file below the folder in the order in which CRI-O reads them."""
        found = [os.path.join(place, name) for place, _folders, names in os.walk(self.folder) for name in names]
        mine = os.path.abspath(self.path)
        return sorted((path for path in found if path != mine and _files.TEMP_TAG not in path), key=_order)

    def _neighbours(self, read: t.Callable[[str], Tree]) -> tuple[list[File], list[File]]:
        """Return what is read before and after the drop-in, in that order."""
        here = _order(os.path.abspath(self.path))
        others = self._others()
        before = [self.main] if os.path.exists(self.main) else []
        before += [path for path in others if _order(path) < here]
        return [(path, read(path)) for path in before], [(path, read(path)) for path in others if _order(path) > here]

    def _check_settings(self, tree: Tree, before: t.Sequence[File]) -> None:
        """Refuse settings in a table of an earlier file, whose other settings would be gone."""
        for place in (RUNTIMES, WORKLOADS):
            for name in get(self.settings, place, {}):
                path = (*place, name)
                found = [file for file, meaning in before if get(meaning, path) is not MISSING]
                if found and name != self.runtime_name and get(tree, path) is MISSING:
                    raise ConfigError(
                        f"settings: {dotted(path)} is described in {found[-1]}, and CRI-O would take the drop-in's table in"
                        " its place as a whole: set that there."
                    )

    def _check_later(self, path: str, tree: Tree) -> None:
        """Refuse a file that is read after the drop-in and hides what was asked."""
        hides = f"{path} is read after {self.path} and"
        way = f"take it out there, or give drop_in: {path}."
        there = get(tree, (*RUNTIMES, self.runtime_name))
        if there is not MISSING and (there.get("runtime_path") != self.runtime_path or _overrides(there)):
            raise ConfigError(f"{hides} describes runtime {self.runtime_name} otherwise: {way}")
        default = get(tree, DEFAULT)
        asked = default is not MISSING and self.set_default is not None
        if asked and (default == self.runtime_name) is not self.set_default:
            raise ConfigError(f"{hides} makes {default} the default runtime: {way}")
        for leaf, value in leaves(dict(self.settings)).items():
            found = get(tree, leaf)
            if found is not MISSING and not same(found, value):
                raise ConfigError(f"{hides} sets {dotted(leaf)} otherwise: {way}")


def plan(tree: Tree, asked: Crio, owned: t.Mapping[Path, Owned], earlier: Tree, later: Tree) -> Plan:
    """Decide what a drop-in that means *tree* has to mean, if CRI-O reads *earlier* before it and *later* after it.

    Raises ConfigError if it cannot be merged into, with the remedy.
    """
    name = asked.runtime_name
    runtime: Path = (*RUNTIMES, name)
    draft = Draft(tree, asked.path, owned, TOML)
    draft.forget_inherited({runtime})
    draft.merge_settings(asked.settings)
    check_shape(draft.tree, "settings", _SHAPE)
    _check_runtime(asked, table(draft.tree, runtime))
    draft.put((*runtime, "runtime_path"), asked.runtime_path, "runtime", "name the NVIDIA runtime's binary")
    draft.put((*runtime, "runtime_type"), "oci", "runtime", "give the runtime its type")
    known = {**table(earlier, RUNTIMES), **table(draft.tree, RUNTIMES), **table(later, RUNTIMES)}
    _inherit(draft, runtime, [name], table(earlier, RUNTIMES))
    sources = [_site_default(draft, earlier, later, name), *_OWN_DEFAULTS]
    _inherit(draft, runtime, sources, {key: value for key, value in known.items() if key != name})
    _set_default(draft, asked, earlier)
    default = get(later, DEFAULT, _default(draft.tree, earlier))
    if default not in ("", *_OWN_DEFAULTS) and default not in known and default != name:
        draft.warnings.append(
            f"CRI-O's default runtime is {default}, but there is no such runtime: add it or set set_default."
        )
    return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings)


def _check_runtime(asked: Crio, mine: Tree) -> None:
    """Refuse what makes CRI-O start another program than the one asked for."""
    found = _overrides(mine) or ["runtime_type"] * (mine.get("runtime_type", "oci") not in ("", "oci"))
    if found:
        raise ConfigError(
            f"{asked.path}: runtime {asked.runtime_name} has {found[0]}, with which CRI-O does not start runtime_path: take it"
            " out."
        )


def _overrides(runtime: Tree) -> list[str]:
    return [key for key in _OVERRIDES if runtime.get(key)]


def _inherit(draft: Draft, runtime: Path, names: t.Sequence[str], known: t.Mapping[str, Tree]) -> None:
    """Give *runtime* what it does not say itself from the first of *names* that runs OCI programs as runc does."""
    for name in names:
        source = known.get(name)
        if source is None or source.get("runtime_type", "oci") not in ("", "oci"):
            continue
        if name != runtime[-1] and is_nvidia_path(source.get("runtime_path", "")):
            continue
        for leaf, value in leaves({key: value for key, value in source.items() if key not in _PROGRAM}).items():
            if get(draft.tree, (*runtime, *leaf)) is MISSING:
                draft.put((*runtime, *leaf), value, "inherit", f"inherit from runtime {name}")
        return


def _set_default(draft: Draft, asked: Crio, earlier: Tree) -> None:
    """Make the runtime the default one, or no longer, if that is asked."""
    name = asked.runtime_name
    if asked.set_default is True:
        draft.put(DEFAULT, name, "default", f"make {name} the default runtime")
    if asked.set_default is not False:
        return
    if get(draft.tree, DEFAULT) == name:
        before = draft.owned[DEFAULT].before if DEFAULT in draft.owned else MISSING
        if before in (MISSING, name):
            draft.note(DEFAULT, "default", "leave the default runtime to the other files again")
            drop(draft.tree, DEFAULT)
        else:
            draft.put(DEFAULT, before, "default", f"make {before} the default runtime again")
    if _default(draft.tree, earlier) == name:
        # Another file makes it the default.
        draft.put(DEFAULT, "", "default", "leave the default runtime to CRI-O")


def _default(tree: Tree, earlier: Tree) -> str:
    """Return the default runtime once *tree* is read after *earlier*, "" for CRI-O's own."""
    return str(get(tree, DEFAULT, get(earlier, DEFAULT, "")))


def _site_default(draft: Draft, earlier: Tree, later: Tree, name: str) -> str:
    """Return what the default runtime would be if *name* were none, "" for CRI-O's own."""
    before = draft.owned[DEFAULT].before if DEFAULT in draft.owned else MISSING
    found = (get(later, DEFAULT), get(draft.tree, DEFAULT), before, get(earlier, DEFAULT))
    return str(next((value for value in found if value not in (MISSING, name)), ""))


def _merged(files: t.Sequence[File]) -> Tree:
    """Return what *files* mean together, read in that order."""
    whole: Tree = {}
    for _path, tree in files:
        for place in (RUNTIMES, WORKLOADS):
            for name in table(tree, place):
                table(whole, place).pop(name, None)
        merge(whole, tree)
    return whole


def _order(path: str) -> list[str]:
    return path.split(os.sep)


def _read(path: str) -> Tree:
    """Return what a file means; raises ConfigError or FilesError."""
    tree = parse(path, _files.read_bytes(path) or b"", TOML).tree
    check_shape(tree, path, _SHAPE)
    return tree


def _read_if_possible(path: str) -> Tree:
    """Return what a file means, nothing for one that cannot be read: on the way back, and for what is told, it does not matter."""
    try:
        return _read(path)
    except (ConfigError, _files.FilesError):
        return {}
