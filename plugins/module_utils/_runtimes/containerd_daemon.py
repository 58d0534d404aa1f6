# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's config.toml, as `apply` sees it.  Private to this collection."""

from __future__ import annotations

import os.path
import typing as t
from dataclasses import dataclass

from .. import _files
from . import imports, owners, proof
from .config_file import ConfigFile, as_text, parse
from .containerd import ContainerdPlan, Request, plan
from .draft import Owned
from .errors import ConfigError
from .formats import TOML
from .journal import Change
from .schema import schema_of
from .shape import check_shape
from .trees import MISSING, Path, Tree, get
from .undo import without


@dataclass(frozen=True)
class Containerd:
    """The daemon containerd with what is asked."""

    request: Request
    name = "containerd"
    syntax = TOML

    @property
    def imported_by(self) -> str | None:
        """None: containerd is told of the file."""
        return None

    @property
    def path(self) -> str:
        """The configuration file."""
        return self.request.path

    @property
    def runtime_name(self) -> str:
        """The runtime in it."""
        return self.request.runtime_name

    def admit(self, text: str) -> list[str]:
        """Refuse a file that a distribution renders; return warnings for one that an installer overwrites."""
        path = self.path
        owner = (
            owners.owner_of_path(path)
            or owners.owner_of_path(os.path.realpath(path))
            or owners.owner_of_text(path, text)
        )
        if owner is None:
            return []
        if owner.refuse:
            raise ConfigError(owner.message)
        return [owner.message]

    def check(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_shape(tree, self.path)

    def plan(self, file: ConfigFile, owned: t.Mapping[Path, Owned]) -> ContainerdPlan:
        """Decide what the file should mean, with a look at what it imports."""
        request = self.request
        files = imports.imported_files(file.path, file.tree, load_import)
        # Which plugin id imported files use can be told only with the version of this file.
        first = plan(file.tree, request, owned)
        foreign = imports.check_imports(files, first.schema, request)
        foreign += imports.check_foreign_section(file.tree, request)
        merges = request.release.merges_imports if request.release else first.schema.version >= 3
        section = imports.merged_section(files, first.schema, request.release) if merges else {}
        decision = plan(file.tree, request, owned, section) if section else first
        decision.warnings[:] = warn_owned(file) + decision.warnings + foreign
        return decision

    def without(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        return without(self.path, tree, changes, original)

    def judge(self, binary: str, data: bytes, workdir: str | None, execute: proof.Run) -> proof.Verdict:
        """Let containerd load *data*."""
        return proof.judge(binary, self.path, data, workdir, execute)

    def check_effect(self, verdict: proof.Verdict) -> None:
        """Refuse a file that an import overrides."""
        proof.check_effect(verdict, self.request)

    def check_default(self, verdict: proof.Verdict) -> None:
        """Refuse a file with a default runtime that is none."""
        proof.check_default(verdict, self.path)

    def has_runtime(self, tree: Tree) -> bool:
        """Whether the runtime is in *tree*."""
        layout = schema_of(tree)
        return layout is not None and get(tree, (*layout.runtimes, self.runtime_name)) is not MISSING

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module tells of the file."""
        layout = schema_of(tree)
        return {
            "config_version": layout.version if layout else None,
            "plugin_id": layout.cri if layout else None,
            "default_runtime_name": get(tree, (*layout.containerd, "default_runtime_name"), None) if layout else None,
        }


def warn_owned(file: ConfigFile) -> list[str]:
    """Return a warning for a file that another program is known to rewrite."""
    owner = None if owners.owner_of_text(file.path, as_text(file.data)) else owners.owner_of_tree(file.path, file.tree)
    return [owner.message] if owner else []


def load_import(path: str) -> Tree | None:
    """Return what the file *path* means, None if there is none; raises ConfigError or FilesError."""
    data = _files.read_bytes(path)
    return None if data is None else parse(path, data, TOML).tree
