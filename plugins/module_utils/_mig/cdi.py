# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CDI specifications of the node. They name MIG devices by UUID, and runtimes refuse others: ``unresolvable CDI devices``."""

from __future__ import annotations

from typing import Callable, Sequence, Tuple

from .._config import files

Run = Callable[[Sequence[str]], Tuple[int, str, str]]


class CdiError(Exception):
    """A specification cannot be generated; the text is a clause."""


def refresh(paths: Sequence[str], command: Sequence[str], run: Run, check_mode: bool = False) -> list[str]:
    """Generate those of the specifications that exist, and return those that differed. Raises CdiError or FilesError.

    The *command* prints a specification. Where no specification exists, nothing on the node uses CDI, or generates it for each container.
    """
    changed = []
    for path in paths:
        former = files.read_bytes(path)
        if former is None:
            continue
        desired = _generate([*command, f"--format={'json' if path.endswith('.json') else 'yaml'}"], path, run)
        if desired != former:
            changed.append(path)
            if not check_mode:
                files.write_atomic(path, desired)
    return changed


def _generate(command: Sequence[str], path: str, run: Run) -> bytes:
    try:
        status, output, errors = run(command)
    except OSError as error:
        raise CdiError(
            f"{path} cannot be generated, because {command[0]} does not start ({error.strerror}); install nvidia-container-toolkit,"
            " or remove the specification"
        ) from None
    if status or not output.strip():
        words = " ".join(errors.split()[-30:])
        raise CdiError(
            f"{' '.join(command)} failed ({words or f'exit status {status}'}), so {path} is that of the former layout; run again"
        )
    return output.encode("utf-8")
