# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labels are set, taken back, left alone, and what is remembered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels import (
    RECORD,
    LabelError,
    YieldRule,
    check_labels,
    owned,
    plan,
)

GFD = YieldRule(["nvidia.com/gfd.*"], ["nvidia.com/gpu.*"])


def node(labels: dict[str, str], record: Any = None) -> dict[str, Any]:
    annotations = {} if record is None else {RECORD: record if isinstance(record, str) else json.dumps(record)}
    return {"metadata": {"name": "w1", "resourceVersion": "7", "labels": labels, "annotations": annotations}}


def apply(before: dict[str, Any], wanted: dict[str, Any], owner: str = "me", rules: Any = ()) -> dict[str, Any]:
    """Plan and patch as the API server would."""
    patch = plan(before, wanted, owner, rules).patch
    labels, annotations = dict(before["metadata"]["labels"]), dict(before["metadata"]["annotations"])
    for part, target in (("labels", labels), ("annotations", annotations)):
        for key, value in ((patch or {"metadata": {}})["metadata"].get(part) or {}).items():
            target.pop(key, None)
            if value is not None:
                target[key] = value
    return {"metadata": {"name": "w1", "labels": labels, "annotations": annotations}}


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        ({}, {"a": "1"}),
        ({"a": "old"}, {"a": "1"}),
        ({"a": "1"}, {"a": "1"}),
        ({"a": "old"}, {"a": None}),
        ({"foreign": "x"}, {"a": "1", "b": ""}),
    ],
)
def test_there_and_back(labels: dict[str, str], wanted: dict[str, Any]) -> None:
    start = node(labels)
    done = apply(start, wanted)
    for label, value in wanted.items():
        assert done["metadata"]["labels"].get(label) == value
    assert not plan(done, wanted, "me").changed, "a second run changes nothing"
    back = apply(done, {})
    assert back["metadata"]["labels"] == labels
    assert back["metadata"]["annotations"] == {}


def test_a_label_that_is_right_already_is_not_ours() -> None:
    assert not plan(node({"a": "1"}), {"a": "1"}, "me").changed


def test_what_others_wrote_since_stays() -> None:
    done = apply(node({}), {"a": "1"})
    done["metadata"]["labels"]["a"] = "theirs"
    assert apply(done, {})["metadata"]["labels"] == {"a": "theirs"}


def test_drift_is_corrected_and_the_first_value_remembered() -> None:
    done = apply(node({"a": "first"}), {"a": "1"})
    done["metadata"]["labels"]["a"] = "drifted"
    again = apply(done, {"a": "2"})
    assert again["metadata"]["labels"] == {"a": "2"}
    assert apply(again, {})["metadata"]["labels"] == {"a": "first"}


@pytest.mark.parametrize("first", ["me", "you"])
def test_two_owners_of_one_label(first: str) -> None:
    second = "you" if first == "me" else "me"
    both = apply(apply(node({"a": "was"}), {"a": "1"}, "me"), {"a": "1"}, "you")
    one_gone = apply(both, {}, first)
    assert one_gone["metadata"]["labels"] == {"a": "1"}
    assert apply(one_gone, {}, second)["metadata"]["labels"] == {"a": "was"}


def test_owners_that_disagree() -> None:
    done = apply(node({}), {"a": "1"}, "me")
    with pytest.raises(LabelError, match="kept at '1' by owner me"):
        plan(done, {"a": "2"}, "you")


def test_yielding_to_another_tool() -> None:
    start = node({"nvidia.com/gfd.timestamp": "1", "nvidia.com/gpu.product": "X"})
    result = plan(start, {"nvidia.com/gpu.product": "Y", "accelerator": "y"}, "me", [GFD])
    assert result.yielded == ["nvidia.com/gpu.product"]
    assert result.after == {"accelerator": "y"}


def test_a_tool_that_came_later_inherits_our_labels() -> None:
    done = apply(node({}), {"nvidia.com/gpu.product": "Y"})
    done["metadata"]["labels"].update({"nvidia.com/gfd.timestamp": "1", "nvidia.com/gpu.product": "Z"})
    after = apply(done, {}, rules=[GFD])
    assert after["metadata"]["labels"]["nvidia.com/gpu.product"] == "Z"
    assert after["metadata"]["annotations"] == {}


def test_patch_names_only_what_differs() -> None:
    result = plan(node({"a": "1", "c": "3"}), {"a": "1", "b": "2"}, "me")
    assert result.patch is not None
    assert result.patch["metadata"]["labels"] == {"b": "2"}
    assert result.patch["metadata"]["resourceVersion"] == "7"
    assert (result.before, result.after) == ({"b": None}, {"b": "2"})


@pytest.mark.parametrize("record", ["{", "[]", '{"me": {"a": 1}}', '{"me": 3}', '{"me": {"a": {"set": "1"}}}'])
def test_a_record_that_cannot_be_read(record: str) -> None:
    with pytest.raises(LabelError, match="cannot be read"):
        plan(node({}, record), {"a": "1"}, "me")


def test_owned() -> None:
    done = apply(node({}), {"b": "1", "a": "1"})
    assert owned(done, "me") == ["a", "b"]
    assert owned(done, "you") == []


@pytest.mark.parametrize(
    ("label", "value", "good"),
    [
        ("nvidia.com/gpu.present", "true", True),
        ("accelerator", None, True),
        ("a", "", True),
        ("a", "x" * 63, True),
        ("a", "x" * 64, False),
        ("a", "has blank", False),
        ("a", "-x", False),
        ("bad/name/x", "1", False),
        ("/x", "1", False),
        ("UPPER.com/x", "1", False),
        ("", "1", False),
        ("x" * 64, "1", False),
    ],
)
def test_check_labels(label: str, value: str, good: bool) -> None:
    if good:
        check_labels("w1", {label: value})
    else:
        with pytest.raises(LabelError, match="Node w1"):
            check_labels("w1", {label: value})
