# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run programs; a failure carries the program's own last words."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_TAIL_LINES = 25


class LabError(Exception):
    """Something the lab needs did not work; the text says what and, where known, the remedy."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    check: bool = True,
) -> str:
    """Return what COMMAND prints on standard output; LabError with its last lines where it fails."""
    words = [str(word) for word in command]
    result = subprocess.run(words, cwd=cwd, env=env, input=stdin, capture_output=True, check=False)
    if check and result.returncode:
        said = (result.stdout + result.stderr).decode(errors="replace").splitlines()[-_TAIL_LINES:]
        raise LabError(f"{' '.join(words)[:400]} ended with {result.returncode}:\n" + "\n".join(said))
    return result.stdout.decode(errors="replace")
