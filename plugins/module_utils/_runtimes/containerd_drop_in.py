# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's configuration in two files, as `apply` sees them: a drop-in of ours, and config.toml, which imports it.

The drop-in comes first and goes first: an import without a file is nothing to containerd 2, a file without an import
neither.  Private to this collection.
"""

from __future__ import annotations

import os.path
import typing as t
from dataclasses import dataclass, replace

from .. import _files
from . import imports, proof
from .apply import ensure_absent, ensure_present, one_file
from .config_file import ConfigFile, meaning, read
from .containerd import ContainerdPlan, Request, plan_import
from .containerd_daemon import Containerd, load_import, warn_owned
from .draft import Owned
from .drop_in import plan_drop_in
from .errors import ConfigError
from .formats import TOML
from .journal import Change
from .places import recorded_drop_ins
from .schema import schema_of
from .trees import Path, Tree, merge, table
from .undo import taken_out

if t.TYPE_CHECKING:
    from .apply import Host, Outcome, Steps
    from .daemon import Daemon


@dataclass(frozen=True)
class Import(Containerd):
    """config.toml, which has to import the drop-in and is left alone otherwise."""

    drop_in: str

    @property
    def runtime_name(self) -> str:
        """What the record calls the import, which is there for all runtimes of the drop-in, however its path is written."""
        return os.path.realpath(self.drop_in)

    def plan(self, file: ConfigFile, _owned: t.Mapping[Path, Owned]) -> ContainerdPlan:
        """Decide how the file comes to import the drop-in."""
        decision = plan_import(file.tree, self.request, self.drop_in, self.is_imported(file.tree))
        decision.warnings[:] = warn_owned(file) + decision.warnings
        return decision

    def is_imported(self, tree: Tree) -> bool:
        """Whether a file that means *tree* imports the drop-in."""
        return imports.is_imported(self.drop_in, tree, os.path.dirname(os.path.abspath(self.path)))

    def check_effect(self, verdict: proof.Verdict) -> None:
        """Nothing: the effect was proved with the drop-in, which may not be there yet."""

    def has_runtime(self, _tree: Tree) -> bool:
        """Never: an import that others wrote is theirs."""
        return False

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module tells of the file."""
        told = super().facts(tree)
        return {name: told[name] for name in ("config_version", "plugin_id")}


@dataclass(frozen=True)
class DropIn(Containerd):
    """A file of its own for what is asked, with *root*, which imports it.

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

    def plan(self, file: ConfigFile, owned: t.Mapping[Path, Owned]) -> ContainerdPlan:
        """Decide what the drop-in should mean, with a look at the file that imports it and at all others that it imports."""
        request = self.request
        root = read(request.path, TOML)
        self.root.check(root.tree)
        importing = self.root.plan(root, {})
        before, after = self._neighbours(importing.target, load_import)
        for each in before:
            imports.check_version(each, importing.schema, request)
        foreign = imports.check_imports(after, importing.schema, request)
        foreign += imports.check_foreign_section(root.tree, request)
        decision = plan_drop_in(file.tree, self.path, importing.target, request, owned, before, after)
        decision.warnings += foreign
        return decision

    def without(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        layout = schema_of(tree) or schema_of(self._root())
        if layout is None:
            return tree, []  # nothing that containerd could read
        default = (*layout.containerd, "default_runtime_name")
        return taken_out(
            self.path, tree, changes, original, layout.runtimes, default, essential="runtime_type", builtin=None
        )

    def check_left(self, tree: Tree) -> None:
        """Refuse to leave containerd with a default runtime that is none, once the drop-in means *tree*."""
        whole, name = self._whole(tree), self.runtime_name
        if whole.get("default_runtime_name") == name and name not in table(whole, ("runtimes",)):
            raise ConfigError(
                f"{self.request.path}, or another file that it imports, makes {name} the default runtime, and without that"
                " runtime the CRI plugin would not load: take default_runtime_name out there first."
            )

    def judge(self, binary: str, data: bytes, workdir: str | None, execute: proof.Run) -> proof.Verdict:
        """Let containerd load *data* in the place of the drop-in, with the file that imports it and all others."""
        root = read(self.request.path, TOML)
        target = self.root.plan(root, {}).target
        root.document.set(("version",), target["version"])
        patterns = imports.absolute_patterns(target, os.path.dirname(os.path.abspath(root.path)))
        files = [name for pattern in patterns for name in imports.expanded(pattern, self.path)]
        return proof.judge_drop_in(binary, self.path, root.path, root.document, files, data, workdir, execute)

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module tells of the configuration as a whole."""
        return {**super().facts(tree), "default_runtime_name": self._whole(tree).get("default_runtime_name")}

    def _root(self) -> Tree:
        """Return what the importing file means, nothing if that cannot be told."""
        tree = _load_if_possible(self.request.path) or {}
        try:
            self.root.check(tree)
        except ConfigError:
            return {}
        return tree

    def _neighbours(
        self, root: Tree, load: t.Callable[[str], Tree | None]
    ) -> tuple[list[imports.Imported], list[imports.Imported]]:
        """Return the other files that *root* imports, as they are read before and after the drop-in."""
        here = os.path.realpath(self.path)

        def known(path: str) -> Tree | None:
            return {} if os.path.realpath(path) == here else load(path)

        files = imports.imported_files(self.request.path, root, known, self.path)
        at = next((n for n, file in enumerate(files) if os.path.realpath(file.path) == here), len(files))
        return files[:at], files[at + 1 :]

    def _whole(self, tree: Tree) -> Tree:
        """Return the table `containerd` of the CRI plugin as all files say it, if the drop-in means *tree*."""
        root = self._root()
        layout = schema_of(root) or schema_of(tree)
        whole: Tree = {}
        if layout is None:
            return whole
        before, after = self._neighbours(root, _load_if_possible)
        merge(whole, table(root, layout.containerd))
        for section in (
            imports.merged_section(before, layout, self.request.release),
            table(tree, layout.containerd),
            imports.merged_section(after, layout, self.request.release),
        ):
            merge(whole, section)
        return whole


