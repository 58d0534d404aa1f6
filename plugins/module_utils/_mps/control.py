# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talks to a control daemon of MPS through nvidia-cuda-mps-control, the driver's program."""

from __future__ import annotations

import os
import shutil
from typing import Iterable

from .. import _commands
from .limits import Limits

PROGRAM = "nvidia-cuda-mps-control"
#: The folder of the daemons on the host, and the same one in their containers.
PATH = "/run/nvidia/mps"
CONTAINER_PATH = "/mps"
# Besides PATH, where drivers in containers and of some distributions have their programs.
_FOLDERS = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/run/nvidia/driver/usr/bin:/home/kubernetes/bin/nvidia/bin"
# A daemon answers at once; one that hangs does not hold up a run.
_SECONDS = 10


class ControlError(Exception):
    """The daemon does not answer; the message is a clause."""


def find_program() -> str | None:
    """Return the path of the driver's program; None if the host does not have it."""
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path=_FOLDERS)


def send(program: str, pipe: str, command: str, seconds: float = _SECONDS) -> str:
    """Return the answer to a command of the daemon with the pipe in that folder. Raises ControlError without a daemon, or after *seconds*."""
    environment = {"CUDA_MPS_PIPE_DIRECTORY": pipe}
    try:
        status, answer, errors = _commands.run([program], environment, limit=seconds, text=f"{command}\n")
    except OSError as error:
        raise ControlError(f"{program} cannot be started ({error.strerror})") from error
    if status:
        words = " ".join((answer + errors).split()[-20:])
        raise ControlError(f"no control daemon answers at {pipe} ({words or f'exit status {status}'})")
    return answer.strip()


def get_pipe(path: str, resource: str) -> str:
    """Return the folder of the pipe of the daemon for a resource, below the folder of all daemons."""
    return os.path.join(path, resource, "pipe")


def read_limits(program: str, pipe: str, indices: Iterable[int]) -> Limits:
    """Return the daemon's answers. Raises ControlError."""
    percentage = send(program, pipe, "get_default_active_thread_percentage")
    # One command each: without a limit, the answer is empty.
    return Limits(
        percentage, {index: send(program, pipe, f"get_default_device_pinned_mem_limit {index}") for index in indices}
    )
