# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a package manager while others run theirs."""

from __future__ import annotations

import glob
import os
import re
import time
from contextlib import suppress
from typing import Callable, Sequence, Tuple

# command -> (exit status, output, errors)
Runner = Callable[[Sequence[str]], Tuple[int, str, str]]

# Seconds that a lock of somebody else is waited for.
PATIENCE = 300
# The managers' words in the C locale. apt waits by itself for the lock of dpkg but not for that of its lists, zypper
# where it knows ZYPP_LOCK_TIMEOUT, dnf 4 without end unless exit_on_lock is set, dnf 5 and pacman do not.
LOCKED = re.compile(
    r"could not get lock|frontend lock was locked by another process|unable to lock database|could not lock database"
    r"|system management is locked|can't create transaction lock .*temporarily unavailable"
    r"|already locked by|failed to obtain (?:rpm|the) transaction lock",
    re.IGNORECASE,
)

# Lines of an error that say why, among others that say what else did not work because of it.
_TELLING = re.compile(r"^(?:E:|error|problem:|- nothing provides)|signature verification failed", re.IGNORECASE)


def run_patiently(
    command: Sequence[str],
    run: Runner,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[int, str, str]:
    """Run the command again as long as it fails for a lock of somebody else, for PATIENCE seconds."""
    end = clock() + PATIENCE
    wait = 0.5
    while True:
        status, output, errors = run(command)
        if status == 0 or not LOCKED.search(output + "\n" + errors) or clock() >= end:
            return status, output, errors
        pause(min(wait, max(end - clock(), 0)))
        wait = min(wait * 2, 5.0)


def break_stale_lock(path: str, processes: str = "/proc") -> None:
    """Take a lock file away that no process has open, because the one that made it was killed."""
    for folder in glob.iglob(f"{processes}/[0-9]*/fd"):
        with suppress(OSError):  # processes come and go
            if any(os.path.realpath(entry.path) == os.path.realpath(path) for entry in os.scandir(folder)):
                return
    with suppress(FileNotFoundError):
        os.remove(path)


def last_words(output: str, errors: str) -> str:
    """Return what a package manager said last of an error, in one line."""
    lines = [line.strip() for line in (errors.strip() or output.strip()).splitlines() if line.strip()]
    named = [line for line in lines if _TELLING.search(line)]
    return " ".join((named or lines)[-2:]) or "no reason given"
