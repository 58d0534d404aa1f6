# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a query of a container runtime may raise."""

from __future__ import annotations


class QueryError(Exception):
    """The container runtime gave no usable answer. ``remedy`` is empty if its log has the cause."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class CriMissingError(QueryError):
    """The container runtime runs, but does not serve the Container Runtime Interface (CRI)."""


class ClientError(Exception):
    """A client program is missing or unusable; the state of the container runtime is unknown."""
