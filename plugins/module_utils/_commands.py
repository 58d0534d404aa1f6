# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program of the host and returns all that it wrote.

AnsibleModule.run_command can lose the last output: it reads again only if a second passes without output, and does not read
what a program writes between that second and its end (https://github.com/ansible/ansible/issues/51393).
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from typing import IO, Mapping, Sequence

#: Seconds that a program may run if its caller gives no limit.
LIMIT = 300
#: The exit status that stands for an exceeded LIMIT, as that of coreutils' timeout.
TIMED_OUT = 124
# A program that the kernel does not let die is not waited for any longer.
_KILL_SECONDS = 5


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    seconds: float | None = None,
    limit: float = LIMIT,
    text: str = "",
) -> tuple[int, str, str]:
    """Return the exit status, the output and the errors of *command*, run with *environment* on top of this process's own.

    It reads *text* from its standard input.

    The status is negative if a signal ended it. A program that runs longer than *limit* seconds is killed; then the status is TIMED_OUT, and
    the errors end with a sentence. Raises OSError if the program cannot be started. With *seconds*, these are the limit, and TimeoutError,
    which is an OSError too, is raised instead.
    """
    # In memory and not through pipes: a daemon that the program starts may keep its output open, and the end of the output is not awaited.
    with _open_memory("input") as given, _open_memory("output") as output, _open_memory("errors") as errors:
        given.write(text.encode("utf-8"))
        given.seek(0)
        # Not run_command, which can lose output: see above.
        process = subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
            list(command),
            stdin=given if text else subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        status = _wait(process, limit if seconds is None else seconds)
        if status is None and seconds is not None:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), command[0])
        output.seek(0)
        errors.seek(0)
        said, complained = (file.read().decode("utf-8", "replace") for file in (output, errors))
        if status is None:
            return TIMED_OUT, said, f"{complained}{command[0]} has not ended within {limit:g} seconds and was killed\n"
        return status, said, complained


def _open_memory(name: str) -> IO[bytes]:
    return os.fdopen(os.memfd_create(name), "w+b")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit status of the process, or None if it runs longer and was killed."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_KILL_SECONDS)
    return None
