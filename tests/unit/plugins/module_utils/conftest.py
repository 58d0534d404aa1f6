# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fixture for tests that write files."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _skip_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace fsync, which is slow, by a check that the file is open."""
    monkeypatch.setattr(os, "fsync", os.fstat)
