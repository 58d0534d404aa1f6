# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O's configuration: a drop-in of ours beside the main file, decided on what both and all other drop-ins mean.

CRI-O reads the main file, then every file below `crio.conf.d` in the order of their paths.  A setting replaces what was
read before, and so does the table of a runtime, as a whole.

Source: CRI-O's crio.conf(5) and `pkg/config`, and behaviour measured with 1.35.  Private to this collection.
"""

from __future__ import annotations

import copy
import os
import typing as t
from dataclasses import dataclass, field

from .. import _files
from . import owners, proof
from .config_file import ConfigFile, parse
from .draft import Draft, Owned, Plan, check_handler
from .errors import ConfigError
from .formats import TOML
from .shape import check_shape
from .shims import is_nvidia_path
from .trees import MISSING, Path, Tree, get, leaves, merge, table
from .undo import taken_out

if t.TYPE_CHECKING:
    from .journal import Change

RUNTIME: Path = ("crio", "runtime")
DEFAULT: Path = (*RUNTIME, "default_runtime")
RUNTIMES: Path = (*RUNTIME, "runtimes")

_SHAPE: list[tuple[Path, str]] = [
    (("crio",), "table"),
    (RUNTIME, "table"),
    (DEFAULT, "text"),
    (RUNTIMES, "table"),
    ((*RUNTIMES, "*"), "table"),
    ((*RUNTIMES, "*", "runtime_path"), "text"),
    ((*RUNTIMES, "*", "runtime_type"), "text"),
    ((*RUNTIMES, "*", "inherit_default_runtime"), "switch"),
]
#: Settings of a runtime that say which program it is.
_PROGRAM = frozenset(
    ["runtime_path", "runtime_type", "runtime_config_path", "platform_runtime_paths", "inherit_default_runtime"]
)
#: Runtimes of which one is CRI-O's own default: crun since 1.31, runc before.
_OWN_DEFAULTS = ("crun", "runc")


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

    def __post_init__(self) -> None:
        check_handler(self.runtime_name)
        if self.enable_cdi is False:
            raise ConfigError("enable_cdi is false, but CRI-O has no switch for CDI, which is always on: leave it out.")

    def admit(self, _text: str) -> list[str]:
        """Refuse a template."""
        owner = owners.owner_of_path(self.path) or owners.owner_of_path(os.path.realpath(self.path))
        if owner:
            raise ConfigError(owner.message)
        return []

    def check(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_shape(tree, self.path, _SHAPE)

    def plan(self, file: ConfigFile, owned: t.Mapping[Path, Owned]) -> Plan:
        """Decide what the drop-in should mean, with a look at all that CRI-O reads before and after it."""
        before, after = self._neighbours()
        decision = plan(file.tree, self, owned, _merged(before))
        for path, tree in after:
            decision.warnings += _check_later(path, tree, self)
        decision.warnings += [
            f"{path} describes runtime {self.runtime_name} too; {self.path} is read later and replaces it."
            for path, tree in before
            if get(tree, (*RUNTIMES, self.runtime_name)) is not MISSING
        ]
        return decision

    def without(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        return taken_out(self.path, tree, changes, original, RUNTIMES, DEFAULT, essential="runtime_path")

    def judge(self, binary: str, data: bytes, workdir: str | None, execute: proof.Run) -> proof.Verdict:
        """Let CRI-O load *data* with all that it reads beside it."""
        return proof.judge_crio(binary, self.path, self.main, data, workdir, execute)

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
        before, after = self._neighbours()
        whole = _merged([*before, (self.path, tree), *after])
        return {"default_runtime": get(whole, DEFAULT, None), "drop_in": self.path}

    def _neighbours(self) -> tuple[list[tuple[str, Tree]], list[tuple[str, Tree]]]:
        """Return what is read before and after the drop-in: pairs of path and meaning, in that order."""
        here = os.path.abspath(self.path)
        found = [self.main] if os.path.exists(self.main) else []
        beside = [path for path in _walk(os.path.dirname(here)) if path != here]
        before = found + [path for path in beside if _order(path) < _order(here)]
        return [_read(path) for path in before], [_read(path) for path in beside if _order(path) > _order(here)]


def plan(tree: Tree, asked: Crio, owned: t.Mapping[Path, Owned], earlier: Tree) -> Plan:
    """Decide what a drop-in that means *tree* has to mean, if *earlier* is what CRI-O has read before it.

    Raises ConfigError if it cannot be merged into, with the remedy.
    """
    draft = Draft(tree, asked.path, owned, TOML)
    draft.forget_inherited({(*RUNTIMES, asked.runtime_name)})
    draft.merge_settings(asked.settings)
    check_shape(draft.tree, "settings", _SHAPE)
    runtime: Path = (*RUNTIMES, asked.runtime_name)
    known = {**table(earlier, RUNTIMES), **table(draft.tree, RUNTIMES)}
    default = _default(draft.tree, earlier)
    draft.put((*runtime, "runtime_path"), asked.runtime_path, "runtime", "name the NVIDIA runtime's binary")
    draft.put((*runtime, "runtime_type"), "oci", "runtime", "give the runtime its type")
    _inherit(draft, runtime, [asked.runtime_name], table(earlier, RUNTIMES))
    _inherit(draft, runtime, [name for name in (default, *_OWN_DEFAULTS) if name != asked.runtime_name], known)
    fallback = next((name for name in _OWN_DEFAULTS if name in known), "")
    draft.set_default(DEFAULT, asked.runtime_name, asked.set_default, known, fallback)
    if asked.set_default is False and _default(draft.tree, earlier) == asked.runtime_name:
        # Another file makes it the default.
        draft.put(
            DEFAULT, fallback, "default", f"make {fallback or 'the own runtime of CRI-O'} the default runtime again"
        )
    return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings + _doubts(asked, draft.tree, earlier))


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


def _default(tree: Tree, earlier: Tree) -> str:
    """Return the default runtime once *tree* is read after *earlier*, "" for CRI-O's own."""
    return str(get(tree, DEFAULT, get(earlier, DEFAULT, "")))


