# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a finished cluster the whole path changes nothing more, and the report agrees with the cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

# a report of fewer hosts is another report, so its file would change
LIMITED = ("--limit", "molecule-worker-2", "--skip-tags", "verify")


@pytest.mark.parametrize("mode", [(), ("--check", "--diff"), LIMITED], ids=["run", "check", "limit"])
def test_nothing_is_left_to_change(playbook: Callable[..., Any], mode: tuple[str, ...]) -> None:
    code, recap, said = playbook("site", *mode)
    assert code == 0, said
    assert recap
    assert all(counts["changed"] == 0 for counts in recap.values()), said


def test_report_is_readable_by_machines(inventory: dict[str, Any], playbook: Callable[..., Any]) -> None:
    code, _recap, said = playbook("verify_gpu_cluster")
    assert code == 0, said
    with open(inventory["all"]["vars"]["gpu_verify_report_path"], encoding="utf-8") as file:
        report = json.load(file)
    assert [node["node"] for node in report["nodes"]] == ["molecule-worker-1", "molecule-worker-2"]
    assert report["problems"] == []
    assert "simulated" in str(report["notes"])
