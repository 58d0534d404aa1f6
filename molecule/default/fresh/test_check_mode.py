# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a fresh cluster, check mode reports the changes and makes none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def test_check_mode_reports_changes_and_makes_none(
    playbook: Callable[..., Any], fingerprint: Callable[[], dict[str, str]]
) -> None:
    before = fingerprint()
    code, recap, printed = playbook("site", "--check", "--diff")
    assert code == 0, printed
    assert {name: counts["changed"] > 0 for name, counts in recap.items() if "worker" in name} == {
        "molecule-worker-1": True,
        "molecule-worker-2": True,
    }, printed
    assert fingerprint() == before
