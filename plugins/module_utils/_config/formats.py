# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The syntaxes of configuration files that modules edit on nodes."""

from __future__ import annotations

from .. import _toml
from .._document import Format
from . import json_document

TOML = Format("TOML", "a table", _toml.Document.from_bytes, _toml.loads, _toml.dumps)
JSON = Format("JSON", "an object", json_document.Document.from_bytes, json_document.loads, json_document.dumps)
