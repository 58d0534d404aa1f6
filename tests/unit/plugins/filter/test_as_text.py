# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of surveys in the form of AWX, loaded by the ansible-core that runs the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError
from ansible.parsing.dataloader import DataLoader

from ansible_collections.gpu.kubernetes.plugins.filter.as_text import as_text


@pytest.fixture
def answer(tmp_path: Path) -> Any:
    def load(text: str) -> Any:
        path = tmp_path / "extravars"
        path.write_text(f"answer: !unsafe '{text}'\n", encoding="utf-8")
        return DataLoader().load_from_file(str(path))["answer"]

    return load


@pytest.mark.parametrize("text", ["580", "580.95.05", ""])
def test_as_text_of_a_survey_answer_returns_the_entered_text(answer: Any, text: str) -> None:
    assert as_text(answer(text), "nvidia_driver_branch") == text


def test_as_text_of_a_decimal_answer_returns_it_or_fails(answer: Any) -> None:
    value = answer("580.10")
    if isinstance(value, str):  # ansible-core 2.18
        assert as_text(value, "nvidia_driver_version") == "580.10"
    else:
        with pytest.raises(AnsibleFilterError, match=r"nvidia_driver_version is 580\.1, a number that may have lost"):
            as_text(value, "nvidia_driver_version")
