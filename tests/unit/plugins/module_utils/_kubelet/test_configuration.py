# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values merged into any file can be undone."""

from __future__ import annotations

import copy
import typing as t

import pytest

pytest.importorskip("hypothesis")

from hypothesis import assume, given
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import get, leaves
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.yaml_nodes import Plain, meaning
from ansible_collections.gpu.kubernetes.plugins.module_utils._document import is_same
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import configuration

AMOUNTS = st.sampled_from(["1Gi", "1024Mi", "500m", "0.5", "1", "2", "1000m", "nonsense"])
WRITTEN = st.one_of(AMOUNTS, AMOUNTS.map(Plain))
OTHER = st.one_of(st.integers(0, 3), st.booleans(), WRITTEN, st.lists(st.integers(0, 1), max_size=2))


def mappings(names: str, values: t.Any) -> t.Any:
    """Mappings of some of the names to values."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names.split(), values))


DEEP = mappings("a b", st.one_of(OTHER, mappings("x y", OTHER)))


def trees(amounts: t.Any, empty: bool) -> t.Any:
    """Configurations of the kubelet and parts of them, with empty values if *empty*."""
    reserved, deep = mappings("cpu memory pid", amounts), DEEP
    if not empty:
        reserved, deep = reserved.filter(bool), deep.filter(lambda tree: tree and {} not in tree.values())
    nothing = [st.none(), st.just(Plain("null"))] if empty else []
    kinds = {"kubeReserved": st.one_of(reserved, *nothing), "systemReserved": reserved, "maxPods": st.integers(1, 3)}
    return st.fixed_dictionaries({}, optional={**kinds, "deep": deep})


def is_mergeable(tree: t.Any, values: t.Any) -> bool:
    """Whether no value is at a path where the other has a mapping."""
    above = [get(tree, path[:depth], {}) for path in leaves(values) for depth in range(1, len(path))]
    there = [get(tree, path) for path in leaves(values)]
    return all(meaning(node) is None or isinstance(node, dict) for node in above) and not any(
        isinstance(node, dict) for node in there
    )


@given(tree=trees(WRITTEN, empty=True), values=trees(AMOUNTS, empty=False))
def test_merge_sets_only_requested_values_and_can_be_undone(tree: t.Any, values: t.Any) -> None:
    assume(is_mergeable(tree, values))
    first = copy.deepcopy(tree)
    configuration.merge(tree, values, "file")
    requested = leaves(values)
    assert all(configuration.is_equal(path, get(tree, path), value) for path, value in requested.items())
    for path, value in leaves(first).items():
        if path not in requested and not any(path == each[: len(path)] for each in requested):
            assert is_same(get(tree, path), value)
    again = copy.deepcopy(tree)
    configuration.merge(again, values, "file")
    assert is_same(again, tree)
    assert configuration.undo_values(tree, values, first) == []
    assert is_same(configuration.normalize(tree), configuration.normalize(first))


@given(tree=trees(WRITTEN, empty=True), amount=AMOUNTS)
def test_value_changed_by_others_is_kept(tree: t.Any, amount: str) -> None:
    first = copy.deepcopy(tree)
    values = {"systemReserved": {"cpu": "123m"}}
    configuration.merge(tree, values, "file")
    tree["systemReserved"]["cpu"] = amount
    changed = configuration.undo_values(tree, values, first)
    is_former = configuration.is_equal(("systemReserved", "cpu"), get(first, ("systemReserved", "cpu")), amount)
    assert changed == ([] if is_former else [("systemReserved", "cpu")])
    assert tree["systemReserved"]["cpu"] == amount


@pytest.mark.parametrize(
    ("left", "right", "same_meaning"),
    [
        ("1Gi", Plain("1024Mi"), True),
        (Plain("500m"), "0.5", True),
        (Plain("1"), "1", False),  # a number, which the kubelet does not accept here
        ("x", "x", True),
        ("1Gi", "1G", False),
    ],
)
def test_amounts_are_compared_by_value(left: t.Any, right: t.Any, same_meaning: bool) -> None:
    assert configuration.is_equal(("kubeReserved", "cpu"), left, right) is same_meaning


@pytest.mark.parametrize(
    ("written", "requested", "same_meaning"),
    [
        ("10s", "10s", True),
        ("1h0m0s", "1h0m0s", True),
        ("10:20", "10:20", False),
        ("1e3", "1e3", False),
        ("on", "on", False),
    ],
)
def test_unquoted_texts_are_compared_by_type(written: str, requested: str, same_meaning: bool) -> None:
    assert configuration.is_equal(("syncFrequency",), Plain(written), requested) is same_meaning
