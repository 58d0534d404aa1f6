# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts that YAML has read as another type."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._text import NotTextError, read_text

#: A text as ansible-core passes it: 2.18 keeps an answer of a survey, 2.19 and newer parse it again.
TEXTS = [
    ("580", "580"),
    (580, "580"),
    ("", ""),
    (None, ""),
    ("580.95.05", "580.95.05"),
    ("580.10", "580.10"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_read_text_of_a_text_or_whole_number_returns_the_text(value: object, text: str) -> None:
    assert read_text(value, "nvidia_driver_branch") == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            580.1,
            "nvidia_driver_version is 580.1, a number that may have lost its last digits and not a text; write it in quotes",
        ),
        (True, "nvidia_driver_version is True, a truth value and not a text"),
        (["580"], "another value and not a text"),
    ],
)
def test_read_text_of_a_value_that_lost_its_text_is_refused(value: object, message: str) -> None:
    with pytest.raises(NotTextError) as error:
        read_text(value, "nvidia_driver_version")
    assert message in str(error.value)


def test_read_text_of_a_decimal_number_returns_it_if_allowed() -> None:
    assert read_text(12.8, "cuda_default", decimal=True) == "12.8"
