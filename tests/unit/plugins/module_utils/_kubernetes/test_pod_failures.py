# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.pod_failures import find_error_line
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubernetes.plugin_pods import TRACE


def test_find_error_line_of_a_long_line_returns() -> None:
    """The pattern of a stack trace must not backtrack exponentially."""
    assert find_error_line("a." * 100000).startswith("a.a.")


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("one\ntwo\n", "two"),
        ("error: a\nall fine", "error: a"),
        ("error: no answer of http://me:opensesame@p", "error: no answer of http://********@p"),
        ("2026-01-01T10:00:00.1Z error x", "error x"),
        ("E1121 11:00:00.1 1 a.go:1] b\nFailed to initialize NVML: x\nerror exit", "Failed to initialize NVML: x"),
        ("x" * 400, "x" * 299 + "…"),
        (f"I1121 11:00:00.1 1 a.go:1] Loading NVML\npanic: no map\n\n{TRACE}", "panic: no map"),
        (f"SIGSEGV: segmentation violation\n{TRACE}", "SIGSEGV: segmentation violation"),
        (TRACE, ""),
    ],
)
def test_find_error_line_of_each_log(log: str, line: str) -> None:
    assert find_error_line(log) == line