def _doubts(asked: Crio, tree: Tree, earlier: Tree) -> list[str]:
    if get(tree, (*RUNTIMES, asked.runtime_name, "inherit_default_runtime"), False):
        raise ConfigError(
            f"{asked.path}: runtime {asked.runtime_name} has inherit_default_runtime, with which CRI-O ignores"
            " runtime_path: take it out."
        )
    default = _default(tree, earlier)
    known = {**table(earlier, RUNTIMES), **table(tree, RUNTIMES)}
    if default in ("", *_OWN_DEFAULTS) or default in known:
        return []
    return [f"CRI-O's default runtime is {default}, but there is no such runtime: add it or set set_default."]


def _check_later(path: str, tree: Tree, asked: Crio) -> list[str]:
    """Refuse a file that is read after the drop-in and hides what was asked; return warnings about one that may."""
    there = get(tree, (*RUNTIMES, asked.runtime_name))
    default = get(tree, DEFAULT)
    way = f"take it out there, or give drop_in: {path}."
    if there is not MISSING and get(there, ("runtime_path",)) != asked.runtime_path:
        raise ConfigError(
            f"{path} is read after {asked.path} and describes runtime {asked.runtime_name} otherwise: {way}"
        )
    hidden = default is not MISSING and asked.set_default is not None
    if hidden and (default == asked.runtime_name) is not asked.set_default:
        raise ConfigError(f"{path} is read after {asked.path} and makes {default} the default runtime: {way}")
    if there is not MISSING:
        return [f"{path} is read after {asked.path} and replaces its runtime {asked.runtime_name}."]
    return []


def _merged(files: t.Sequence[tuple[str, Tree]]) -> Tree:
    """Return what *files* mean together, read in that order."""
    whole: Tree = {}
    for _path, tree in files:
        runtimes = copy.deepcopy(table(tree, RUNTIMES))
        for name in runtimes:
            table(whole, RUNTIMES).pop(name, None)
        merge(whole, tree)
    return whole


def _walk(folder: str) -> list[str]:
    """Return every file below *folder*, whatever its name: CRI-O reads them all."""
    return sorted(
        (os.path.join(place, name) for place, _folders, names in os.walk(folder) for name in names), key=_order
    )


def _order(path: str) -> list[str]:
    return path.split(os.sep)


def _read(path: str) -> tuple[str, Tree]:
    tree = parse(path, _files.read_bytes(path) or b"", TOML).tree
    check_shape(tree, path, _SHAPE)
    return path, tree
