# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this machine has the tools that `make test` needs and no gate can download; checked first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

from . import versions
from ._common import missing_is_failure, thorough

GO = (1, 24)
ROOT_ONLY = (
    "the lab's nodes are privileged and its keys and inventory would be root's: run the whole as root, "
    'for example `sudo env PATH="$PATH" HOME="$HOME" make test`'
)


def go_version() -> tuple[int, int] | None:
    """Version of the Go toolchain on PATH, (1, 26) for 1.26.8; None where there is none."""
    if not shutil.which("go"):
        return None
    answer = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
    match = re.match(r"go(\d+)\.(\d+)", answer)
    return (int(match[1]), int(match[2])) if match else None


def find_missing() -> tuple[list[str], list[str]]:
    """Missing tools that all gates need, and missing Pythons that single gates need."""
    go, required = go_version(), ".".join(map(str, GO))
    tools = []
    if go is None:
        tools.append(f"Go {required} or newer on PATH")
    elif go < GO:
        tools.append(f"Go {required} or newer on PATH (it is {'.'.join(map(str, go))})")
    needed = versions.NEEDED if thorough() else versions.NODE_PYTHONS[:1]
    pythons = [version for version in needed if versions.find_python(version) is None]
    return tools, [f"Python {', '.join(pythons)} (on PATH, in pyenv or in uv)"] if pythons else []


def main() -> int:
    """Print one sentence if something is missing; 1 if the gates cannot pass without it."""
    tools, pythons = find_missing()
    if tools or (pythons and missing_is_failure()):
        print(
            f"make test: this machine lacks {' and '.join(tools + pythons)}; install what is missing.", file=sys.stderr
        )
        return 1
    if os.geteuid() != 0:
        print(f"make test: {ROOT_ONLY}.", file=sys.stderr)
        return 1
    if pythons:
        print(f"make test: this machine lacks {pythons[0]}; what needs it is left out and counted as skipped.")
    return 0
