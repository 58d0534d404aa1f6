# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that applies the layout at boot: the script, and the files of this collection that it imports."""

from __future__ import annotations

from .. import _commands, _program
from .._config import files
from .._driver import users
from .._nvml import details, device, isolation, library, mig, model, partitions, vgpu
from . import apply, boot, cdi, holders, layout, plan, record

IMPORTS = (_commands, files, users, details, device, isolation, library, mig, model, partitions, vgpu)


def build_program() -> bytes:
    """Return the archive; equal for equal sources."""
    return _program.build_archive(boot, (*IMPORTS, apply, cdi, holders, layout, plan, record))
