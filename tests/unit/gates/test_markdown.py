# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guides as Markdown keep text, code, tables and links; what a page cannot show is an error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gates import _markdown, translations

ROOT = Path(__file__).resolve().parents[3]
LABELS = {"a": ("guide_a", "A page"), "q": ("guide_quickstart", "Quick start")}


def convert(text: str) -> str:
    return _markdown.convert(text, LABELS).removeprefix(_markdown.HEAD).rstrip("\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".. _x:\n\n.. A comment\n\nT\n=\n\n.. contents::\n   :local:\n\na\n\nU\n-\n\nb\n", "# T\n\na\n\n## U\n\nb"),
        ("*a*\nand ``b|c``, **d**, 3*4 < 5", "*a* and `b\\|c`, **d**, 3\\*4 \\< 5"),
        (
            ":ref:`a`, :ref:`this\none <a>`, :ref:`q`",
            "[A page](docsite/rst/guide_a.rst), [this one](docsite/rst/guide_a.rst), [Quick start](quickstart.md)",
        ),
        (".. code-block:: console\n\n    $ a | b\n\n    $ c\n", "```console\n$ a | b\n\n$ c\n```"),
        ("* a\n* b\n", "- a\n- b"),
        ("#. a\n\n   .. code-block:: yaml\n\n       k: 1\n\n#. b\n", "1. a\n\n   ```yaml\n   k: 1\n   ```\n\n2. b"),
        (
            ".. list-table::\n    :header-rows: 1\n\n    * - H\n      - I\n    * - ``a``\n      - :ref:`a`\n",
            "| H | I |\n| --- | --- |\n| `a` | [A page](docsite/rst/guide_a.rst) |",
        ),
    ],
)
def test_convert(text: str, expected: str) -> None:
    assert convert(text) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (":ref:`nowhere`", KeyError),
        ("term\n  text\n", ValueError),
        (":doc:`a`", ValueError),
        (".. image:: a.svg\n", ValueError),
    ],
)
def test_convert_of_what_a_page_cannot_show_is_an_error(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        convert(text)


def test_pages_have_the_code_and_the_names_of_their_guides_and_links_that_exist(tmp_path: Path) -> None:
    (tmp_path / "docs" / "docsite").mkdir(parents=True)
    (tmp_path / _markdown.GUIDES).symlink_to(ROOT / _markdown.GUIDES)
    _markdown.write_pages(tmp_path)
    for stem, name in _markdown.PAGES.items():
        page, guide = tmp_path / "docs" / name, ROOT / _markdown.GUIDES / f"{stem}.rst"
        text = page.read_text(encoding="utf-8")
        assert re.findall(
            r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE
        ) == _markdown.TITLE.findall(guide.read_text(encoding="utf-8"))
        assert translations.read_names(page)
        assert ":ref:" not in text
        assert "``" not in text.replace("```", "")
        assert [
            line.strip()
            for block in re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)
            for line in block.splitlines()
            if line.strip()
        ] == [line.strip() for line in translations.read_code(guide)]
        assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not (tmp_path / "docs" / link).is_file()] == []
