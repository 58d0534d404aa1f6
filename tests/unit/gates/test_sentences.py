# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate on the sentences of the guides counts the words that a reader reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from gates.sentences import LIMIT, find_problems, read_guides, read_sentences

LONG = " ".join(["word"] * (LIMIT + 1))
CELL = ".. list-table::\n\n    * - {0}\n      - b"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("One two. Three four five!", [2, 3]),
        ("One (two three). Four\nfive six", [3, 3]),
        ("From 1.18 on, 16 pods and 48.", [4]),
        ("Set ``a: b. C d`` here, or :ref:`one two <label>`.", [5]),
        ("One; two three.", [3]),
        ("* one two\n* three\n\n  four five six", [2, 1, 3]),
        ("``term``\n    One two. Three.", [2, 1]),
        (".. code-block:: text\n\n    One two three.", []),
        ("..\n  A comment of five words.\n\nOne.", [1]),
        (CELL.format("one two; three"), [2, 1, 1]),
        (".. image:: a.svg\n   :alt: One two three.", []),
        (".. toctree::\n\n    a b c", []),
    ],
)
def test_sentences_of_text_have_counted_words(text: str, words: list[int]) -> None:
    assert [sentence.words for sentence in read_sentences(text)] == words


def test_sentence_has_line_where_it_begins() -> None:
    text = f"Title\n=====\n\nOne two.\nThree\nfour. {LONG}.\n\n* {LONG}."
    found = [sentence for sentence in read_sentences(text) if sentence.words > LIMIT]
    assert [sentence.line for sentence in found] == [6, 8]
    assert found[0].describe("guide_a.rst").startswith(f"guide_a.rst:6: {LIMIT + 1} words: word word")


def test_each_long_sentence_of_each_guide_is_a_problem() -> None:
    texts = {"guide_b.rst": f"{LONG}. One. {LONG}.", "guide_a.rst": f"{LONG}.", "guide_c.rst": "One."}
    names = [problem.partition(":")[0] for problem in find_problems(texts)]
    assert names == ["guide_a.rst", "guide_b.rst", "guide_b.rst"]


def test_guides_in_other_languages_are_left_out(tmp_path: Path) -> None:
    for name in ("guide_a.rst", "guide_a_zh.rst", "guide_awx.rst"):
        (tmp_path / name).write_text("One.")
    assert sorted(read_guides(tmp_path)) == ["guide_a.rst", "guide_awx.rst"]
