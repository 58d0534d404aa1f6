# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration in two files, described to `_config`: a drop-in, and config.toml, which imports it.

The drop-in is written first and removed first: containerd 2 ignores an import without a file, and a file without an import.
"""

from __future__ import annotations

import os.path
import typing as t
from dataclasses import dataclass, replace

from ..._config import files
from ..._config.apply import ensure, ensure_absent, ensure_present
from ..._config.change_log import Change, ChangeLog, list_imported_files
from ..._config.config_file import ConfigFile, parse_or_none, read
from ..._config.draft import Managed
from ..._config.errors import ConfigError
from ..._config.formats import TOML
from ..._config.tree import Path, Tree, merge, table
from ..._config.validate import Run, Verdict
from ..runtime import remove_runtime
from . import imports
from .daemon import Containerd, load_import, validate_drop_in, warn_rewritten
from .plan import ContainerdPlan, Request, plan_import
from .schema import schema_of
from .undo import RULES

if t.TYPE_CHECKING:
    from ..._config.apply import Host, Outcomes


@dataclass(frozen=True)
class Import(Containerd):
    """config.toml, which has to import the drop-in and otherwise stays as it is."""

    drop_in: str

    @property
    def entry(self) -> str:
        """The drop-in, links resolved; it is there for all of its runtimes."""
        return os.path.realpath(self.drop_in)

    def check_owner(self, text: str) -> list[str]:
        """Nothing for a file that imports the drop-in already, since it is not edited; else as for the file itself."""
        tree = parse_or_none(text.encode("utf-8"), TOML) or {}
        return [] if schema_of(tree) and self.is_imported(tree) else super().check_owner(text)

    def plan(self, file: ConfigFile, _managed: t.Mapping[Path, Managed]) -> ContainerdPlan:
        """Decide how the file imports the drop-in."""
        decision = plan_import(file.tree, self.request, self.drop_in, self.is_imported(file.tree))
        decision.warnings[:] = warn_rewritten(file) + decision.warnings
        return decision

    def is_imported(self, tree: Tree) -> bool:
        """Whether a file that means *tree* imports the drop-in."""
        return imports.is_imported(self.drop_in, tree, os.path.dirname(os.path.abspath(self.path)))

    def check_effect(self, verdict: Verdict) -> None:
        """Nothing: the effect was checked with the drop-in, which may not be there yet."""

    def has_entry(self, _tree: Tree) -> bool:
        """Return False: an import that others wrote is unmanaged."""
        return False

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module returns of the file."""
        facts = super().facts(tree)
        return {name: facts[name] for name in ("config_version", "plugin_id")}


@dataclass(frozen=True)
class DropIn(Containerd):
    """A file of its own for what is requested, with *root*, which imports it.

    Raises ConfigError for a path that cannot be imported.
    """

    root: Import

    def __post_init__(self) -> None:
        path, request = self.path, self.request
        if not os.path.isabs(path) or "*" in path or os.path.realpath(path) == os.path.realpath(request.path):
            raise ConfigError(
                f"drop_in {path} cannot be imported by {request.path}: give another file by its absolute path, such as"
                " /etc/containerd/conf.d/99-nvidia.toml."
            )

    @property
    def path(self) -> str:
        """The drop-in."""
        return self.root.drop_in

    @property
    def imported_by(self) -> str:
        """The file that imports it."""
        return self.request.path

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> ContainerdPlan:
        """Decide what the drop-in should mean, with regard to the file that imports it and all others that it imports."""
        request = self.request
        root = read(request.path, TOML)
        self.root.check_types(root.tree)
        importing = self.root.plan(root, {})
        before, after = self._neighbours(importing.target, load_import)
        for each in before:
            imports.check_version(each, importing.schema, request)
        warnings = imports.check_imports(after, importing.schema, request)
        warnings += imports.check_other_section(root.tree, request)
        decision = imports.plan_drop_in(file.tree, self.path, importing.target, request, managed, before, after)
        decision.warnings += warnings
        return decision

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        layout = schema_of(tree) or schema_of(self._root())
        if layout is None:
            return tree, []  # nothing that containerd could read
        default = (*layout.containerd, "default_runtime_name")
        return remove_runtime(self.path, tree, changes, original, layout.runtimes, default, RULES, builtin=None)

    def check_left(self, tree: Tree) -> None:
        """Refuse to leave containerd with a default runtime that is not there, once the drop-in means *tree*."""
        whole, name = self._whole(tree), self.entry
        if whole.get("default_runtime_name") == name and name not in table(whole, ("runtimes",)):
            raise ConfigError(
                f"{self.request.path}, or another file that it imports, makes {name} the default runtime, and without that"
                " runtime the CRI plugin would not load: remove default_runtime_name there first."
            )

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let containerd load *data* instead of the drop-in, with the file that imports it and all others."""
        root = read(self.request.path, TOML)
        target = self.root.plan(root, {}).target
        root.document.set(("version",), target["version"])
        patterns = imports.absolute_patterns(target, os.path.dirname(os.path.abspath(root.path)))
        names = [name for pattern in patterns for name in imports.expand(pattern, self.path)]
        return validate_drop_in(program, self.path, root.path, root.document, names, data, workdir, execute)

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module returns of the configuration as a whole."""
        return {**super().facts(tree), "default_runtime_name": self._whole(tree).get("default_runtime_name")}

    def _root(self) -> Tree:
        """Return what the importing file means, nothing if it cannot be read."""
        tree = _load_if_possible(self.request.path) or {}
        try:
            self.root.check_types(tree)
        except ConfigError:
            return {}
        return tree

    def _neighbours(
        self, root: Tree, load: t.Callable[[str], Tree | None]
    ) -> tuple[list[imports.Imported], list[imports.Imported]]:
        """Return the other files that *root* imports, as they are read before and after the drop-in."""
        here = os.path.realpath(self.path)

        def load_other(path: str) -> Tree | None:
            return {} if os.path.realpath(path) == here else load(path)

        found = imports.imported_files(self.request.path, root, load_other, self.path)
        at = next((n for n, file in enumerate(found) if os.path.realpath(file.path) == here), len(found))
        return found[:at], found[at + 1 :]

    def _whole(self, tree: Tree) -> Tree:
        """Return the table `containerd` of the CRI plugin as all files together mean it, if the drop-in means *tree*."""
        root = self._root()
        layout = schema_of(root) or schema_of(tree)
        whole: Tree = {}
        if layout is None:
            return whole
        before, after = self._neighbours(root, _load_if_possible)
        merge(whole, table(root, layout.containerd))
        for section in (
            imports.merge_section(before, layout, self.request.release),
            table(tree, layout.containerd),
            imports.merge_section(after, layout, self.request.release),
        ):
            merge(whole, section)
        return whole


