# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions and expressions that are too long."""

from __future__ import annotations

import pytest
from gates import lengths


@pytest.mark.parametrize(("statements", "named"), [(49, False), (50, True)])
@pytest.mark.parametrize("head", ["def run():\n", "class A:\n  async def run(self):\n"])
def test_lengths_report_a_function_with_more_than_50_lines(tmp_path, monkeypatch, head, statements, named):
    monkeypatch.setattr(lengths, "ROOT", tmp_path)
    path = tmp_path / "plugins" / "filter" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(head + "    pass\n" * statements)
    assert bool(list(lengths.find_long_functions())) is named


@pytest.mark.parametrize(
    ("name", "text", "problems"),
    [
        ("a.yml", "a: \"{{ x | map('a') | select | unique }}\"", 0),
        ("a.yml", "a: \"{{ x | map('a') | select | unique | sort }}\"", 1),
        ("a.yml", "a: \"{{ x | default([]) | map('a') | select | unique | list | length }}\"", 0),
        ("a.yml", "a: [{b: \"{{ f(x | map('a') | select, y | map('b') | select) }} {{ x | first }}\"}]", 1),
        ("a.yml", "- when: x | map('a') | select | unique | sort == y", 1),
        ("a.yml", "- that: [x | map('a') | select == y | map('b') | select]", 1),
        ("a.yml", "a: x | map('a') | select | unique | sort", 0),
        ("a.yml", "a: !unsafe '{{ nvidia.com/gpu.* }}'", 0),
        ("a.j2", "{% for i in x | map('a') | select | unique | sort %}{{ i | b | c | d | e }}{% endfor %}", 2),
        ("a.j2", "{% if x | a | b | c | d %}{% set y = x | a | b | c | d %}{% endif %}", 2),
    ],
)
def test_lengths_report_an_expression_with_more_than_three_filters(tmp_path, monkeypatch, name, text, problems):
    monkeypatch.setattr(lengths, "ROOT", tmp_path)
    path = tmp_path / "roles" / "r" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert len(list(lengths.find_long_expressions())) == problems
