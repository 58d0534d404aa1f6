# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `apply` needs to know of a daemon and of the parameters for its file."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from .._document import Format
    from .change_log import Change, Rules
    from .config_file import ConfigFile
    from .draft import Managed, Plan
    from .tree import Path, Tree
    from .validate import Run, Verdict


class Daemon(t.Protocol):
    """One daemon, one configuration file, one entry in it. Every method may raise ConfigError."""

    @property
    def name(self) -> str:
        """Name of the daemon, in messages and of the marker for its restart."""

    @property
    def path(self) -> str:
        """The configuration file."""

    @property
    def imported_by(self) -> str | None:
        """The file that makes the daemon read this one, None if the daemon reads it by itself."""

    @property
    def entry(self) -> str:
        """What is added to the file or removed from it, for the record; an absolute path for a file that it imports."""

    @property
    def syntax(self) -> Format:
        """The syntax of the file."""

    @property
    def rules(self) -> Rules:
        """How changes of the file are undone."""

    def check_owner(self, text: str) -> list[str]:
        """Refuse a file that another program renders, before it is parsed; return warnings for one that it rewrites."""

    def check_types(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> Plan:
        """Decide what the file should mean; *managed* are the leaves that earlier runs for this entry changed."""

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays; *original*: before all changes."""

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let the daemon check *data* as content of the file, without starting."""

    def check_effect(self, verdict: Verdict) -> None:
        """Refuse an accepted file that does not do what was requested."""

    def check_default(self, verdict: Verdict) -> None:
        """Refuse an accepted file whose default is an entry that is not there."""

    def has_entry(self, tree: Tree) -> bool:
        """Whether the entry is in *tree*."""

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What a module returns of the file that means *tree*."""
