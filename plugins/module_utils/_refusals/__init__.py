# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles refuse or warn of before any change: a sentence with cause and remedy for each reason."""

from __future__ import annotations

from typing import Any, Mapping

from . import hosts, sharing

CHECKS = {**hosts.CHECKS, **sharing.CHECKS}


def find_refusals(subjects: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the sentences on each of the subjects in their order. Raises KeyError for an unknown subject or a missing fact."""
    return [sentence for subject, facts in subjects.items() for sentence in CHECKS[subject](facts)]
