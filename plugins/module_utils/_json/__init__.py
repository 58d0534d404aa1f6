# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lossless JSON (RFC 8259) with the face of `_toml`: read, locate, edit, verify, with nothing but the standard library.

``Document`` edits only the lines concerned and re-reads every result; ``loads`` and ``dumps`` are for plain data.
Every function raises ``JsonError`` and nothing else for what is wrong with a document or a value.
"""

from __future__ import annotations

from .document import Document
from .errors import JsonError
from .reader import loads
from .writer import dumps

__all__ = ["Document", "JsonError", "dumps", "loads"]
