# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import tree as trees
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import MISSING, Edit
from ansible_collections.gpu.kubernetes.plugins.module_utils._document import is_same


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ([1, 2], [1], False),
        (MISSING, MISSING, True),
        (MISSING, None, False),
    ],
)
def test_is_same_compares_types(one: object, other: object, expected: bool) -> None:
    assert is_same(one, other) is expected


def test_get_reads_through_tables_only() -> None:
    tree = {"a": {"b": "text"}}
    assert trees.get(tree, ("a", "b")) == "text"
    assert trees.get(tree, ("a", "b", "c")) is MISSING
    assert trees.get(tree, ("x",), 3) == 3


def test_table_at_a_value_raises() -> None:
    assert trees.table({}, ("a", "b")) == {}
    with pytest.raises(trees.NotATableError, match=r'a\."x\.y" is not a table'):
        trees.table({"a": {"x.y": 1}}, ("a", "x.y", "z"))
    with pytest.raises(trees.NotATableError, match=r"^a is not a table"):
        trees.put({"a": 1}, ("a", "b"), 2)


@pytest.mark.parametrize(
    ("tree", "keep", "expected"),
    [
        ({"a": {"b": {"c": 1}}, "x": 1}, (), {"x": 1}),
        ({"a": {"b": {"c": 1}}}, {("a",)}, {"a": {}}),
        ({"a": {"b": {"c": 1}, "d": 2}}, (), {"a": {"d": 2}}),
        ({"a": {"b": {"c": 1, "d": 2}}}, (), {"a": {"b": {"d": 2}}}),
    ],
)
def test_drop_removes_empty_parents(tree: trees.Tree, keep: t.Any, expected: trees.Tree) -> None:
    trees.drop(tree, ("a", "b", "c"), keep)
    assert tree == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 3}, [Edit(("a",), MISSING), Edit(("b",), 3)]),
        # a new table is one edit; parents that have nothing else are implied
        ({}, {"p": {"q": {"r": {"x": 1, "o": {"y": 2}}}}}, [Edit(("p", "q", "r"), {"x": 1, "o": {"y": 2}})]),
        ({"p": {"q": {}}}, {"p": {"q": {"x": 1}}}, [Edit(("p", "q", "x"), 1)]),
        ({"p": {"q": {"x": 1}}}, {}, [Edit(("p",), MISSING)]),
        ({"p": {"q": 1}}, {"p": {}}, [Edit(("p",), {})]),
        ({"p": True}, {"p": 1}, [Edit(("p",), 1)]),
        ({}, {"p": {}}, [Edit(("p",), {})]),
    ],
)
def test_find_edits_of_each_difference(before: trees.Tree, after: trees.Tree, expected: list[Edit]) -> None:
    assert trees.find_edits(before, after) == expected


def test_edits_transform_any_tree_into_another() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    keys = st.sampled_from("abc")
    values = st.one_of(st.booleans(), st.integers(0, 2), st.lists(st.integers(0, 1), max_size=2))
    tables = st.dictionaries(
        keys, st.recursive(values, lambda inner: st.dictionaries(keys, inner, max_size=3)), max_size=3
    )

    @hypothesis.given(tables, tables)
    def check(before: trees.Tree, after: trees.Tree) -> None:
        result = copy.deepcopy(before)
        for edit in trees.find_edits(before, after):
            if edit.value is MISSING:
                del trees.table(result, edit.path[:-1])[edit.path[-1]]
            else:
                trees.put(result, edit.path, edit.value)
        assert is_same(result, after)
        assert bool(trees.find_edits(before, after)) is not is_same(before, after)

    check()


def test_compare_leaves_returns_changes() -> None:
    assert trees.compare_leaves({"a": {}, "b": 1, "c": 1}, {"a": {"x": 1}, "b": 1, "c": True}) == {
        ("a",): ({}, MISSING),
        ("a", "x"): (MISSING, 1),
        ("c",): (1, True),
    }


def test_merge_replaces_lists_and_merges_tables() -> None:
    tree = {"a": {"x": [1], "y": 1}, "b": 1}
    trees.merge(tree, {"a": {"x": [2]}, "b": {"c": 1}})
    assert tree == {"a": {"x": [2], "y": 1}, "b": {"c": 1}}
