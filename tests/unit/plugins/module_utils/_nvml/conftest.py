# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workshop for simulated GPUs, built once per run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

TESTS = str(Path(__file__).resolve().parents[4])
if TESTS not in sys.path:
    sys.path.append(TESTS)

if TYPE_CHECKING:
    from fakes.nvml.simulated import Workshop


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    if shutil.which("gcc") is None or shutil.which("make") is None:
        pytest.skip("the simulated NVML library needs gcc and make")
    from fakes.nvml.simulated import Workshop

    return Workshop(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(autouse=True)
def _own_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVML_PROFILE", raising=False)
