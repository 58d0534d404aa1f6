# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.patch import revert


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
