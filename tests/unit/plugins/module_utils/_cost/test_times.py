# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times and durations; the time zone of the controller and its summer time change nothing."""

from __future__ import annotations

import time

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import times
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.errors import CostError

NOVEMBER = 1793491200  # 2026-11-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("5m", 300), ("12h", 43200), ("1d", 86400), ("2w", 14 * 86400), (" 1d ", 86400)]
)
def test_parse_duration(text: str, seconds: int) -> None:
    assert times.parse_duration(text, "window") == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "0m", "1.5h", "-1d", "1d12h", "1 d", "1M", "9999999999s", "\N{ARABIC-INDIC DIGIT ONE}d"]
)
def test_parse_duration_of_other_text_fails(text: str) -> None:
    with pytest.raises(CostError, match=r"window is .* such as 5m"):
        times.parse_duration(text, "window")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-01", NOVEMBER),
        ("2026-11-01T00:00:00Z", NOVEMBER),
        ("2026-11-01T01:00:00+01:00", NOVEMBER),
        ("2026-10-31 20:00:00-04:00", NOVEMBER),
        ("2026-11-01T00:00:00.900000+00:00", NOVEMBER),
    ],
)
def test_parse_time(text: str, seconds: int) -> None:
    assert times.parse_time(text, "start") == seconds


@pytest.mark.parametrize(
    "text", ["", "now", "2026-11-01T00:00:00", "2026-13-01", "2026-11-01T00:00:00 CET", "1793491200"]
)
def test_parse_time_without_offset_fails(text: str) -> None:
    with pytest.raises(CostError, match=r"start is .* offset from UTC"):
        times.parse_time(text, "start")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Shanghai"])
def test_day_of_the_change_from_summer_time_has_24_hours(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        start, end = times.select_window("2026-10-25", "2026-10-26", "", NOVEMBER)
        assert end - start == 24 * 3600
        assert times.format_time(start) == "2026-10-25T00:00:00Z"
        # With offsets of its own time zone, that day has 25 hours in Berlin.
        start, end = times.select_window("2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "", NOVEMBER)
        assert end - start == 25 * 3600
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("start", "end", "window", "expected"),
    [
        ("", "", "1d", (NOVEMBER - 86400, NOVEMBER)),
        ("", "2026-10-31", "12h", (NOVEMBER - 86400 - 43200, NOVEMBER - 86400)),
        ("2026-10-01", "2026-10-31", "12h", (NOVEMBER - 31 * 86400, NOVEMBER - 86400)),
        # The future has no hours.
        ("2026-10-31", "2027-01-01", "1d", (NOVEMBER - 86400, NOVEMBER)),
    ],
)
def test_select_window(start: str, end: str, window: str, expected: tuple[int, int]) -> None:
    assert times.select_window(start, end, window, NOVEMBER + 0.7) == expected


@pytest.mark.parametrize(("start", "end"), [("2026-10-31", "2026-10-31"), ("2026-11-02", "")])
def test_select_window_without_time_fails(start: str, end: str) -> None:
    with pytest.raises(CostError, match="correct start or end"):
        times.select_window(start, end, "1d", NOVEMBER)