def steps(request: Request, drop_in: str | None, state: str) -> Steps:
    """Return what brings the file, or with *drop_in* that file and the one that imports it, to *state*.

    Raises ConfigError for what no drop-in can be.
    """
    file = _drop_in(request, os.path.normpath(drop_in)) if drop_in else None
    act = _present if state == "present" else _absent

    def locked(host: Host) -> t.Iterator[tuple[Daemon, Outcome]]:
        # One run at a time for all files of this containerd, for what one of them has to say depends on the others.
        with host.exclusive(f"{os.path.realpath(request.path)}.d", host.check_mode):
            yield from act(request, file, host)

    return locked


def _present(request: Request, file: DropIn | None, host: Host) -> t.Iterator[tuple[Daemon, Outcome]]:
    mine = os.path.realpath(file.path) if file else None
    for other in recorded_drop_ins(host.state_dir, request.path):
        if other != mine and request.runtime_name in _recorded(other, host):
            raise ConfigError(
                f"Runtime {request.runtime_name} is in the drop-in {other}: give drop_in: {other}, or take it out first"
                " (state: absent)."
            )
    if file is None:
        yield from one_file(Containerd(request), "present")(host)
        return
    _check_release(request)
    _check_foreign(file, host)
    # What cannot be imported is not written. Its effect is proved with the drop-in.
    ensure_present(file.root, replace(host, check_mode=True, binary=None))
    yield file, ensure_present(file, host)
    yield file.root, ensure_present(file.root, host)


def _absent(request: Request, file: DropIn | None, host: Host) -> t.Iterator[tuple[Daemon, Outcome]]:
    """Take the runtime out wherever it is on record."""
    files = [file] if file else []
    known = {os.path.realpath(each.path) for each in files}
    files += [_drop_in(request, path) for path in _drop_ins(request, host) if path not in known]
    dry = replace(host, check_mode=True)
    for each in files:
        left = meaning(ensure_absent(each, dry).after, TOML) or {}
        each.check_left(left)
        ensure_absent(each.root, dry)  # where the import cannot be taken out, the drop-in stays
        yield each, ensure_absent(each, host)
        if not left:
            yield each.root, ensure_absent(each.root, host)
    if not files or request.runtime_name in host.journal(request.path, TOML).runtimes:
        yield from one_file(Containerd(request), "absent")(host)


def _drop_in(request: Request, path: str) -> DropIn:
    asked = replace(request, in_drop_in=True)
    return DropIn(asked, Import(asked, path))


def _drop_ins(request: Request, host: Host) -> list[str]:
    """Return the drop-ins on record, and those that the file imports because of us, links resolved."""
    imported = filter(os.path.isabs, host.journal(request.path, TOML).runtimes)
    return sorted({*recorded_drop_ins(host.state_dir, request.path), *imported})


def _recorded(path: str, host: Host) -> t.Container[str]:
    """Return the runtimes that are in the file *path* as it is now, and on record."""
    file = read(path, TOML)
    record = host.journal(path, TOML).load(file.sha, file.tree)
    return record.runtimes if record else ()


def _check_foreign(file: DropIn, host: Host) -> None:
    """Refuse a drop-in of somebody else that containerd does not read yet."""
    root = read(file.request.path, TOML).tree
    there = read(file.path, TOML)
    if there.tree and not file.root.is_imported(root) and not _recorded(file.path, host):
        raise ConfigError(
            f"{file.path} has settings, but {file.request.path} does not import it, so that they would come into force with"
            " the runtime: import it there first if they should, or give another file."
        )


def _load_if_possible(path: str) -> Tree | None:
    try:
        return load_import(path)
    except (ConfigError, _files.FilesError):
        return None


def _check_release(request: Request) -> None:
    if request.release is None:
        raise ConfigError(
            "drop_in: there is no containerd to ask for its release, and containerd 1.x replaces whole sections by those of a"
            " drop-in: state containerd_version, or leave drop_in out."
        )
    if not request.release.merges_imports:
        raise ConfigError(
            f"drop_in: containerd {request.release} would replace the whole CRI section of {request.path} by that of the"
            " drop-in, mirrors and all: leave drop_in out."
        )
