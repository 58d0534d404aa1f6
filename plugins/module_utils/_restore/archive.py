# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive that the timer starts: the script, and the files of this collection that it imports."""

from __future__ import annotations

from .. import _commands, _program
from .._config import files
from . import script


def build_archive() -> bytes:
    """Return the archive; equal for equal sources."""
    return _program.build_archive(script, (_commands, files))
