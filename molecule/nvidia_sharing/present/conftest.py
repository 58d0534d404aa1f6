# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of all tests of this scenario."""

from __future__ import annotations

from typing import Any

import pytest
from lab import fingerprint as prints
from lab.strategies import FIRST, Run, write_words


@pytest.fixture(scope="module", autouse=True)
def before(settings: Any) -> dict[str, str]:
    """Nodes and cluster as they are before the first test."""
    return prints.take(settings)


@pytest.fixture
def share(playbook: Any, watch_owners: Any) -> Run:
    """Run share_gpus with variables by node: exit code, count of changes, output in one line. At no time two plugins own the GPUs of a node."""

    def run(
        first: dict[str, Any],
        second: dict[str, Any],
        name: str = "share_gpus",
        words: Any = (),
        at: Any = None,
        **more: Any,
    ) -> tuple[int, int, str]:
        with watch_owners(FIRST):
            code, recap, printed = playbook(name, *words, *write_words(first, second, **more), at=at)
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(printed.split())

    return run
