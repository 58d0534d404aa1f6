# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which runtimes are of runc's kind, and what another one takes over from them.  Private to this collection."""

from __future__ import annotations

import os.path
import typing as t

from .schema import RUNC_SHIMS
from .trees import Tree, get, table

#: Keys of a runtime that are never copied: they belong to shims that containerd 2 no longer has.
_NOT_INHERITED = frozenset(["runtime_root", "runtime_engine"])


def is_runc_type(runtime: t.Any, by_binary: bool = True) -> bool:
    """Whether a table of a runtime describes runc or a binary with runc's command line (not Kata, not gVisor)."""
    if not isinstance(runtime, dict) or runtime.get("runtime_type") not in RUNC_SHIMS:
        return False
    binary = os.path.basename(str(get(runtime, ("options", "BinaryName"), "")))
    return not (by_binary and binary.startswith(("runsc", "kata")))


def is_nvidia(runtime: t.Any) -> bool:
    """Whether a runtime already is one of NVIDIA's wrappers, from which nothing is to be learned about runc."""
    return is_nvidia_path(get(runtime, ("options", "BinaryName"), ""))


def is_nvidia_path(binary: t.Any) -> bool:
    """Whether *binary* is the path of one of NVIDIA's wrappers."""
    return os.path.basename(str(binary)).startswith("nvidia-container-runtime")


def inheritable(source: Tree) -> Tree:
    """Return what another runtime of runc's type takes over: what is set, without binary and type."""
    found = {
        key: value
        for key, value in source.items()
        if value and key not in ("options", "runtime_type") and key not in _NOT_INHERITED
    }
    options = {
        key: value
        for key, value in table(source, ("options",)).items()
        if key != "BinaryName" and (value or key == "SystemdCgroup")
    }
    return {**found, "options": options} if options else found
