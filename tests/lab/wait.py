# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait of all tests: poll, and report the last value. Runs on Python 3.8, too."""

from __future__ import annotations

import time
import typing as t

T = t.TypeVar("T")
LIMIT = 300  # seconds; a limit is for what hangs, not for what is slow


def poll(read: t.Callable[[], T], accept: t.Callable[[T], object], seconds: float, pause: float) -> T:
    """Call *read* until *accept* holds for its value or *seconds* have passed, and return the value last read."""
    end = time.monotonic() + seconds
    while True:
        value = read()
        if accept(value) or time.monotonic() > end:
            return value
        time.sleep(pause)


def until(
    read: t.Callable[[], T], accept: t.Callable[[T], object] = bool, *, seconds: float = LIMIT, pause: float = 0.5
) -> T:
    """Call *read* until *accept* holds for its value, and return that value.

    Raises AssertionError with the value last read when *seconds* have passed; the message is what a failed test shows.
    """
    value = poll(read, accept, seconds, pause)
    if not accept(value):
        raise AssertionError(f"waited {seconds:.0f} s; last value: {value!r}")
    return value