def apply(request: Request, drop_in: str | None, state: str, host: Host) -> Outcomes:
    """Bring the file, or with *drop_in* that file and the one that imports it, to *state*.

    Raises ConfigError, also for what cannot be a drop-in.
    """
    file = _drop_in(request, os.path.normpath(drop_in)) if drop_in else None
    act = _present if state == "present" else _absent
    # One run at a time for all files of this containerd, because what one of them has to hold depends on the others.
    with host.lock(f"{os.path.realpath(request.path)}.d", host.check_mode):
        yield from act(request, file, host)


def _present(request: Request, file: DropIn | None, host: Host) -> Outcomes:
    path = os.path.realpath(file.path) if file else None
    for other in list_imported_files(host.state_dir, request.path):
        if other != path and request.runtime_name in _recorded_entries(_drop_in(request, other), host):
            raise ConfigError(
                f"Runtime {request.runtime_name} is in the drop-in {other}: give drop_in: {other}, or remove it first"
                " (state: absent)."
            )
    if file is None:
        yield from ensure(Containerd(request), "present", host)
        return
    _check_release(request)
    _check_unmanaged(file, host)
    # What cannot be imported is not written. Its effect is checked with the drop-in.
    ensure_present(file.root, replace(host, check_mode=True, validate=False))
    yield file, ensure_present(file, host)
    yield file.root, ensure_present(file.root, host)


def _absent(request: Request, file: DropIn | None, host: Host) -> Outcomes:
    """Remove the runtime wherever it is on record."""
    drop_ins = [file] if file else []
    known = {os.path.realpath(each.path) for each in drop_ins}
    drop_ins += [_drop_in(request, path) for path in _list_drop_ins(request, host) if path not in known]
    dry = replace(host, check_mode=True)
    for each in drop_ins:
        left = parse_or_none(ensure_absent(each, dry).after, TOML) or {}
        each.check_left(left)
        ensure_absent(each.root, dry)  # where the import cannot be removed, the drop-in stays
        yield each, ensure_absent(each, host)
        if not left:
            yield each.root, ensure_absent(each.root, host)
    if not drop_ins or request.runtime_name in _change_log(request, host).entries:
        yield from ensure(Containerd(request), "absent", host)


def _drop_in(request: Request, path: str) -> DropIn:
    request = replace(request, in_drop_in=True)
    return DropIn(request, Import(request, path))


def _change_log(request: Request, host: Host) -> ChangeLog:
    return host.change_log(Containerd(request))


def _list_drop_ins(request: Request, host: Host) -> list[str]:
    """Return the drop-ins on record, and those that the file imports because of this module, links resolved."""
    imported = filter(os.path.isabs, _change_log(request, host).entries)
    return sorted({*list_imported_files(host.state_dir, request.path), *imported})


def _recorded_entries(file: DropIn, host: Host) -> t.Container[str]:
    """Return the runtimes that are in the drop-in as it is now, and on record."""
    found = read(file.path, TOML)
    record = host.change_log(file).load(found.sha, found.tree)
    return record.entries if record else ()


def _check_unmanaged(file: DropIn, host: Host) -> None:
    """Refuse an unmanaged drop-in that containerd does not read yet."""
    root = read(file.request.path, TOML).tree
    there = read(file.path, TOML)
    if there.tree and not file.root.is_imported(root) and not _recorded_entries(file, host):
        raise ConfigError(
            f"{file.path} has settings, but {file.request.path} does not import it, so that they would come into force with"
            " the runtime: import it there first if they should, or give another file."
        )


def _load_if_possible(path: str) -> Tree | None:
    try:
        return load_import(path)
    except (ConfigError, files.FilesError):
        return None


def _check_release(request: Request) -> None:
    if request.release is None:
        raise ConfigError(
            "drop_in: there is no containerd that could state its release, and containerd 1.x replaces whole sections by those"
            " of a drop-in: install containerd first, or leave drop_in out."
        )
    if not request.release.merges_imports:
        raise ConfigError(
            f"drop_in: containerd {request.release} would replace the whole CRI section of {request.path} by that of the"
            " drop-in, mirrors and all: leave drop_in out."
        )
