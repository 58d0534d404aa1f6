# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times as seconds since 1970 in UTC, so that a change to or from summer time adds or removes no hour."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from .errors import CostError

HOUR, DAY = 3600, 86400
_SECONDS = {"s": 1, "m": 60, "h": HOUR, "d": DAY, "w": 7 * DAY}
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_duration(text: str, name: str) -> int:
    """Return the seconds of a duration such as ``5m`` or ``30d``. Raises CostError, which names the option *name*."""
    found = _DURATION.fullmatch(text.strip())
    seconds = int(found.group(1)) * _SECONDS[found.group(2)] if found else 0
    if not seconds:
        raise CostError(f"{name} is {text!r}; write a number with s, m, h, d or w, such as 5m or 30d.")
    return seconds


def parse_time(text: str, name: str) -> int:
    """Return the seconds of an ISO 8601 time; a date is its midnight in UTC. Raises CostError, which names the option *name*."""
    given = text.strip()
    try:
        found = datetime.fromisoformat(re.sub(r"[Zz]\Z", "+00:00", given))
    except ValueError:
        found = None
    if found is not None and found.tzinfo is None and _DATE.fullmatch(given):
        found = found.replace(tzinfo=timezone.utc)
    if found is None or found.tzinfo is None:
        raise CostError(
            f"{name} is {text!r}; write a date, or a time with its offset from UTC, such as 2026-11-01T00:00:00Z."
        )
    return int(found.timestamp())


def format_time(seconds: float) -> str:
    """Return the time in UTC, such as ``2026-11-01T00:00:00Z``."""
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def select_window(start: str, end: str, window: str, now: float) -> tuple[int, int]:
    """Return the first and the last second of the report: *window* before *end*, unless *start* is given. Raises CostError."""
    last = min(parse_time(end, "end"), int(now)) if end else int(now)
    first = parse_time(start, "start") if start else last - parse_duration(window, "window")
    if first >= last:
        raise CostError(
            f"The report would end at {format_time(last)} and begin at {format_time(first)}; correct start or end."
        )
    return first, last
