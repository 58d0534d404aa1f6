# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command with real containerds at hand: ``python -m gates.with_containerd COMMAND ...``.

The unit tests let them judge what containerd_config writes. The one that the lab builds for its nodes is on PATH; CONTAINERDS names one of
each line that nodes have, as a list of paths.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lab import binaries
from lab.settings import from_environment
from lab.shell import LabError, run

from ._common import not_run

SETTINGS = from_environment()
# The one of the lab first. Without the lock of the lab's cache, which is held as long as somebody builds Kubernetes: a build comes whole
# or not at all.
LINES: dict[str, Callable[[], Path]] = {
    "2.4": lambda: binaries.containerd(SETTINGS),
    "2.1": lambda: binaries.containerd(SETTINGS, "2.1.4"),
    "1.7": lambda: binaries.containerd(SETTINGS, "1.7.29"),
    "1.6": lambda: binaries.debian_containerd(SETTINGS),
}


def programs() -> tuple[list[Path], int]:
    """The containerds that run, and 1 if on CI one of them can neither be found nor made."""
    found, status = [], 0
    for line, make in LINES.items():
        try:
            program = make() / "containerd"
            print(run([program, "--version"]).strip(), flush=True)
            found.append(program)
        except (LabError, OSError) as error:
            status |= not_run(f"tests with containerd {line}: {' '.join(str(error).split())[:200]}")
    return found, status


def main(command: list[str]) -> int:
    """Exit status of the command; without a containerd it runs too, and on CI that is a failure all the same."""
    found, status = programs()
    path = [*(str(program.parent) for program in found[:1]), os.environ.get("PATH", os.defpath)]
    env = {**os.environ, "PATH": os.pathsep.join(path), "CONTAINERDS": os.pathsep.join(map(str, found))}
    sys.stdout.flush()
    return subprocess.run(command, env=env, check=False).returncode or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
