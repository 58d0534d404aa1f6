# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from fractions import Fraction

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.quantities import format_amount, parse_quantity


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("00", 0),
        ("+1", 1),
        ("-1", -1),
        ("500m", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("1.", 1),
        ("1.5Gi", 3 << 29),
        ("-1Ki", -1024),
        ("1k", 1000),
        ("1E", 10**18),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1e-3", Fraction(1, 1000)),
        ("5n", Fraction(5, 10**9)),
        ("7u", Fraction(7, 10**6)),
    ],
)
def test_parse_quantity_is_exact(text: str, amount: Fraction) -> None:
    assert parse_quantity(text) == amount


def test_parse_quantity_knows_each_suffix() -> None:
    for power, suffix in enumerate("kMGTPE", 1):
        assert parse_quantity(f"3{suffix}") == 3 * 1000**power, suffix
    for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1):
        assert parse_quantity(f"3{suffix}") == 3 * 1024**power, suffix
    for power, suffix in enumerate("mun", 1):
        assert parse_quantity(f"3{suffix}") == Fraction(3, 1000**power), suffix


@pytest.mark.parametrize(
    "text", ["", "+", ".", "Gi", "1gb", "1 Gi", " 1", "1K", "1mi", "1e", "0x1", "1,5", "1_0", "٣", "nan", "10%"]
)
def test_parse_quantity_of_other_text_raises(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("amount", "resource", "words"),
    [
        ("1500m", "cpu", "1.5"),
        ("8", "cpu", "8"),
        ("1100", "pid", "1100"),
        ("32865216Ki", "memory", "31.34Gi"),
        ("512Mi", "memory", "512Mi"),
        ("10", "memory", "10"),
        ("0", "ephemeral-storage", "0"),
    ],
)
def test_format_amount_selects_unit(amount: str, resource: str, words: str) -> None:
    assert format_amount(parse_quantity(amount), resource) == words
