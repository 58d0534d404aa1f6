# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that are too long."""

from __future__ import annotations

import pytest
from gates import lengths


@pytest.mark.parametrize(("statements", "named"), [(49, False), (50, True)])
@pytest.mark.parametrize("head", ["def run():\n", "class A:\n  async def run(self):\n"])
def test_lengths_report_a_function_with_more_than_50_lines(tmp_path, monkeypatch, head, statements, named):
    monkeypatch.setattr(lengths, "ROOT", tmp_path)
    path = tmp_path / "plugins" / "filter" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(head + "    pass\n" * statements)
    assert bool(list(lengths.find_long_functions())) is named
