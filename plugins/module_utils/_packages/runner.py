# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a package manager, and wait for the locks of others."""

from __future__ import annotations

import glob
import os
import re
import time
from contextlib import suppress
from typing import Callable, Sequence, Tuple

# command -> (exit status, output, errors)
Runner = Callable[[Sequence[str]], Tuple[int, str, str]]

# The longest wait for a lock, in seconds.
LOCK_TIMEOUT = 300
# The managers' messages in the C locale. apt waits for the lock of dpkg, but not for that of its lists. zypper waits if it knows
# ZYPP_LOCK_TIMEOUT. dnf 4 waits without a limit unless exit_on_lock is set. dnf 5 and pacman do not wait.
LOCK_ERROR = re.compile(
    r"could not get lock|frontend lock was locked by another process|unable to lock database|could not lock database"
    r"|system management is locked|can't create transaction lock .*temporarily unavailable"
    r"|already locked by|failed to obtain (?:rpm|the) transaction lock",
    re.IGNORECASE,
)

# Lines of an error that contain its cause; other lines describe consequences.
_CAUSE = re.compile(r"^(?:E:|error|problem:|- nothing provides)|signature verification failed", re.IGNORECASE)


def run_with_lock_wait(
    command: Sequence[str],
    run: Runner,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[int, str, str]:
    """Run the command, and repeat it for up to LOCK_TIMEOUT seconds while another process has the lock."""
    end = clock() + LOCK_TIMEOUT
    wait = 0.5
    while True:
        status, output, errors = run(command)
        if status == 0 or not LOCK_ERROR.search(output + "\n" + errors) or clock() >= end:
            return status, output, errors
        pause(min(wait, max(end - clock(), 0)))
        wait = min(wait * 2, 5.0)


def break_stale_lock(path: str, processes: str = "/proc") -> None:
    """Remove a lock file that no process has open, as after a killed process."""
    for folder in glob.iglob(f"{processes}/[0-9]*/fd"):
        with suppress(OSError):  # processes come and go
            if any(os.path.realpath(entry.path) == os.path.realpath(path) for entry in os.scandir(folder)):
                return
    with suppress(FileNotFoundError):
        os.remove(path)


def summarize_error(output: str, errors: str) -> str:
    """Return the cause of an error from a package manager's last lines, in one line."""
    lines = [line.strip() for line in (errors.strip() or output.strip()).splitlines() if line.strip()]
    causes = [line for line in lines if _CAUSE.search(line)]
    return " ".join((causes or lines)[-2:]) or "no reason given"
