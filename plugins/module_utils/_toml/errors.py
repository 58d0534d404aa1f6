# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one exception of this package."""

from __future__ import annotations

from .._document import DocumentError, position


class TomlError(DocumentError):
    """What is wrong with a document or a value in TOML, and where."""


def error_at(text: str, offset: int, message: str) -> TomlError:
    """Make a TomlError for character ``offset`` of ``text``."""
    return TomlError(message, *position(text, offset))
