# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules and sysctl values."""

from __future__ import annotations

import os
from typing import Mapping, Sequence

# A built-in module without parameters is not in /sys/module; these files exist if it is there.
FEATURES: dict[str, str] = {
    "br_netfilter": "proc/sys/net/bridge",
    "overlay": "sys/module/overlay",
    "nf_conntrack": "proc/sys/net/netfilter/nf_conntrack_max",
}


def find_missing_modules(names: Sequence[str], release: str, root: str = "/") -> list[str]:
    """Return the modules that are neither loaded nor built in. ``release`` is the running kernel's (``uname -r``)."""
    present = _read_loaded(root) | _read_built_in(root, release) | _read_filesystems(root)
    return [
        name
        for name in names
        if name.replace("-", "_") not in present
        and not os.path.exists(os.path.join(root, "sys/module", name.replace("-", "_")))
        and not os.path.exists(os.path.join(root, FEATURES.get(name, f"sys/module/{name}")))
    ]


def _read_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read().splitlines()
    except OSError:
        return []


def _read_loaded(root: str) -> set[str]:
    return {line.split(" ", 1)[0] for line in _read_lines(os.path.join(root, "proc/modules"))}


def _read_filesystems(root: str) -> set[str]:
    """File systems of the kernel, whose modules (overlay) need not be loaded."""
    return {line.split()[-1] for line in _read_lines(os.path.join(root, "proc/filesystems")) if line.strip()}


def _read_built_in(root: str, release: str) -> set[str]:
    lines = _read_lines(os.path.join(root, "lib/modules", release, "modules.builtin"))
    return {os.path.basename(line)[: -len(".ko")].replace("-", "_") for line in lines if line.endswith(".ko")}


def get_sysctl_path(name: str, root: str = "/") -> str:
    """Return the file of a sysctl, in the form that sysctl.d uses (a slash in a part is written as a dot)."""
    swapped = name.translate(str.maketrans("./", "/.")) if "/" not in name.split(".", 1)[0] else name
    return os.path.join(root, "proc/sys", swapped)


def find_differing_sysctls(desired: Mapping[str, str], root: str = "/") -> dict[str, str | None]:
    """Return {name: current value, None if the kernel has no such setting} of each value that is not as desired."""
    differing: dict[str, str | None] = {}
    for name, value in desired.items():
        lines = _read_lines(get_sysctl_path(name, root))
        present = " ".join(lines[0].split()) if lines else None
        if present != " ".join(value.split()):
            differing[name] = present
    return differing


def write_sysctl(name: str, value: str, root: str = "/") -> None:
    """Set a value of the running kernel. Raises OSError."""
    with open(get_sysctl_path(name, root), "w", encoding="ascii") as stream:
        stream.write(value + "\n")
