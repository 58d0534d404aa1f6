# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was promised of speed holds, by the ratio of what is measured in one run."""

from __future__ import annotations

import statistics

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")

from bench.nvml_facts import MOST, measure


def test_nvml_facts_is_hardly_slower_than_a_ping(tmp_path):
    """Once in three times: tests beside it take the processors from now the one, now the other."""
    ratios = []
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        times = measure(9, folder)
        ratios.append(statistics.median(times["nvml_facts"]) / statistics.median(times["ping"]))
        if ratios[-1] <= MOST:
            return
    raise AssertionError(f"nvml_facts took {ratios} times as long as a ping")
