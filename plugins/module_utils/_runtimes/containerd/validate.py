# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Let containerd check a configuration, and compare what it makes of it with what is requested."""

from __future__ import annotations

import os
import typing as t

from ..._config.errors import ConfigError
from ..._config.formats import TOML
from ..._config.redact import list_secrets, mask_words
from ..._config.tree import MISSING, Tree, get
from ..._config.validate import Run, Verdict, run, try_candidate, write_private
from .imports import absolute_patterns
from .schema import Release, is_version, parse_release, schema

if t.TYPE_CHECKING:
    from ..._document import Document
    from .plan import Request

_PREFIX = "containerd: "


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
    patterns = absolute_patterns(tree, os.path.dirname(os.path.abspath(path)))
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
    files: t.Sequence[str],
    data: bytes,
    workdir: str | None = None,
    execute: Run = run,
) -> Verdict:
    """Let containerd load *data* as if it were the content of the drop-in *path*.

    *document* is the file *root*, which imports *files*, *path* among them, in that order.
    """

    def build_command(candidate: str) -> list[str]:
        real = os.path.realpath(path)
        document.set(("imports",), [candidate if os.path.realpath(name) == real else name for name in files])
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
