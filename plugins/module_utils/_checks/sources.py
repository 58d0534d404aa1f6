# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where and how long a node is observed, and the programs that are run there."""

from __future__ import annotations

import shutil
from typing import NamedTuple, Sequence

from .. import _commands
from .._nvml import collect

#: Where programs are besides PATH, which sudo may shorten.
PROGRAM_FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin:/usr/local/nvidia/toolkit"
#: How much of a node is kept.
MAX_LINES, MAX_FILES, MAX_PROCESSES, MAX_PODS = 5, 20, 20, 1000


class Options(NamedTuple):
    """``timeout`` is in seconds and limits each part. Paths other than the defaults are for tests.

    ``vendors`` are those of the GPUs that the host offers, None for those that are found; ``naming`` is how a device plugin names partitions.
    """

    timeout: float = 30.0
    root: str = "/"
    nvml: collect.Options = collect.Options()
    socket: str = ""
    vendors: Sequence[str] | None = None
    naming: str = "single"


def find_program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=PROGRAM_FOLDERS)


def run_program(command: Sequence[str], options: Options) -> tuple[int, str, str]:
    """Run a program within the time limit; status 127 if it is not there, and 126 if it cannot be started."""
    path = find_program(command[0])
    if not path:
        return 127, "", f"there is no {command[0]}"
    try:
        return _commands.run([path, *command[1:]], limit=options.timeout)
    except OSError as error:
        return 126, "", str(error.strerror or error)
