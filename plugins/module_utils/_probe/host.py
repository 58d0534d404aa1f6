# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has: programs, packages, modules of the running kernel and its settings."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Mapping, Sequence, Tuple

# command -> (exit status, output); a missing program is status 127
Runner = Callable[[Sequence[str]], Tuple[int, str]]

_VERSION = re.compile(r"\bv?(\d+\.\d+(?:\.\d+)?(?:[-~+][0-9A-Za-z.+~-]+)?)")

_INCOMPLETE = ("half-installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending")

# package manager: (its command, the query of one installed package)
PACKAGE_QUERIES: dict[str, tuple[str, list[str]]] = {
    "apt": ("apt-get", ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}\\n"]),
    "zypper": ("zypper", ["rpm", "--query", "--queryformat", "installed %{VERSION}-%{RELEASE}\\n"]),
    "dnf": ("dnf", ["rpm", "--query", "--queryformat", "installed %{VERSION}-%{RELEASE}\\n"]),
    "pacman": ("pacman", ["pacman", "--query"]),
}

# A built-in module without parameters is not in /sys/module; these files exist if it is there.
FEATURES: dict[str, str] = {
    "br_netfilter": "proc/sys/net/bridge",
    "overlay": "sys/module/overlay",
    "nf_conntrack": "proc/sys/net/netfilter/nf_conntrack_max",
}


def find_version(output: str) -> str | None:
    """Return the version number in the first line of a program's answer, without a leading v."""
    found = _VERSION.search((output.strip().splitlines() or [""])[0])
    return found.group(1) if found else None


def describe_program(path: str | None, run: Runner) -> dict[str, Any]:
    """Describe a program: {path, version, usable}. It is usable if it can be executed and prints its version."""
    if not path:
        return {"path": None, "version": None, "usable": False}
    status, output = run([path, "--version"])
    return {"path": path, "version": find_version(output) if status == 0 else None, "usable": status == 0}


def read_package_version(manager: str | None, name: str, run: Runner, half: bool = False) -> str | None:
    """Return the installed package's version, or None if it is not installed or the manager is unknown.

    With *half*, also of a package that dpkg could not install completely, as after a failed build of DKMS.
    """
    if manager not in PACKAGE_QUERIES:
        return None
    status, output = run([*PACKAGE_QUERIES[manager][1], "--", name])
    # One line for each architecture or version.
    lines = [line.split() for line in output.splitlines()] if status == 0 else []
    states = {"installed", name, *(_INCOMPLETE if half else ())}
    return next((words[1] for words in lines if len(words) >= 2 and words[0] in states), None)


def find_package_manager(find: Callable[[str], str | None]) -> str | None:
    """Return the first package manager whose command exists."""
    return next((name for name, (command, _query) in PACKAGE_QUERIES.items() if find(command)), None)


def filter_existing(paths: Sequence[str]) -> list[str]:
    """Return the *paths* that exist, unchanged; ``~`` and ``$NAME`` are expanded for the check."""
    return [path for path in paths if os.path.lexists(os.path.expanduser(os.path.expandvars(path)))]


# -- modules of the running kernel and its settings


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
