# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one exception of this package, and how deep a document may nest."""

from __future__ import annotations

from .._document import DocumentError, position

# Levels of arrays and tables: far beyond any configuration, and well within Python's own stack.
MAX_DEPTH = 100
TOO_DEEP = "the document is nested too deeply"


class TomlError(DocumentError):
    """What is wrong with a document or a value in TOML, and where."""


def error_at(text: str, offset: int, message: str) -> TomlError:
    """Make a TomlError for character ``offset`` of ``text``."""
    return TomlError(message, *position(text, offset))
