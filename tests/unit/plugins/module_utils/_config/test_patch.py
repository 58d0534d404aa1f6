# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import difflib
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import patch
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.patch import compare_lines, revert


def to_lines(text: str) -> bytes:
    return "".join(word + "\n" for word in text.split()).encode()


@pytest.mark.parametrize(
    ("base", "written", "current", "expected"),
    [
        ("a b c", "a X b c", "a X b c", "a b c"),
        ("a b c", "a X b c", "new a X b edit c", "new a b edit c"),
        ("a b c", "a c", "a edit c", "a b edit c"),
        ("a b c", "a X c", "0 a X c 9", "0 a b c 9"),
        ("a b", "a b X Y", "a b X Y edit", "a b edit"),
        ("", "X Y", "X Y edit", "edit"),
        ("a b", "a X Y b", "a X edit Y b", None),
        ("a b", "a X b", "a b", None),
        ("a b c", "a X c", "a changed c", None),
    ],
)
def test_revert_keeps_edits_or_returns_none(base: str, written: str, current: str, expected: str | None) -> None:
    result = revert(to_lines(base), to_lines(written), to_lines(current))
    assert result == (None if expected is None else to_lines(expected))


def test_bytes_and_line_ends_are_kept() -> None:
    assert revert(b"\xff\r\nb", b"\xff\r\nX\r\nb", b"# \xfe\n\xff\r\nX\r\nb") == b"# \xfe\n\xff\r\nb"


def test_revert_without_edits_restores_base() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    texts = st.text("ab\n", max_size=12).map(str.encode)

    @hypothesis.given(texts, texts)
    def check(base: bytes, written: bytes) -> None:
        assert revert(base, written, written) == base

    check()


def test_equal_lines_at_both_ends_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search takes quadratic time for lines that repeat, such as those of a long comment."""
    sizes: list[int] = []

    class Recorder(difflib.SequenceMatcher):  # type: ignore[type-arg]
        def __init__(self, junk: t.Any, left: t.Sequence[t.Any], right: t.Sequence[t.Any], autojunk: bool) -> None:
            sizes.extend([len(left), len(right)])
            super().__init__(junk, left, right, autojunk)

    monkeypatch.setattr(patch, "SequenceMatcher", Recorder)
    comment = b"# the same\n" * 2000
    assert revert(comment * 2, comment + b"new\n" + comment, b"first\n" + comment + b"new\n" + comment) is not None
    assert max(sizes) <= 1


def test_compare_lines_of_two_texts_covers_both() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    texts = st.text("abc", max_size=12)

    @hypothesis.given(texts, texts)
    def check(left: str, right: str) -> None:
        steps = compare_lines(left, right)
        for place, text in ((1, left), (3, right)):
            assert "".join(text[step[place] : step[place + 1]] for step in steps) == text
        for tag, start, end, other, other_end in steps:
            assert (left[start:end] == right[other:other_end]) is (tag == "equal")

    check()
