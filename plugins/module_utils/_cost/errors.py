# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The error of this package."""

from __future__ import annotations

from .._kube_error import SentenceError


class CostError(SentenceError):
    """The hours cannot be computed; the text is one sentence with cause and remedy."""
