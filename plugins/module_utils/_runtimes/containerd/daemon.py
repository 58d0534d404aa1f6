# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's config.toml, described to `_config`."""

from __future__ import annotations

import os.path
import typing as t
from dataclasses import dataclass

from ..._config import files
from ..._config.change_log import Change
from ..._config.config_file import ConfigFile, decode_text, parse
from ..._config.draft import Managed
from ..._config.errors import ConfigError
from ..._config.formats import TOML
from ..._config.tree import MISSING, Path, Tree, get
from ..._config.validate import Run, Verdict
from .. import owners
from . import imports, validate
from .plan import ContainerdPlan, Request, plan
from .schema import check_file, schema_of
from .undo import RULES, remove_changes


@dataclass(frozen=True)
class Containerd:
    """containerd with what is requested of its file."""

    request: Request
    name = "containerd"
    syntax = TOML
    rules = RULES

    @property
    def imported_by(self) -> str | None:
        """None: containerd reads the file by itself."""
        return None

    @property
    def path(self) -> str:
        """The configuration file."""
        return self.request.path

    @property
    def entry(self) -> str:
        """The runtime."""
        return self.request.runtime_name

    def check_owner(self, text: str) -> list[str]:
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

    def check_types(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_file(tree, self.path)

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> ContainerdPlan:
        """Decide what the file should mean, with regard to what it imports."""
        request = self.request
        imported = imports.imported_files(file.path, file.tree, load_import)
        # Only with the version of this file is it known which plugin ID imported files use.
        first = plan(file.tree, request, managed)
        warnings = imports.check_imports(imported, first.schema, request)
        warnings += imports.check_other_section(file.tree, request)
        merges = request.release.merges_imports if request.release else first.schema.version >= 3
        section = imports.merge_section(imported, first.schema, request.release) if merges else {}
        decision = plan(file.tree, request, managed, section) if section else first
        decision.warnings[:] = warn_rewritten(file) + decision.warnings + warnings
        return decision

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        return remove_changes(self.path, tree, changes, original)

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let containerd load *data*."""
        return validate.validate_file(program, self.path, data, workdir, execute)

    def check_effect(self, verdict: Verdict) -> None:
        """Refuse a file that an import overrides."""
        validate.check_effect(verdict, self.request)

    def check_default(self, verdict: Verdict) -> None:
        """Refuse a file with a default runtime that is not there."""
        validate.check_default(verdict, self.path)

    def has_entry(self, tree: Tree) -> bool:
        """Whether the runtime is in *tree*."""
        layout = schema_of(tree)
        return layout is not None and get(tree, (*layout.runtimes, self.entry)) is not MISSING

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module returns of the file."""
        layout = schema_of(tree)
        return {
            "config_version": layout.version if layout else None,
            "plugin_id": layout.cri if layout else None,
            "default_runtime_name": get(tree, (*layout.containerd, "default_runtime_name"), None) if layout else None,
        }


def warn_rewritten(file: ConfigFile) -> list[str]:
    """Return a warning for a file that another program is known to rewrite."""
    if owners.owner_of_text(file.path, decode_text(file.data)):
        return []
    owner = owners.owner_of_tree(file.path, file.tree)
    return [owner.message] if owner else []


def load_import(path: str) -> Tree | None:
    """Return what the file *path* means, None if there is none; raises ConfigError or FilesError."""
    data = files.read_bytes(path)
    return None if data is None else parse(path, data, TOML).tree
