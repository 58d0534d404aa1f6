# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `apply` has to know of a daemon and of what is asked of its file.  Private to this collection."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from .._document import Format
    from .config_file import ConfigFile
    from .draft import Owned, Plan
    from .journal import Change
    from .proof import Run, Verdict
    from .trees import Path, Tree


class Daemon(t.Protocol):
    """One daemon, one configuration file, one runtime in it.  Every method may raise ConfigError."""

    @property
    def name(self) -> str:
        """Name of the daemon, in messages and of the mark for its restart."""

    @property
    def path(self) -> str:
        """The configuration file."""

    @property
    def imported_by(self) -> str | None:
        """The file that makes the daemon read this one, None if the daemon reads it by itself."""

    @property
    def runtime_name(self) -> str:
        """The runtime in it."""

    @property
    def syntax(self) -> Format:
        """The syntax of the file."""

    def admit(self, text: str) -> list[str]:
        """Refuse a file that another program renders, before it is parsed; return warnings for one that it rewrites."""

    def check(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""

    def plan(self, file: ConfigFile, owned: t.Mapping[Path, Owned]) -> Plan:
        """Decide what the file should mean; *owned* are the leaves that earlier runs for this runtime changed."""

    def without(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays; *original*: before all changes."""

    def judge(self, binary: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let the daemon judge *data* as content of the file, without starting."""

    def check_effect(self, verdict: Verdict) -> None:
        """Refuse an accepted file that does not do what was asked for."""

    def check_default(self, verdict: Verdict) -> None:
        """Refuse an accepted file with a default runtime that is none."""

    def has_runtime(self, tree: Tree) -> bool:
        """Whether the runtime is in *tree*."""

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What a module tells of the file that means *tree*."""
