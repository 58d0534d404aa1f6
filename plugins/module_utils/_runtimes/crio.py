# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O's configuration: a drop-in beside the main file, decided on what both and all other drop-ins mean.

CRI-O reads the main file, then every file below `crio.conf.d` in the order of their paths, whatever its name. A setting
replaces what was read before, and so does the table of a runtime or a workload, as a whole.

Source: CRI-O's crio.conf(5) and `pkg/config`, 1.26 and newer.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass

from .._config import files
from .._config.config_file import ConfigFile, parse
from .._config.draft import Managed, Plan
from .._config.errors import ConfigError
from .._config.formats import TOML
from .._config.schema_checks import check_types
from .._config.tree import MISSING, Path, Tree, drop, format_path, get, leaves, merge, table
from .._config.validate import Run, Verdict, try_candidate
from .._document import is_same
from .runtime import RuntimeDraft, RuntimeFile, build_rules, is_nvidia_path, remove_runtime

if t.TYPE_CHECKING:
    from .._config.change_log import Change

RUNTIME: Path = ("crio", "runtime")
DEFAULT: Path = (*RUNTIME, "default_runtime")
RUNTIMES: Path = (*RUNTIME, "runtimes")
WORKLOADS: Path = (*RUNTIME, "workloads")

_TYPES: list[tuple[Path, str]] = [
    (("crio",), "table"),
    (RUNTIME, "table"),
    (DEFAULT, "text"),
    *((path, "table") for place in (RUNTIMES, WORKLOADS) for path in (place, (*place, "*"))),
    ((*RUNTIMES, "*", "runtime_path"), "text"),
    ((*RUNTIMES, "*", "runtime_type"), "text"),
    ((*RUNTIMES, "*", "inherit_default_runtime"), "switch"),
]
#: Settings of a runtime with which CRI-O starts another program than runtime_path, or none.
_OVERRIDES = ("inherit_default_runtime", "platform_runtime_paths", "runtime_config_path")
#: Settings of a runtime that name its program.
_PROGRAM = frozenset(["runtime_path", "runtime_type", *_OVERRIDES])
#: Runtimes of which one is CRI-O's own default: crun since 1.31, runc before.
_OWN_DEFAULTS = ("crun", "runc")

#: A file that CRI-O reads: its path and what it means.
File = t.Tuple[str, Tree]


