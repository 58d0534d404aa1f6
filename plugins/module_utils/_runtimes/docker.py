# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's daemon.json: what is asked of it, decided on plain data, and the file as `apply` sees it.

Source: Docker's documentation of `dockerd` and its behaviour.  Private to this collection.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import owners, proof
from .draft import Draft, Owned, Plan, check_handler
from .errors import ConfigError
from .formats import JSON
from .shape import check_shape
from .trees import MISSING, Path, Tree, dotted, get, table
from .undo import taken_out

if t.TYPE_CHECKING:
    from .config_file import ConfigFile
    from .journal import Change

DEFAULT: Path = ("default-runtime",)
RUNTIMES: Path = ("runtimes",)
CDI: Path = ("features", "cdi")

_SHAPE: list[tuple[Path, str]] = [
    (DEFAULT, "text"),
    (RUNTIMES, "table"),
    ((*RUNTIMES, "*"), "table"),
    ((*RUNTIMES, "*", "path"), "text"),
    ((*RUNTIMES, "*", "runtimeType"), "text"),
    (CDI[:-1], "table"),
    (CDI, "switch"),
]


@dataclass(frozen=True)
class Docker:
    """The daemon of Docker with what is asked.  None means: not asked, leave it as it is.

    Raises ConfigError for a name that no runtime can have.
    """

    path: str
    runtime_name: str = "nvidia"
    runtime_path: str = "/usr/bin/nvidia-container-runtime"
    set_default: bool | None = None
    enable_cdi: bool | None = None
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    name = "docker"
    syntax = JSON
    imported_by = None

    def __post_init__(self) -> None:
        check_handler(self.runtime_name)
        if self.runtime_name == "runc":
            raise ConfigError(
                "runtime_name runc is reserved by Docker for its own runtime: give another, such as nvidia."
            )

    def admit(self, _text: str) -> list[str]:
        """Refuse a template."""
        owners.refuse_rendered(self.path)
        return []

    def check(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_shape(tree, self.path, _SHAPE, JSON)

    def plan(self, file: ConfigFile, owned: t.Mapping[Path, Owned]) -> Plan:
        """Decide what the file should mean."""
        return plan(file.tree, self, owned)

    def without(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        return taken_out(self.path, tree, changes, original, RUNTIMES, DEFAULT, essential="path")

    def judge(self, binary: str, data: bytes, workdir: str | None, execute: proof.Run) -> proof.Verdict:
        """Let dockerd validate *data*."""
        return proof.judge_docker(binary, self.path, data, workdir, execute)

    def check_effect(self, _verdict: proof.Verdict) -> None:
        """Nothing: dockerd imports no other file, so that what it accepts is what it does."""

    def check_default(self, _verdict: proof.Verdict) -> None:
        """Nothing: dockerd tells no more than whether it accepts a file."""

    def has_runtime(self, tree: Tree) -> bool:
        """Whether the runtime is in *tree*."""
        return get(tree, (*RUNTIMES, self.runtime_name)) is not MISSING

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module tells of the file."""
        return {"default_runtime": get(tree, DEFAULT, None)}


def plan(tree: Tree, asked: Docker, owned: t.Mapping[Path, Owned] | None = None) -> Plan:
    """Decide what a file that means *tree* has to mean; raises ConfigError if it cannot be merged into, with the remedy."""
    asked.check(tree)
    draft = Draft(tree, asked.path, owned or {}, JSON)
    draft.merge_settings(asked.settings)
    check_shape(draft.tree, "settings", _SHAPE, JSON)
    runtime: Path = (*RUNTIMES, asked.runtime_name)
    shim = get(draft.tree, (*runtime, "runtimeType"))
    if shim is not MISSING:
        raise ConfigError(
            f"{asked.path}: {dotted(runtime)} has runtimeType {shim}, beside which Docker takes no path: take it out or give"
            " another runtime_name."
        )
    draft.put((*runtime, "path"), asked.runtime_path, "runtime", "name the NVIDIA runtime's binary")
    draft.set_default(DEFAULT, asked.runtime_name, asked.set_default, table(draft.tree, RUNTIMES))
    if asked.enable_cdi is not None:
        draft.put(CDI, asked.enable_cdi, "cdi", "switch CDI %s" % ("on" if asked.enable_cdi else "off"))
    return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings + _doubts(asked.path, draft.tree))


def _doubts(path: str, tree: Tree) -> list[str]:
    """Return a warning if the default runtime is none that Docker can have: then it does not start."""
    default = get(tree, DEFAULT, "runc")
    # Docker takes the name of a shim (io.containerd.kata.v2) without an entry in the file.
    if default in ("", "runc") or "." in default or "/" in default or default in table(tree, RUNTIMES):
        return []
    return [f"{path} makes {default} the default runtime, but there is no such runtime: add it or set set_default."]
