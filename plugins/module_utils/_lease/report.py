# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules for Leases and lock files have in common: parameters, and results of verdicts."""

from __future__ import annotations

from typing import Any, Mapping

from .decide import REFUSE, TAKE_OVER, Verdict, describe_refusal, describe_take_over

REQUEST_ARGUMENTS: dict[str, Any] = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "seconds": {"type": "int", "default": 7200},
    "take_over": {"type": "bool", "default": False},
    "holder": {"type": "str", "default": ""},
    "ended": {"type": "list", "elements": "str", "default": []},
}


def list_refused(verdicts: Mapping[str, Verdict], subjects: Mapping[str, str]) -> list[dict[str, str]]:
    """Return name, holder and reason of each lease of another run; *subjects* are what the leases are for, by name."""
    return [
        {
            "name": name,
            "holder": verdict.before.holder,
            "reason": describe_refusal(subjects[name], verdict.before),
        }
        for name, verdict in verdicts.items()
        if verdict.action == REFUSE and verdict.before
    ]


def describe_take_overs(verdicts: Mapping[str, Verdict], subjects: Mapping[str, str]) -> list[str]:
    """Return a sentence for each lease that was taken over."""
    return [
        describe_take_over(subjects[name], verdict.before)
        for name, verdict in verdicts.items()
        if verdict.action == TAKE_OVER and verdict.before
    ]
