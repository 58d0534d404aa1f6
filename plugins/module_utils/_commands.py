# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a program of the host and returns all that it wrote.

AnsibleModule.run_command can lose the last output: it reads again only if a second passes without output, and does not read
what a program writes between that second and its end (https://github.com/ansible/ansible/issues/51393).
"""

from __future__ import annotations

import errno
import os
import subprocess
from typing import Mapping, Sequence


def run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, seconds: float | None = None
) -> tuple[int, str, str]:
    """Return the exit status, the output and the errors of *command*, run with *environment* on top of this process's own.

    The status is negative if a signal ended it. Raises OSError if the program cannot be started, and TimeoutError, which is an
    OSError too, if it runs longer than *seconds*; it is killed then.
    """
    # In memory and not through pipes: a daemon that the program starts may keep its output open, and nobody waits for its end.
    with os.fdopen(os.memfd_create("output"), "w+b") as output, os.fdopen(os.memfd_create("errors"), "w+b") as errors:
        try:
            # Not run_command, which can lose output: see above.
            status = subprocess.call(  # pylint: disable=ansible-bad-function
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**os.environ, **(environment or {})},
                timeout=seconds,
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT), command[0]) from error
        output.seek(0)
        errors.seek(0)
        return status, output.read().decode("utf-8", "replace"), errors.read().decode("utf-8", "replace")
