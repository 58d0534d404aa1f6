# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exception of this package, and of those that describe daemons with it."""

from __future__ import annotations


class ConfigError(Exception):
    """A configuration cannot be read, edited, validated or undone; the message is one sentence with cause and remedy."""
