# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""pytest plugin: a JUnit file of its own for each pytest run of a gate that starts pytest more than once.

Molecule's verifier is such a gate. ``GATES_REPORT=molecule-default`` and ``PYTEST_PLUGINS=gates.pytest_report`` make the runs leave
build/reports/molecule-default-1.xml, -2.xml and so on.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPORTS = Path(__file__).resolve().parents[2] / "build" / "reports"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Name the report before pytest's own plugin reads the option."""
    name = os.environ.get("GATES_REPORT")
    if name and not config.option.xmlpath and not hasattr(config, "workerinput"):
        REPORTS.mkdir(parents=True, exist_ok=True)
        config.option.xmlpath = str(REPORTS / f"{name}-{len(list(REPORTS.glob(f'{name}-*.xml'))) + 1}.xml")
