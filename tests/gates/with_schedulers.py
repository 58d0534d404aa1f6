# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a command with real kube-schedulers at hand: ``python -m gates.with_schedulers COMMAND ...``.

They judge what kube_scheduler_manifest writes. KUBE_SCHEDULERS names one of each version, as a list of paths.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

from lab import binaries
from lab.settings import from_environment
from lab.shell import LabError

from ._common import not_run

SETTINGS = from_environment()
# The oldest whose modules build with a Go of today, the lab's, and the newest.
VERSIONS = ("1.30.4", SETTINGS.kubernetes, "1.36.3")


def programs() -> tuple[list[str], int]:
    """The kube-schedulers, and 1 if on CI one of them can neither be found nor made."""
    found, status = [], 0
    for version in VERSIONS:
        try:
            folder = binaries.kubernetes(replace(SETTINGS, kubernetes=version), ["kube-scheduler"])
            found.append(str(folder / "kube-scheduler"))
        except (LabError, OSError) as error:
            status |= not_run(f"tests with kube-scheduler {version}: {' '.join(str(error).split())[:200]}")
    return found, status


def main(command: list[str]) -> int:
    """Exit status of the command; without kube-schedulers there is nothing to run."""
    found, status = programs()
    if not found:
        return status
    sys.stdout.flush()
    env = {**os.environ, "KUBE_SCHEDULERS": os.pathsep.join(found)}
    return subprocess.run(command, env=env, check=False).returncode or status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
