# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of files share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fsync return at once, but fail for a file that is not open: no test can cut the power, and a disk is slow."""
    monkeypatch.setattr(os, "fsync", os.fstat)
