# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which runtimes are of runc's kind, and what another one inherits from them."""

from __future__ import annotations

import os.path
import typing as t

from ..._config.tree import Tree, get, table
from ..runtime import is_nvidia_path
from .schema import RUNC_SHIMS

#: Keys of a runtime that are never copied: they belong to shims that containerd 2 no longer has.
_NOT_INHERITED = frozenset(["runtime_root", "runtime_engine"])


def is_runc_type(runtime: t.Any, by_binary: bool = True) -> bool:
    """Whether a table of a runtime describes runc or a binary with runc's command line (not Kata, not gVisor)."""
    if not isinstance(runtime, dict) or runtime.get("runtime_type") not in RUNC_SHIMS:
        return False
    binary = os.path.basename(str(get(runtime, ("options", "BinaryName"), "")))
    return not (by_binary and binary.startswith(("runsc", "kata")))


def is_nvidia(runtime: t.Any) -> bool:
    """Whether a runtime is one of NVIDIA's wrappers, whose settings are not runc's."""
    return is_nvidia_path(get(runtime, ("options", "BinaryName"), ""))


def find_inheritable(source: Tree) -> Tree:
    """Return what another runtime of runc's type inherits: what is set, without binary and type."""
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
