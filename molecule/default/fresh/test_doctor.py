# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The doctor on a cluster that this collection did not build: it only reads, and one missing part is one cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_doctor_finds_the_missing_toolkit_and_changes_nothing(
    run_doctor: Callable[..., Any], fingerprint: Callable[[], dict[str, str]]
) -> None:
    before = fingerprint()
    causes, report = run_doctor()
    assert causes == [("tk.binary", "fail", ["molecule-worker-1", "molecule-worker-2"])]
    assert report["exit_code"] == 2
    assert fingerprint() == before