@dataclass(frozen=True)
class Crio(RuntimeFile):
    """CRI-O's drop-in, with the parameters for it. *path* is written, *main*, the main file, is only read.

    Raises ConfigError also for a parameter for which CRI-O has no setting.
    """

    main: str = "/etc/crio/crio.conf"
    name = "crio"
    syntax = TOML
    rules = build_rules("runtime_path")
    runtimes = RUNTIMES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.enable_cdi is False:
            raise ConfigError("enable_cdi is false, but CRI-O has no switch for CDI, which is always on: leave it out.")
        if not os.path.abspath(self.path).startswith(os.path.join(self.folder, "")):
            raise ConfigError(f"drop_in {self.path} lies where CRI-O does not read it: give a file in {self.folder}.")

    @property
    def folder(self) -> str:
        """The folder of drop-ins, all of which CRI-O reads."""
        return os.path.join(os.path.dirname(os.path.abspath(self.main)), "crio.conf.d")

    def check_types(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_types(tree, self.path, _TYPES, TOML)

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> Plan:
        """Decide what the drop-in should mean, with regard to all that CRI-O reads before and after it."""
        before, after = self._neighbours(_read)
        self._check_settings(file.tree, before)
        for path, tree in after:
            self._check_later(path, tree)
        decision = plan(file.tree, self, managed, _merge(before), _merge(after))
        runtime: Path = (*RUNTIMES, self.runtime_name)
        decision.warnings += [
            f"{path} describes runtime {self.runtime_name} too; {self.path} is read later and replaces it."
            for path, tree in before
            if get(tree, runtime) is not MISSING
        ]
        decision.warnings += [
            f"{path} is read after {self.path} and replaces its runtime {self.runtime_name}."
            for path, tree in after
            if get(tree, runtime) is not MISSING
        ]
        return decision

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        target, warnings = remove_runtime(
            self.path, tree, changes, original, RUNTIMES, DEFAULT, self.rules, builtin=None
        )
        before, after = self._neighbours(_read_if_possible)
        read = [*before, (self.path, target), *after]
        whole = _merge(read)
        if get(whole, DEFAULT) == self.runtime_name and get(whole, (*RUNTIMES, self.runtime_name)) is MISSING:
            last = next(path for path, meaning in reversed(read) if get(meaning, DEFAULT) == self.runtime_name)
            raise ConfigError(
                f"{last} makes {self.runtime_name} the default runtime, and CRI-O does not start without it: remove"
                " default_runtime there first."
            )
        return target, warnings

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let CRI-O load *data* with the main file and all other drop-ins.

        They lie as they do in `crio.conf.d`, as links, because CRI-O reads a whole folder.
        """
        name = os.path.relpath(os.path.abspath(self.path), self.folder)

        def build_command(candidate: str) -> list[str]:
            folder = candidate[: -len(name) - 1]
            for other in self._others():
                link = os.path.join(folder, os.path.relpath(other, self.folder))
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(other, link)
            main = self.main if os.path.exists(self.main) else ""
            return [program, "--config", main, "--config-dir", folder, "config"]

        refusal, output = try_candidate(build_command, self.path, TOML.from_bytes(data), workdir, execute, name)
        return Verdict.parse(refusal, output, TOML)

    def check_effect(self, verdict: Verdict) -> None:
        """Refuse an accepted file that does not do what was requested."""
        found = get(verdict.effective, (*RUNTIMES, self.runtime_name, "runtime_path"))
        if verdict.effective and found != self.runtime_path:
            raise ConfigError(
                f"{self.path} would not give CRI-O the runtime {self.runtime_name} with {self.runtime_path}, but with"
                f" {'none' if found is MISSING else found}; search for another file beside it that describes that runtime."
            )

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module returns of the configuration as a whole."""
        before, after = self._neighbours(_read_if_possible)
        whole = _merge([*before, (self.path, tree), *after])
        return {"default_runtime": get(whole, DEFAULT, None), "drop_in": self.path}

    def _others(self) -> list[str]:
        """Return every other file below the folder in the order in which CRI-O reads them."""
        found = [os.path.join(place, name) for place, _folders, names in os.walk(self.folder) for name in names]
        path = os.path.abspath(self.path)
        return sorted((each for each in found if each != path and files.TEMP_TAG not in each), key=_order)

    def _neighbours(self, read: t.Callable[[str], Tree]) -> tuple[list[File], list[File]]:
        """Return what is read before and after the drop-in, in that order."""
        here = _order(os.path.abspath(self.path))
        others = self._others()
        before = [self.main] if os.path.exists(self.main) else []
        before += [path for path in others if _order(path) < here]
        return [(path, read(path)) for path in before], [(path, read(path)) for path in others if _order(path) > here]

    def _check_settings(self, tree: Tree, before: t.Sequence[File]) -> None:
        """Refuse settings in a table of an earlier file, whose other settings would be lost."""
        for place in (RUNTIMES, WORKLOADS):
            for name in get(self.settings, place, {}):
                path = (*place, name)
                found = [file for file, meaning in before if get(meaning, path) is not MISSING]
                if found and name != self.runtime_name and get(tree, path) is MISSING:
                    raise ConfigError(
                        f"settings: {format_path(path)} is described in {found[-1]}, and CRI-O would read the drop-in's"
                        " table instead, as a whole: set that there."
                    )

    def _check_later(self, path: str, tree: Tree) -> None:
        """Refuse a file that is read after the drop-in and overrides it."""
        overrides = f"{path} is read after {self.path} and"
        remedy = f"remove it there, or give drop_in: {path}."
        there = get(tree, (*RUNTIMES, self.runtime_name))
        if there is not MISSING and (there.get("runtime_path") != self.runtime_path or _overrides(there)):
            raise ConfigError(f"{overrides} describes runtime {self.runtime_name} otherwise: {remedy}")
        default = get(tree, DEFAULT)
        is_requested = default is not MISSING and self.set_default is not None
        if is_requested and (default == self.runtime_name) is not self.set_default:
            raise ConfigError(f"{overrides} makes {default} the default runtime: {remedy}")
        for leaf, value in leaves(dict(self.settings)).items():
            found = get(tree, leaf)
            if found is not MISSING and not is_same(found, value):
                raise ConfigError(f"{overrides} sets {format_path(leaf)} otherwise: {remedy}")


def plan(tree: Tree, params: Crio, managed: t.Mapping[Path, Managed], earlier: Tree, later: Tree) -> Plan:
    """Decide what a drop-in that means *tree* has to mean, if CRI-O reads *earlier* before it and *later* after it.

    Raises ConfigError if it cannot be merged into, with the remedy.
    """
    name = params.runtime_name
    runtime: Path = (*RUNTIMES, name)
    draft = RuntimeDraft(tree, params.path, managed, TOML)
    draft.reset_inherited({runtime})
    draft.merge_settings(params.settings)
    check_types(draft.tree, "settings", _TYPES, TOML)
    _check_runtime(params, table(draft.tree, runtime))
    draft.put((*runtime, "runtime_path"), params.runtime_path, "runtime", "name the NVIDIA runtime's binary")
    draft.put((*runtime, "runtime_type"), "oci", "runtime", "give the runtime its type")
    known = {**table(earlier, RUNTIMES), **table(draft.tree, RUNTIMES), **table(later, RUNTIMES)}
    _inherit(draft, runtime, [name], table(earlier, RUNTIMES))
    sources = [_site_default(draft, earlier, later, name), *_OWN_DEFAULTS]
    _inherit(draft, runtime, sources, {key: value for key, value in known.items() if key != name})
    _set_default(draft, params, earlier)
    default = get(later, DEFAULT, _default(draft.tree, earlier))
    if default not in ("", *_OWN_DEFAULTS) and default not in known and default != name:
        draft.warnings.append(
            f"CRI-O's default runtime is {default}, but there is no such runtime: add it or set set_default."
        )
    return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings)


