# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks a situation by the tables: what is known not to work stops; what is not known to work, or not advisable, warns."""

from __future__ import annotations

from typing import Any, Mapping

from . import cuda, driver, toolkit
from .gpus import choose_modules, choose_open_modules, find_branches
from .situation import STOP, read_situation
from .tables import Tables

CHECKS = (
    driver.check_gpus,
    driver.check_modules,
    cuda.check_driver,
    cuda.check_gpus,
    driver.check_kernel,
    driver.check_security,
    driver.check_support,
    toolkit.check_toolkit,
)


def check_compatibility(situation: Mapping[str, Any], tables: Mapping[str, Any], today: str) -> dict[str, Any]:
    """The findings on a situation in a month (``2026-05``), and the drivers for its GPUs.

    *situation* has any of the fields of situation.Situation; *tables* are those of tables.PARTS. The result has ``findings`` (those
    that stop first), ``kernel_modules``, ``open_kernel_modules`` and ``driver_branches``, as in gpus. Raises CompatibilityError.
    """
    known = Tables(tables)
    host = read_situation(situation, known, today)
    found = [finding for check in CHECKS for finding in check(host, known)]
    found.sort(key=lambda finding: finding.level != STOP)
    return {
        "findings": [finding._asdict() for finding in found],
        "kernel_modules": choose_modules(host.gpus),
        "open_kernel_modules": choose_open_modules(host.gpus),
        "driver_branches": find_branches(host.gpus),
    }
