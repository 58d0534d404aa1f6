# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changelog that the built collection has before its first release."""

from __future__ import annotations

from gates.changelog import render

CONFIG = {"title": "a.b", "sections": [["minor_changes", "Minor changes"], ["known_issues", "Known issues"]]}


def test_render_of_fragments_lists_notes_by_section() -> None:
    fragments = [
        {"release_summary": "First.", "known_issues": ["one"]},
        {"minor_changes": ["role - adds ``x``,\n  and more."], "known_issues": ["two"]},
    ]
    assert render(fragments, CONFIG, "0.1.0").splitlines() == [
        "# a.b Release Notes",
        "",
        "## v0.1.0 (not released yet)",
        "",
        "First.",
        "",
        "### Minor changes",
        "",
        "- role - adds `x`, and more.",
        "",
        "### Known issues",
        "",
        "- one",
        "- two",
    ]
