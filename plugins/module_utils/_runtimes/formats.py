# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The syntaxes of configuration files.  Private to this collection."""

from __future__ import annotations

from .. import _json, _toml
from .._document import Format

TOML = Format("TOML", "a table", _toml.Document.from_bytes, _toml.loads, _toml.dumps)
JSON = Format("JSON", "an object", _json.Document.from_bytes, _json.loads, _json.dumps)
