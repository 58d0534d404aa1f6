# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How deep a document may nest."""

from __future__ import annotations

# Levels of arrays and tables: far beyond any configuration, and well within Python's own stack.
MAX_DEPTH = 100
TOO_DEEP = "the document is nested too deeply"
