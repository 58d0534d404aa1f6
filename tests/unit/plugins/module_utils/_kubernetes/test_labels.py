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
    read_labels,
)

GFD = YieldRule(["nvidia.com/gfd.*"], ["nvidia.com/gpu.*"])


def node(labels: dict[str, str], record: Any = None) -> dict[str, Any]:
    annotations = {} if record is None else {RECORD: record if isinstance(record, str) else json.dumps(record)}
    return {"metadata": {"name": "w1", "resourceVersion": "7", "labels": labels, "annotations": annotations}}


def apply(
    before: dict[str, Any], wanted: dict[str, Any], owner: str = "me", rules: Any = (), adopted: Any = None
) -> dict[str, Any]:
    """Plan and patch as the API server would."""
    patch = plan(before, wanted, owner, rules, adopted).patch
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


def test_what_became_right_by_somebody_else_stays_when_we_go() -> None:
    done = apply(node({}), {"a": "1"})
    done["metadata"]["labels"]["a"] = "2"
    agreed = apply(done, {"a": "2"})
    assert not plan(agreed, {"a": "2"}, "me").changed
    assert apply(agreed, {})["metadata"] == {"name": "w1", "labels": {"a": "2"}, "annotations": {}}


def test_a_label_that_is_right_already_is_not_ours() -> None:
    assert not plan(node({"a": "1"}), {"a": "1"}, "me").changed


def test_what_others_wrote_since_stays() -> None:
    done = apply(node({}), {"a": "1"})
    done["metadata"]["labels"]["a"] = "theirs"
    assert apply(done, {})["metadata"]["labels"] == {"a": "theirs"}


@pytest.mark.parametrize("wanted", ["1", "2"])
@pytest.mark.parametrize("written", [{"a": "theirs"}, {}])
def test_drift_is_corrected_and_what_was_written_last_comes_back(wanted: str, written: dict[str, str]) -> None:
    done = apply(node({"a": "first"}), {"a": "1"})
    done["metadata"]["labels"] = dict(written)
    again = apply(done, {"a": wanted})
    assert again["metadata"]["labels"] == {"a": wanted}
    assert apply(again, {})["metadata"]["labels"] == written


def test_a_change_of_mind_remembers_the_first_value() -> None:
    done = apply(apply(node({"a": "first"}), {"a": "1"}), {"a": "2"})
    assert apply(done, {})["metadata"]["labels"] == {"a": "first"}


@pytest.mark.parametrize("first", ["me", "you"])
def test_drift_of_a_label_of_two_owners(first: str) -> None:
    second = "you" if first == "me" else "me"
    both = apply(apply(node({"a": "was"}), {"a": "1"}, "me"), {"a": "1"}, "you")
    both["metadata"]["labels"]["a"] = "theirs"
    again = apply(both, {"a": "1"}, "me")
    assert apply(apply(again, {}, first), {}, second)["metadata"]["labels"] == {"a": "theirs"}


@pytest.mark.parametrize("first", ["me", "you"])
def test_two_owners_of_one_label(first: str) -> None:
    second = "you" if first == "me" else "me"
    both = apply(apply(node({"a": "was"}), {"a": "1"}, "me"), {"a": "1"}, "you")
    one_gone = apply(both, {}, first)
    assert one_gone["metadata"]["labels"] == {"a": "1"}
    assert apply(one_gone, {}, second)["metadata"]["labels"] == {"a": "was"}


def test_a_label_without_an_owner_that_is_adopted_goes_with_its_new_owner() -> None:
    adopted = apply(node({"a": "1", "b": "theirs"}), {"a": "1"}, adopted={"a": "1", "b": "1", "c": None})
    assert owned(adopted, "me") == ["a"]
    assert apply(adopted, {})["metadata"]["labels"] == {"b": "theirs"}


def test_a_label_of_another_owner_is_not_adopted() -> None:
    theirs = apply(node({"a": "first"}), {"a": "1"}, "you")
    both = apply(theirs, {"a": "1"}, "me", adopted={"a": "1"})
    assert apply(apply(both, {}, "you"), {}, "me")["metadata"]["labels"] == {"a": "first"}


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


def test_a_label_left_to_a_tool_that_never_wrote_it_goes_with_us() -> None:
    done = apply(node({}), {"nvidia.com/gpu.product": "Y"})
    done["metadata"]["labels"]["nvidia.com/gfd.timestamp"] = "1"
    wanted = {"nvidia.com/gpu.product": "Z"}
    assert plan(done, wanted, "me", [GFD]).yielded == ["nvidia.com/gpu.product"]
    assert not plan(done, wanted, "me", [GFD]).changed
    undone = apply(apply(done, wanted, rules=[GFD]), {})
    assert undone["metadata"]["labels"] == {"nvidia.com/gfd.timestamp": "1"}


def test_a_label_that_was_yielded_is_released_and_not_removed() -> None:
    done = apply(node({}), {"nvidia.com/gpu.product": "Y"})
    done["metadata"]["labels"].update({"nvidia.com/gfd.timestamp": "1", "nvidia.com/gpu.product": "Z"})
    left = apply(done, {"nvidia.com/gpu.product": "Y"}, rules=[GFD])
    assert left["metadata"]["annotations"] == {}
    left["metadata"]["labels"]["nvidia.com/gpu.product"] = "Y"  # theirs again, though by chance what we had set
    assert apply(left, {})["metadata"]["labels"]["nvidia.com/gpu.product"] == "Y"


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
        ("a\n", "1", False),
        ("a", "1\n", False),
        ("example.com\n/a", "1", False),
        ("/", "1", False),
        ("x" * 253 + "/a", "1", True),
        ("x" * 254 + "/a", "1", False),
    ],
)
def test_check_labels(label: str, value: str, good: bool) -> None:
    if good:
        check_labels("w1", {label: value})
    else:
        with pytest.raises(LabelError, match="Node w1"):
            check_labels("w1", {label: value})


def test_values_become_text() -> None:
    given = {"text": "1.10", "number": 8, "yes": True, "no": False, "none": None, 7: ""}
    assert read_labels("Node w1", given) == {
        "text": "1.10",
        "number": "8",
        "yes": "true",
        "no": "false",
        "none": None,
        "7": "",
    }
    assert read_labels("Node w1", None) == {}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"a": ["b"]}, "Node w1: the value of label a is a list; write it as text, in quotes."),
        ({"a": {"b": "c"}}, "Node w1: the value of label a is a dictionary; write it as text, in quotes."),
        ({"a": 1.1}, "Node w1: the value of label a is the float 1.1; write it as text, in quotes."),
        (["a"], "Node w1: labels are a dictionary of names and values, not a list; write them as name: value."),
        ("a=b", "Node w1: labels are a dictionary of names and values, not the str 'a=b'; write them as name: value."),
    ],
)
def test_what_is_no_label_is_refused(given: Any, sentence: str) -> None:
    with pytest.raises(LabelError) as caught:
        read_labels("Node w1", given)
    assert str(caught.value) == sentence
