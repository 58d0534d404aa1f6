# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How hard the tests search: once in full, in the gate `units`; the matrix and the Pythons of nodes look for what differs there."""

from __future__ import annotations

import os
import sys
import typing as t

import pytest

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default" if sys.version_info >= (3, 11) else "quick")

T = t.TypeVar("T")


def sample(values: t.Sequence[T], number: int) -> list[T]:
    """All *values*; in a quick run every fourth, from another one on for each *number*."""
    return list(values[number % 4 :: 4] if PROFILE == "quick" else values)


def in_full(reason: str) -> pytest.MarkDecorator:
    """Mark a test that a quick run leaves out, and say why."""
    return pytest.mark.skipif(PROFILE == "quick", reason=reason)