def _check_runtime(params: Crio, runtime: Tree) -> None:
    """Refuse what makes CRI-O start another program than the requested one."""
    found = _overrides(runtime) or ["runtime_type"] * (runtime.get("runtime_type", "oci") not in ("", "oci"))
    if found:
        raise ConfigError(
            f"{params.path}: runtime {params.runtime_name} has {found[0]}, with which CRI-O does not start runtime_path:"
            " remove it."
        )


def _overrides(runtime: Tree) -> list[str]:
    return [key for key in _OVERRIDES if runtime.get(key)]


def _inherit(draft: RuntimeDraft, runtime: Path, names: t.Sequence[str], known: t.Mapping[str, Tree]) -> None:
    """Give *runtime* what it does not set itself from the first of *names* that runs OCI programs as runc does."""
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


def _set_default(draft: RuntimeDraft, params: Crio, earlier: Tree) -> None:
    """Make the runtime the default one, or no longer, if that is requested."""
    name = params.runtime_name
    if params.set_default is True:
        draft.put(DEFAULT, name, "default", f"make {name} the default runtime")
    if params.set_default is not False:
        return
    if get(draft.tree, DEFAULT) == name:
        before = draft.managed[DEFAULT].before if DEFAULT in draft.managed else MISSING
        if before in (MISSING, name):
            draft.add_reason(DEFAULT, "default", "leave the default runtime to the other files again")
            drop(draft.tree, DEFAULT)
        else:
            draft.put(DEFAULT, before, "default", f"make {before} the default runtime again")
    if _default(draft.tree, earlier) == name:
        # Another file makes it the default.
        draft.put(DEFAULT, "", "default", "leave the default runtime to CRI-O")


def _default(tree: Tree, earlier: Tree) -> str:
    """Return the default runtime once *tree* is read after *earlier*, "" for CRI-O's own."""
    return str(get(tree, DEFAULT, get(earlier, DEFAULT, "")))


def _site_default(draft: RuntimeDraft, earlier: Tree, later: Tree, name: str) -> str:
    """Return what the default runtime would be without *name*, "" for CRI-O's own."""
    before = draft.managed[DEFAULT].before if DEFAULT in draft.managed else MISSING
    found = (get(later, DEFAULT), get(draft.tree, DEFAULT), before, get(earlier, DEFAULT))
    return str(next((value for value in found if value not in (MISSING, name)), ""))


def _merge(files: t.Sequence[File]) -> Tree:
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
    tree = parse(path, files.read_bytes(path) or b"", TOML).tree
    check_types(tree, path, _TYPES, TOML)
    return tree


def _read_if_possible(path: str) -> Tree:
    """Return what a file means, nothing for one that cannot be read: for an undo and for facts, it does not matter."""
    try:
        return _read(path)
    except (ConfigError, files.FilesError):
        return {}
