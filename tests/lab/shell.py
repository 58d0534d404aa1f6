# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run programs; an error has the last lines of the program."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_TAIL_LINES = 25
_PAUSE_SECONDS = 10
#: For every command that downloads: registries and mirrors fail for a moment.
DOWNLOAD_TRIES = 3


class LabError(Exception):
    """A failure of the lab; the text has the cause and, if known, the remedy."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    check: bool = True,
    retries: int = 1,
) -> str:
    """Return the standard output of COMMAND. Raises LabError with its last lines.

    A command that downloads passes ``retries=DOWNLOAD_TRIES``, the largest number of runs, with a pause between them.
    """
    words = [str(word) for word in command]
    for attempt in range(1, retries + 1):
        result = subprocess.run(words, cwd=cwd, env=env, input=stdin, capture_output=True, check=False)
        if not result.returncode or attempt == retries:
            break
        print(f"{' '.join(words)[:100]} ended with {result.returncode}; trying again ({attempt} of {retries})")
        time.sleep(_PAUSE_SECONDS)
    if check and result.returncode:
        output = (result.stdout + result.stderr).decode(errors="replace").splitlines()[-_TAIL_LINES:]
        raise LabError(f"{' '.join(words)[:400]} ended with {result.returncode}:\n" + "\n".join(output))
    return result.stdout.decode(errors="replace")
