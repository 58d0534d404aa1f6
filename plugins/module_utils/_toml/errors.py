# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one exception of this package."""

from __future__ import annotations


class TomlError(ValueError):
    """What is wrong, and where: ``message`` (no position), ``line`` and ``column`` (from 1; None when not about a place)."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        self.message = message
        self.line = line
        self.column = column
        place = "" if line is None else f" (line {line}, column {column})"
        super().__init__(message + place)


def error_at(text: str, offset: int, message: str) -> TomlError:
    """Make a TomlError for character ``offset`` of ``text``."""
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return TomlError(message, line, column)
