# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs and packages of a host: container runtimes and NVIDIA's toolkit."""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Sequence, Tuple

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
