# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate warns of compatibility tables whose last comparison with their sources is half a year old."""

from __future__ import annotations

import datetime

import pytest
from gates.tables import compare

DAY = datetime.date(2026, 11, 26)


@pytest.mark.parametrize(
    ("text", "later", "problems", "warnings"),
    [
        ("---\n# Compared with its sources on 2026-11-26.\n", 180, 0, 0),
        ("---\n# Compared with its sources on 2026-11-26.\n", 181, 0, 1),
        ("---\n# Nothing\n", 0, 1, 0),
    ],
)
def test_compare_of_old_table_warns_and_without_date_fails(text: str, later: int, problems: int, warnings: int) -> None:
    found = compare({"a.yml": text}, DAY + datetime.timedelta(days=later))
    assert [len(each) for each in found] == [problems, warnings]
