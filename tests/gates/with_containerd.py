# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command with a real containerd on PATH: ``python -m gates.with_containerd COMMAND ...``.

The unit tests let it judge what containerd_config writes. It is the one that the lab builds, or has built, for its nodes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lab import binaries
from lab.settings import from_environment
from lab.shell import LabError, run

from ._common import not_run


def containerd() -> Path:
    """Folder with a containerd that runs; LabError where it can neither be found nor built."""
    # Without the lock of the lab's cache, which is held as long as somebody builds Kubernetes: a build comes whole or not at all.
    folder = binaries.containerd(from_environment())
    print(run([folder / "containerd", "--version"]).strip(), flush=True)
    return folder


def main(command: list[str]) -> int:
    """Exit status of the command; without containerd it runs too, and on CI that is a failure all the same."""
    path, status = os.environ.get("PATH", os.defpath), 0
    try:
        path = os.pathsep.join([str(containerd()), path])
    except (LabError, OSError) as error:
        status = not_run(f"tests with a real containerd: {' '.join(str(error).split())[:200]}")
    sys.stdout.flush()
    return subprocess.run(command, env={**os.environ, "PATH": path}, check=False).returncode or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
