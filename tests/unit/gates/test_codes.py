# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of codes has each problem that the report can have."""

from __future__ import annotations

import re

from gates import codes

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import checks

# As checks.py writes them: of a check of a host, and of a problem of the cluster.
WRITTEN = re.compile(r'yield \(?\s*"([a-z_]+)",|_build_problem\(\s*"",\s*\(\s*"([a-z_]+)",|finding = \("([a-z_]+)",')


def test_table_has_each_code_of_the_report() -> None:
    text = (codes.ROOT / "plugins" / "module_utils" / "_report" / "checks.py").read_text(encoding="utf-8")
    written = {code for groups in WRITTEN.findall(text) for code in groups if code}
    assert {"driver_missing", "api", "unreachable", "runtime_class"} <= written
    assert written <= {row[0].strip("`") for row in codes.list_problems()}
    assert checks.HOST_CHECKS


def test_cells_cannot_end_a_cell() -> None:
    assert codes.render_table("T", "", ["A"], [["a|b"]]).splitlines()[-1] == "| a\\|b |"
