# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""containerd's config.toml, described to `_config`, and checked by containerd itself."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass

from ..._config import files
from ..._config.change_log import Change
from ..._config.config_file import ConfigFile, decode_text, parse
from ..._config.draft import Managed
from ..._config.errors import ConfigError
from ..._config.formats import TOML
from ..._config.redact import list_secrets, mask_words
from ..._config.tree import MISSING, Path, Tree, get
from ..._config.validate import Run, Verdict, run, try_candidate, write_private
from .. import owners
from . import imports
from .plan import ContainerdPlan, Request, plan
from .schema import Release, check_file, is_version, parse_release, schema, schema_of
from .undo import RULES, remove_changes

if t.TYPE_CHECKING:
    from ..._document import Document

_PREFIX = "containerd: "


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
        return validate_file(program, self.path, data, workdir, execute)

    def check_effect(self, verdict: Verdict) -> None:
        """Refuse a file that an import overrides."""
        check_effect(verdict, self.request)

    def check_default(self, verdict: Verdict) -> None:
        """Refuse a file with a default runtime that is not there."""
        check_default(verdict, self.path)

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
            "systemd_cgroup": self._has_systemd_cgroup(tree),
        }

    def _has_systemd_cgroup(self, tree: Tree) -> bool | None:
        """Whether the runtime uses the systemd cgroup driver, None without the runtime."""
        layout = schema_of(tree)
        if layout is None or not self.has_entry(tree):
            return None
        return bool(get(tree, (*layout.runtimes, self.entry, "options", "SystemdCgroup"), False))


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


# -- containerd checks a configuration, and what it makes of it is compared with what is requested


def read_release(binary: str, execute: Run = run) -> Release | None:
    """Return the release that `containerd --version` states, None if it states none."""
    status, output, _errors = execute([binary, "--version"])
    return parse_release(output) if status == 0 else None


def validate_file(binary: str, path: str, data: bytes, workdir: str | None = None, execute: Run = run) -> Verdict:
    """Let containerd load *data* as if it were the content of *path*, without a daemon.

    Relative imports are resolved beside *path*.
    """
    document = TOML.from_bytes(data)
    tree = document.tree
    patterns = imports.absolute_patterns(tree, os.path.dirname(os.path.abspath(path)))
    if patterns and patterns != tree.get("imports"):
        document.set(("imports",), patterns)

    def build_command(candidate: str) -> list[str]:
        return [binary, "--config", candidate, "config", "dump"]

    refusal, output = try_candidate(build_command, path, document, workdir, execute, prefix=_PREFIX)
    return Verdict.parse(refusal, output, TOML)


def validate_drop_in(
    binary: str,
    path: str,
    root: str,
    document: Document,
    imported: t.Sequence[str],
    data: bytes,
    workdir: str | None = None,
    execute: Run = run,
) -> Verdict:
    """Let containerd load *data* as if it were the content of the drop-in *path*.

    *document* is the file *root*, which imports the files *imported*, *path* among them, in that order.
    """

    def build_command(candidate: str) -> list[str]:
        real = os.path.realpath(path)
        document.set(("imports",), [candidate if os.path.realpath(name) == real else name for name in imported])
        importing = os.path.join(os.path.dirname(os.path.dirname(candidate)), os.path.basename(root))
        write_private(importing, document.to_bytes())
        return [binary, "--config", importing, "config", "dump"]

    name = os.path.join("conf.d", os.path.basename(path))
    refusal, output = try_candidate(build_command, path, TOML.from_bytes(data), workdir, execute, name, prefix=_PREFIX)
    if refusal is not None:
        beside = os.path.join(os.path.dirname(os.path.dirname(path)), os.path.basename(root))
        refusal = mask_words(refusal.replace(beside, root), list_secrets(document.tree))
    return Verdict.parse(refusal, output, TOML)


def check_effect(verdict: Verdict, request: Request) -> None:
    """Raise ConfigError if what containerd makes of the file is not what is requested."""
    section = _cri_section(verdict.effective)
    if section is None:
        return
    name, runtimes = request.runtime_name, section.get("runtimes", {})
    if get(runtimes, (name, "options", "BinaryName")) != request.runtime_path:
        raise ConfigError(
            f"containerd has no runtime {name} with {request.runtime_path} after reading {request.path} and its"
            " imports: search for an imported file that replaces it (`containerd config dump`)."
        )
    default = section.get("default_runtime_name", MISSING)
    if request.set_default is not None and (default == name) is not request.set_default:
        raise ConfigError(
            f"containerd has {default} as the default runtime after reading {request.path} and its imports: search"
            " for an imported file that sets default_runtime_name."
        )
    check_default(verdict, request.path)


def check_default(verdict: Verdict, path: str) -> None:
    """Raise ConfigError if the default runtime is not among the runtimes: containerd would start without CRI."""
    section = _cri_section(verdict.effective)
    default = section.get("default_runtime_name") if section else None
    if section and default and default not in section.get("runtimes", {}):
        raise ConfigError(
            f"{path} makes {default} the default runtime, but there is no such runtime and the CRI plugin would not"
            " load: add it or set set_default."
        )


def _cri_section(effective: Tree) -> Tree | None:
    version = effective.get("version", MISSING)
    if not is_version(version, 2):
        return None
    section = get(effective, schema(version).containerd)
    return section if isinstance(section, dict) else None
