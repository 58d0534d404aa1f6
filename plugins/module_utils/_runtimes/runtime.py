# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all container runtimes have in common: a table of runtimes, a default one, and how both are changed and undone."""

from __future__ import annotations

import os.path
import re
import typing as t
from dataclasses import dataclass, field

from .._config.change_log import Change, Rules, undo_changes
from .._config.draft import Draft
from .._config.errors import ConfigError
from .._config.tree import MISSING, Path, Tree, drop, get, put, table
from .._document import is_same
from . import owners

if t.TYPE_CHECKING:
    from .._config.validate import Verdict

#: What Kubernetes accepts as the handler of a RuntimeClass.
_HANDLER = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")


def build_rules(essential: str, locate: t.Callable[[Path, Tree], Path] = lambda path, _tree: path) -> Rules:
    """Return how changes are undone in a file whose runtimes need the setting *essential*."""
    return Rules(
        essential,
        shared=frozenset(["version", "cri", "runc", "cgroup", "cdi"]),
        defining=frozenset(["runtime", "inherit", "default", "import"]),
        appended=frozenset(["import"]),
        inherited=frozenset(["inherit"]),
        unopposed=frozenset(["version"]),  # the whole file is written in it
        locate=locate,
    )


def check_handler(name: str) -> None:
    """Raise ConfigError for a *name* that no runtime can have."""
    if not _HANDLER.match(name):
        raise ConfigError(
            f"runtime_name {name!r} cannot be the handler of a RuntimeClass: give lowercase letters,"
            " digits and hyphens, such as nvidia."
        )


def is_nvidia_path(binary: t.Any) -> bool:
    """Whether *binary* is the path of one of NVIDIA's wrappers."""
    return os.path.basename(str(binary)).startswith("nvidia-container-runtime")


@dataclass(frozen=True)
class RuntimeFile:
    """A file with runtimes, and the parameters for one of them. None means: not requested, the setting stays as it is.

    Raises ConfigError for a name that no runtime can have.
    """

    path: str
    runtime_name: str = "nvidia"
    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    set_default: bool | None = None
    enable_cdi: bool | None = None
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    imported_by = None
    #: Path of the table of runtimes.
    runtimes: t.ClassVar[Path]

    def __post_init__(self) -> None:
        check_handler(self.runtime_name)

    @property
    def entry(self) -> str:
        """The runtime."""
        return self.runtime_name

    def check_owner(self, _text: str) -> list[str]:
        """Refuse a template."""
        owners.refuse_rendered(self.path)
        return []

    def check_default(self, _verdict: Verdict) -> None:
        """Nothing: the daemon refuses a default runtime that is not there, or does not print what it makes of the file."""

    def has_entry(self, tree: Tree) -> bool:
        """Whether the runtime is in *tree*."""
        return get(tree, (*self.runtimes, self.runtime_name)) is not MISSING


class RuntimeDraft(Draft):
    """A draft of a file with runtimes."""

    def reset_inherited(self, keep: t.Container[Path]) -> None:
        """Undo what an earlier run inherited, so that it is inherited again and follows its source; tables in *keep* stay."""
        for path, managed in self.managed.items():
            if managed.kind == "inherit" and get(self.tree, path) is not MISSING:
                self.add_reason(path, "inherit", "follow the runtime inherited from")
                if managed.before is MISSING:
                    drop(self.tree, path, keep=keep)
                else:
                    put(self.tree, path, managed.before)

    def set_default(self, path: Path, name: str, requested: bool | None, known: t.Container[str]) -> None:
        """Make *name* the default runtime, which is at *path*, or no longer, if requested; *known* are the runtimes."""
        if requested is True:
            self.put(path, name, "default", f"make {name} the default runtime")
        if requested is not False or get(self.tree, path) != name:
            return
        before = self.managed[path].before if path in self.managed else "runc"
        if before is MISSING:
            self.add_reason(path, "default", "leave the default runtime to the daemon again")
            drop(self.tree, path)
        else:
            former = before if before in known and before != name else "runc"
            self.put(path, former, "default", f"make {former} the default runtime again")


def remove_runtime(
    path: str,
    tree: Tree,
    changes: t.Sequence[Change],
    original: Tree | None,
    runtimes: Path,
    default: Path,
    rules: Rules,
    builtin: str | None = "runc",
) -> tuple[Tree, list[str]]:
    """Return what *tree*, the meaning of *path*, means without *changes*, and warnings, for daemons without further rules.

    *runtimes* and *default* are the paths of the table of runtimes and of the default runtime. *builtin* is the default of a
    file that names none; None: other files decide.
    """
    target = undo_changes(tree, changes, [runtimes], rules, original)
    if is_same(target, original):
        return target, []
    return target, replace_default(path, tree, target, default, runtimes, builtin)


def replace_default(
    path: str, tree: Tree, target: Tree, leaf: Path, runtimes: Path, builtin: str | None = "runc"
) -> list[str]:
    """Make *builtin* the default at *leaf* of *target*, if the runtime there was in *tree* and is gone; return a warning."""
    name, known = get(target, leaf), table(target, runtimes)
    if name == builtin or name in known or name not in table(tree, runtimes):
        return []
    if builtin in known:
        put(target, leaf, builtin)
    else:
        drop(target, leaf)
    again = f"is {builtin} again" if builtin else "is left to the other files"
    return [f"{path}: the default runtime {again}, because {name} is gone."]
