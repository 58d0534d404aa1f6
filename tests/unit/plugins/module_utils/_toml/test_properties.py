# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Properties of every document and every edit."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import Document, TomlError, dumps, loads
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml.changes import is_same

from .toml_texts import NAMES, TABLES, VALUES, documents

if sys.version_info >= (3, 11):
    import tomllib

    def meaning(text: str) -> dict[str, Any]:
        return tomllib.loads(text)
else:
    meaning = loads

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
PATHS = st.lists(NAMES, min_size=1, max_size=4)


def find_notes(text: str) -> list[str]:
    return re.findall("# note [0-9]+", text)


def has_value_on_path(tree: Any, path: list[str]) -> bool:
    """Whether a path goes through something that is not a table."""
    for name in path[:-1]:
        if not isinstance(tree, dict):
            return True
        tree = tree.get(name, {})
    return not isinstance(tree, dict)


def compute_set(tree: dict[str, Any], path: list[str], value: Any) -> dict[str, Any]:
    if not path:
        return value
    return {**tree, path[0]: compute_set(tree.get(path[0], {}), path[1:], value)}


@RELAXED
@given(documents())
def test_loads_equals_the_standard_library(document: tuple[str, dict[str, Any]]) -> None:
    text, _tree = document
    assert is_same(loads(text), meaning(text))
    assert is_same(loads(text), loads(dumps(loads(text))))
    assert Document.parse(text).text == text


@RELAXED
@given(TABLES)
def test_dumps_can_be_loaded(tree: dict[str, Any]) -> None:
    assert is_same(meaning(dumps(tree)), tree)


@RELAXED
@given(st.text(st.sampled_from("ab01.-+_='\"\\[]{},#\n\r\t :TZeunxif\x00é"), max_size=25))
def test_loads_of_any_text_equals_the_standard_library(text: str) -> None:
    try:
        expected = meaning(text)
    except ValueError:
        with pytest.raises(TomlError):
            loads(text)
    else:
        assert is_same(loads(text), expected)


@RELAXED
@given(documents(), PATHS, VALUES)
def test_set_changes_exactly_what_is_requested(document: tuple[str, Any], path: list[str], value: Any) -> None:
    text, _tree = document
    tree = loads(text)
    edited = Document.parse(text)
    if has_value_on_path(tree, path):
        with pytest.raises(TomlError):
            edited.set(path, value)
        assert edited.text == text
        return
    edited.set(path, value)
    assert is_same(meaning(edited.text), compute_set(tree, path, value))
    assert edited.set(path, value) is False
    if Document.parse(text).get(path) is None:
        assert find_notes(edited.text) == find_notes(text)
        later = Document.parse(edited.text)
        later.remove(path, prune=edited.made)
        assert later.text == text
        edited.remove(path)
        assert edited.text == text


@RELAXED
@given(documents(), st.data())
def test_remove_removes_exactly_one_value(document: tuple[str, Any], data: st.DataObject) -> None:
    text, _tree = document
    tree = loads(text)
    assume(tree)
    path: list[str] = []
    here: Any = tree
    while isinstance(here, dict) and here and (not path or data.draw(st.booleans())):
        path.append(data.draw(st.sampled_from(sorted(here))))
        here = here[path[-1]]
    edited = Document.parse(text)
    assert edited.remove(path) is True
    assert edited.get(path) is None
    result = meaning(edited.text)
    for size in range(len(path), 0, -1):  # tables that only it implied may be removed as well
        if is_same(result, drop_path(tree, path[:size])):
            return
    pytest.fail(f"removing {path} gave {edited.text!r}")


def drop_path(tree: dict[str, Any], path: list[str]) -> dict[str, Any]:
    if len(path) == 1:
        return {name: value for name, value in tree.items() if name != path[0]}
    return {**tree, path[0]: drop_path(tree[path[0]], path[1:])}


@RELAXED
@given(documents(), TABLES)
def test_merge_adds_and_replaces_and_is_idempotent(document: tuple[str, Any], other: dict[str, Any]) -> None:
    text, _tree = document
    edited = Document.parse(text)
    changed = edited.merge(other)
    assert is_same(meaning(edited.text), merge_trees(loads(text), other))
    assert bool(changed) == (edited.text != text)
    assert edited.merge(other) == []


def merge_trees(tree: Any, other: Any) -> Any:
    if isinstance(tree, dict) and isinstance(other, dict):
        both = {**tree, **other}
        return {
            name: merge_trees(tree[name], other[name]) if name in tree and name in other else both[name]
            for name in both
        }
    return other
