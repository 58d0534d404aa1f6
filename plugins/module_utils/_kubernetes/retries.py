# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Retries calls to an API server that is busy or does not answer, with growing pauses, until a time limit."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Callable, TypeVar

from .._kube_error import ApiError

# Seconds of retries for an API server that does not answer, or for a node that others change.
API_SECONDS = 60
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 10.0

Result = TypeVar("Result")


@dataclass(frozen=True)
class Timing:
    """The clocks, which tests replace: seconds, and the time of day."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = field(default=lambda: datetime.now(timezone.utc))


class Wait:
    """A time limit in seconds, with pauses that grow from *first* to *longest*."""

    def __init__(
        self, timing: Timing, seconds: float, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE
    ) -> None:
        self._timing = timing
        self._deadline = timing.clock() + seconds
        self._pause, self._longest = first, longest

    @property
    def left(self) -> float:
        """Return the seconds until the limit; negative after it."""
        return self._deadline - self._timing.clock()

    @property
    def over(self) -> bool:
        """Return whether the limit is reached."""
        return self.left <= 0

    def pause(self) -> None:
        """Sleep, at most until the limit."""
        self._timing.sleep(max(0.0, min(self._pause, self.left)))
        self._pause = min(self._pause * 2, self._longest)


def share_limit(timing: Timing, seconds: float = API_SECONDS) -> Callable[[], Wait]:
    """Return a function that starts a wait, for calls that together have this many seconds for their retries."""
    limit = Wait(timing, seconds)
    return lambda: Wait(timing, max(0.0, limit.left))


def retry(call: Callable[[], Result], wait: Wait) -> Result:
    """Return the result of the call; repeat it while a retry may succeed and the time is not over. Raises its last ApiError."""
    while True:
        try:
            return call()
        except ApiError as error:
            if wait.over or not error.is_transient:
                raise
        wait.pause()
