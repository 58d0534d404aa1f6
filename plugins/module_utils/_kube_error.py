# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors whose text is one sentence: of a call to the API server, and of what nodes and pods have."""

from __future__ import annotations

from typing import Any, Mapping

from ._text import make_printable

MAX_LENGTH = 300

# The key in ``ApiError.causes`` of a right that the account lacks; the API server sets the other keys.
MISSING_RIGHT = "MissingRight"


# The API server cannot be reached, is busy or starts; a retry may succeed.
_TRANSIENT = frozenset({0, 429, 500, 502, 503, 504})


class SentenceError(Exception):
    """An error whose text is one sentence. Names and reasons in it may come from nodes, so it is made printable."""

    def __init__(self, message: str) -> None:
        super().__init__(make_printable(message))


class ApiError(SentenceError):
    """A call failed; the text is one sentence with server, cause and remedy, ``status`` the HTTP status or 0.

    ``causes`` has the causes that the API server reports, such as ``DisruptionBudget``, with the message of each.
    """

    def __init__(self, message: str, status: int = 0, causes: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.causes = dict(causes or {})

    @property
    def is_transient(self) -> bool:
        """Return whether a retry of the call may succeed."""
        return self.status in _TRANSIENT


def shorten(text: Any) -> str:
    """Return the text on one line of at most MAX_LENGTH printable characters."""
    folded = make_printable(" ".join(str(text or "").split()))
    return folded if len(folded) <= MAX_LENGTH else folded[: MAX_LENGTH - 1] + "…"
