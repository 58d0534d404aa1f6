# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of a distribution, in a file and a folder."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.settings import list_files, merge_settings


def test_list_files_returns_the_main_one_and_drop_ins_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "config.yaml.d"
    assert list_files(str(folder)) == []
    folder.mkdir()
    for path in (folder / "b.yaml", folder / "a.yml", folder / "c.conf", tmp_path / "config.yaml"):
        path.touch()
    assert list_files(str(folder)) == [str(tmp_path / "config.yaml"), str(folder / "a.yml"), str(folder / "b.yaml")]


@pytest.mark.parametrize(
    ("trees", "merged"),
    [
        ([], {}),
        ([None, {"a": 1}], {"a": 1}),
        ([{"a": ["x"]}, {"a": ["y"]}], {"a": ["y"]}),
        ([{"a": ["x"]}, {"a+": ["y"]}], {"a": ["x", "y"]}),
        ([{"a": "x"}, {"a+": "y"}], {"a": ["x", "y"]}),
        ([{"a+": ["x"]}, {"a+": ["y"]}, {"a": ["z"]}], {"a": ["z"]}),
        ([{"a+": ["x"], "b": 1}, {"b": 2}], {"a": ["x"], "b": 2}),
    ],
)
def test_merge_settings_replaces_or_adds(trees: list[t.Any], merged: dict[str, t.Any]) -> None:
    assert merge_settings(trees) == merged
