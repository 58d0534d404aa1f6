# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker's daemon.json: decided on plain data, and described to `_config`.

Source: Docker's documentation of `dockerd` and its behaviour.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._config.draft import Managed, Plan
from .._config.errors import ConfigError
from .._config.formats import JSON
from .._config.schema_checks import check_types
from .._config.tree import MISSING, Path, Tree, format_path, get, table
from .._config.validate import Run, Verdict, try_candidate
from .runtime import RuntimeDraft, RuntimeFile, build_rules, remove_runtime

if t.TYPE_CHECKING:
    from .._config.change_log import Change
    from .._config.config_file import ConfigFile

DEFAULT: Path = ("default-runtime",)
RUNTIMES: Path = ("runtimes",)
CDI: Path = ("features", "cdi")

_TYPES: list[tuple[Path, str]] = [
    (DEFAULT, "text"),
    (RUNTIMES, "table"),
    ((*RUNTIMES, "*"), "table"),
    ((*RUNTIMES, "*", "path"), "text"),
    ((*RUNTIMES, "*", "runtimeType"), "text"),
    (CDI[:-1], "table"),
    (CDI, "switch"),
]


@dataclass(frozen=True)
class Docker(RuntimeFile):
    """daemon.json, with the parameters for it."""

    name = "docker"
    syntax = JSON
    rules = build_rules("path")
    runtimes = RUNTIMES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.runtime_name == "runc":
            raise ConfigError(
                "runtime_name runc is reserved by Docker for its own runtime: give another, such as nvidia."
            )

    def check_types(self, tree: Tree) -> None:
        """Refuse a file with settings of types that they cannot have."""
        check_types(tree, self.path, _TYPES, JSON)

    def plan(self, file: ConfigFile, managed: t.Mapping[Path, Managed]) -> Plan:
        """Decide what the file should mean."""
        return plan(file.tree, self, managed)

    def undo(self, tree: Tree, changes: t.Sequence[Change], original: Tree | None) -> tuple[Tree, list[str]]:
        """Return what *tree* means without *changes*, and warnings about what stays."""
        return remove_runtime(self.path, tree, changes, original, RUNTIMES, DEFAULT, self.rules)

    def validate(self, program: str, data: bytes, workdir: str | None, execute: Run) -> Verdict:
        """Let dockerd check *data*; releases before 23.0 cannot, and refuse nothing."""
        refusal, _output = try_candidate(
            lambda candidate: [program, "--validate", f"--config-file={candidate}"],
            self.path,
            JSON.from_bytes(data),
            workdir,
            execute,
            unsupported="unknown flag: --validate",
        )
        return Verdict(refusal, {})

    def check_effect(self, _verdict: Verdict) -> None:
        """Nothing: dockerd imports no other file, so that what it accepts is what it does."""

    def facts(self, tree: Tree) -> dict[str, t.Any]:
        """What the module returns of the file."""
        return {"default_runtime": get(tree, DEFAULT, None)}


def plan(tree: Tree, params: Docker, managed: t.Mapping[Path, Managed] | None = None) -> Plan:
    """Decide what a file that means *tree* has to mean; raises ConfigError if it cannot be merged into, with the remedy."""
    params.check_types(tree)
    draft = RuntimeDraft(tree, params.path, managed or {}, JSON)
    draft.merge_settings(params.settings)
    check_types(draft.tree, "settings", _TYPES, JSON)
    runtime: Path = (*RUNTIMES, params.runtime_name)
    shim = get(draft.tree, (*runtime, "runtimeType"))
    if shim is not MISSING:
        raise ConfigError(
            f"{params.path}: {format_path(runtime)} has runtimeType {shim}, beside which Docker accepts no path: remove it or"
            " give another runtime_name."
        )
    draft.put((*runtime, "path"), params.runtime_path, "runtime", "name the NVIDIA runtime's binary")
    draft.set_default(DEFAULT, params.runtime_name, params.set_default, table(draft.tree, RUNTIMES))
    if params.enable_cdi is not None:
        draft.put(CDI, params.enable_cdi, "cdi", "switch CDI %s" % ("on" if params.enable_cdi else "off"))
    return Plan(draft.tree, draft.kinds, draft.reasons, draft.warnings + _warn_default(params.path, draft.tree))


def _warn_default(path: str, tree: Tree) -> list[str]:
    """Return a warning if the default runtime is not one that Docker can have: then it does not start."""
    default = get(tree, DEFAULT, "runc")
    # Docker accepts the name of a shim (io.containerd.kata.v2) without an entry in the file.
    if default in ("", "runc") or "." in default or "/" in default or default in table(tree, RUNTIMES):
        return []
    return [f"{path} makes {default} the default runtime, but there is no such runtime: add it or set set_default."]
