# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated GPUs are those of the test, for any profile in the environment."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVML_PROFILE", raising=False)
