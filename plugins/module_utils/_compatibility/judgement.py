# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a situation and the tables to findings: what is known not to work stops, what is not known to work or not advisable warns."""

from __future__ import annotations

from typing import Any, Mapping

from . import cuda, driver, toolkit
from .gpus import driver_branches, kernel_modules, open_kernel_modules
from .situation import STOP, read
from .tables import Tables

JUDGES = (
    driver.for_gpus,
    driver.modules,
    cuda.with_driver,
    cuda.for_gpus,
    driver.for_kernel,
    driver.security,
    driver.support,
    toolkit.judge,
)


def judge(situation: Mapping[str, Any], tables: Mapping[str, Any], today: str) -> dict[str, Any]:
    """What is wrong with a situation, in a month (``2026-05``), and what would suit its GPUs.

    *situation* has any of ``driver``, ``flavor``, ``cuda``, ``kernel``, ``toolkit``, ``running`` and ``gpus``, as situation.Situation
    tells; *tables* are those of tables.PARTS. The result has ``findings`` (those that stop first), ``kernel_modules``,
    ``open_kernel_modules`` and ``driver_branches``, as gpus tells. Raises CompatibilityError.
    """
    known = Tables(tables)
    asked = read(situation, known, today)
    found = [finding for judge_one in JUDGES for finding in judge_one(asked, known)]
    found.sort(key=lambda finding: finding.level != STOP)
    return {
        "findings": [finding._asdict() for finding in found],
        "kernel_modules": kernel_modules(asked.gpus),
        "open_kernel_modules": open_kernel_modules(asked.gpus),
        "driver_branches": driver_branches(asked.gpus),
    }
