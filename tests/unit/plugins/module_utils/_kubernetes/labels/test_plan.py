# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labels are set, undone and kept, and what is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.plan import (
    YieldRule,
    check_labels,
    plan_labels,
    read_labels,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import (
    RECORD_ANNOTATION,
    LabelError,
    Ownership,
    is_reserved,
)

GFD = YieldRule(["nvidia.com/gfd.*"], ["nvidia.com/gpu.*"])


def node(labels: dict[str, str], record: Any = None) -> dict[str, Any]:
    annotations = (
        {} if record is None else {RECORD_ANNOTATION: record if isinstance(record, str) else json.dumps(record)}
    )
    return {"metadata": {"name": "w1", "resourceVersion": "7", "labels": labels, "annotations": annotations}}


def apply(
    before: dict[str, Any], desired: dict[str, Any], owner: str = "me", rules: Any = (), adopted: Any = None
) -> dict[str, Any]:
    """Plan and patch as the API server would."""
    patch = plan_labels(before, desired, owner, rules, adopted).patch
    labels, annotations = dict(before["metadata"]["labels"]), dict(before["metadata"]["annotations"])
    for part, target in (("labels", labels), ("annotations", annotations)):
        for key, value in ((patch or {"metadata": {}})["metadata"].get(part) or {}).items():
            target.pop(key, None)
            if value is not None:
                target[key] = value
    return {"metadata": {"name": "w1", "labels": labels, "annotations": annotations}}


@pytest.mark.parametrize(
    ("labels", "desired"),
    [
        ({}, {"a": "1"}),
        ({"a": "old"}, {"a": "1"}),
        ({"a": "1"}, {"a": "1"}),
        ({"a": "old"}, {"a": None}),
        ({"other": "x"}, {"a": "1", "b": ""}),
    ],
)
def test_undo_of_each_change_restores_labels(labels: dict[str, str], desired: dict[str, Any]) -> None:
    start = node(labels)
    done = apply(start, desired)
    for label, value in desired.items():
        assert done["metadata"]["labels"].get(label) == value
    assert not plan_labels(done, desired, "me").changed, "a second run changes nothing"
    back = apply(done, {})
    assert back["metadata"]["labels"] == labels
    assert back["metadata"]["annotations"] == {}


def test_undo_of_label_set_by_others_keeps_it() -> None:
    done = apply(node({}), {"a": "1"})
    done["metadata"]["labels"]["a"] = "2"
    agreed = apply(done, {"a": "2"})
    assert not plan_labels(agreed, {"a": "2"}, "me").changed
    assert apply(agreed, {})["metadata"] == {"name": "w1", "labels": {"a": "2"}, "annotations": {}}


def test_plan_of_existing_value_records_nothing() -> None:
    assert not plan_labels(node({"a": "1"}), {"a": "1"}, "me").changed


def test_undo_after_change_by_others_keeps_their_value() -> None:
    done = apply(node({}), {"a": "1"})
    done["metadata"]["labels"]["a"] = "edited"
    assert apply(done, {})["metadata"]["labels"] == {"a": "edited"}


@pytest.mark.parametrize("desired", ["1", "2"])
@pytest.mark.parametrize("written", [{"a": "edited"}, {}])
def test_plan_after_drift_records_the_last_unmanaged_value(desired: str, written: dict[str, str]) -> None:
    done = apply(node({"a": "first"}), {"a": "1"})
    done["metadata"]["labels"] = dict(written)
    again = apply(done, {"a": desired})
    assert again["metadata"]["labels"] == {"a": desired}
    assert apply(again, {})["metadata"]["labels"] == written


def test_undo_after_two_values_restores_the_first() -> None:
    done = apply(apply(node({"a": "first"}), {"a": "1"}), {"a": "2"})
    assert apply(done, {})["metadata"]["labels"] == {"a": "first"}


@pytest.mark.parametrize("first", ["me", "you"])
def test_undo_of_two_owners_after_drift_restores_it(first: str) -> None:
    second = "you" if first == "me" else "me"
    both = apply(apply(node({"a": "was"}), {"a": "1"}, "me"), {"a": "1"}, "you")
    both["metadata"]["labels"]["a"] = "edited"
    again = apply(both, {"a": "1"}, "me")
    assert apply(apply(again, {}, first), {}, second)["metadata"]["labels"] == {"a": "edited"}


@pytest.mark.parametrize("first", ["me", "you"])
def test_undo_of_two_owners_keeps_label_until_the_last(first: str) -> None:
    second = "you" if first == "me" else "me"
    both = apply(apply(node({"a": "was"}), {"a": "1"}, "me"), {"a": "1"}, "you")
    one_undone = apply(both, {}, first)
    assert one_undone["metadata"]["labels"] == {"a": "1"}
    assert apply(one_undone, {}, second)["metadata"]["labels"] == {"a": "was"}


def test_undo_of_adopted_label_removes_it() -> None:
    adopted = apply(node({"a": "1", "b": "edited"}), {"a": "1"}, adopted={"a": "1", "b": "1", "c": None})
    assert list(json.loads(adopted["metadata"]["annotations"][RECORD_ANNOTATION])["me"]) == ["a"]
    assert apply(adopted, {})["metadata"]["labels"] == {"b": "edited"}


def test_adopt_of_label_with_owner_changes_nothing() -> None:
    owned = apply(node({"a": "first"}), {"a": "1"}, "you")
    both = apply(owned, {"a": "1"}, "me", adopted={"a": "1"})
    assert apply(apply(both, {}, "you"), {}, "me")["metadata"]["labels"] == {"a": "first"}


def test_plan_with_conflict_of_owners_raises() -> None:
    done = apply(node({}), {"a": "1"}, "me")
    with pytest.raises(LabelError, match="set to '1' by owner me"):
        plan_labels(done, {"a": "2"}, "you")


def test_plan_with_yield_rule_leaves_label_to_the_tool() -> None:
    start = node({"nvidia.com/gfd.timestamp": "1", "nvidia.com/gpu.product": "X"})
    result = plan_labels(start, {"nvidia.com/gpu.product": "Y", "accelerator": "y"}, "me", [GFD])
    assert result.yielded == ["nvidia.com/gpu.product"]
    assert result.after == {"accelerator": "y"}


def test_undo_of_label_set_by_a_later_tool_keeps_it() -> None:
    done = apply(node({}), {"nvidia.com/gpu.product": "Y"})
    done["metadata"]["labels"].update({"nvidia.com/gfd.timestamp": "1", "nvidia.com/gpu.product": "Z"})
    after = apply(done, {}, rules=[GFD])
    assert after["metadata"]["labels"]["nvidia.com/gpu.product"] == "Z"
    assert after["metadata"]["annotations"] == {}


def test_undo_of_yielded_label_with_managed_value_removes_it() -> None:
    done = apply(node({}), {"nvidia.com/gpu.product": "Y"})
    done["metadata"]["labels"]["nvidia.com/gfd.timestamp"] = "1"
    desired = {"nvidia.com/gpu.product": "Z"}
    assert plan_labels(done, desired, "me", [GFD]).yielded == ["nvidia.com/gpu.product"]
    assert not plan_labels(done, desired, "me", [GFD]).changed
    restored = apply(apply(done, desired, rules=[GFD]), {})
    assert restored["metadata"]["labels"] == {"nvidia.com/gfd.timestamp": "1"}


def test_undo_of_yielded_label_with_value_of_the_tool_keeps_it() -> None:
    done = apply(node({}), {"nvidia.com/gpu.product": "Y"})
    done["metadata"]["labels"].update({"nvidia.com/gfd.timestamp": "1", "nvidia.com/gpu.product": "Z"})
    left = apply(done, {"nvidia.com/gpu.product": "Y"}, rules=[GFD])
    assert left["metadata"]["annotations"] == {}
    left["metadata"]["labels"]["nvidia.com/gpu.product"] = "Y"  # the tool sets the former managed value
    assert apply(left, {})["metadata"]["labels"]["nvidia.com/gpu.product"] == "Y"


def test_plan_patch_contains_only_differences() -> None:
    result = plan_labels(node({"a": "1", "c": "3"}), {"a": "1", "b": "2"}, "me")
    assert result.patch is not None
    assert result.patch["metadata"]["labels"] == {"b": "2"}
    assert result.patch["metadata"]["resourceVersion"] == "7"
    assert (result.before, result.after) == ({"b": None}, {"b": "2"})


@pytest.mark.parametrize("record", ["{", "[]", '{"me": {"a": 1}}', '{"me": 3}', '{"me": {"a": {"set": "1"}}}'])
def test_plan_with_damaged_record_raises(record: str) -> None:
    with pytest.raises(LabelError, match="cannot be read"):
        plan_labels(node({}, record), {"a": "1"}, "me")


def entry(label: str, was: Any, set_to: Any = None) -> dict[str, Any]:
    return {"me": {label: {"set": set_to, "was": was}}}


MASTER = "node-role.kubernetes.io/master"
TENANT = "node-restriction.kubernetes.io/tenant"


@pytest.mark.parametrize(
    ("labels", "record", "patterns", "after"),
    [
        # Reserved labels: never a value from the record, whether or not the owner lists the label.
        ({}, entry(TENANT, "payments"), ["*"], {}),
        ({}, entry(TENANT, "payments"), [TENANT], {}),
        ({}, entry("node-role.kubernetes.io/control-plane", ""), ["*"], {}),
        ({}, entry("topology.k8s.io/zone", "a"), ["*"], {}),
        ({TENANT: "gpu"}, entry(TENANT, "payments", "gpu"), ["*"], {TENANT: "gpu"}),
        ({TENANT: "gpu"}, entry(TENANT, None, "gpu"), ["node-restriction.*"], {TENANT: "gpu"}),
        ({TENANT: "gpu"}, entry(TENANT, "payments", "gpu"), [TENANT], {}),
        ({MASTER: ""}, entry(MASTER, None, ""), [MASTER], {}),
        ({MASTER: ""}, entry(MASTER, None, "x"), [MASTER], {MASTER: ""}),
        # A label of the owner gets its former value; another one is only removed.
        ({"accelerator": "t4"}, entry("accelerator", "old", "t4"), ["accelerator"], {"accelerator": "old"}),
        ({}, entry("accelerator", "old"), ["accelerator"], {"accelerator": "old"}),
        (
            {"nvidia.com/gpu.x": "1"},
            entry("nvidia.com/gpu.x", "0", "1"),
            ["nvidia.com/gpu.*"],
            {"nvidia.com/gpu.x": "0"},
        ),
        ({}, entry("tenant", "payments"), ["accelerator"], {}),
        ({"tenant": "a"}, entry("tenant", "payments", "a"), ["accelerator"], {}),
        ({"tenant": "b"}, entry("tenant", "payments", "a"), ["accelerator"], {"tenant": "b"}),
    ],
)
def test_plan_with_forged_record_sets_only_labels_of_the_owner(
    labels: dict[str, str], record: Any, patterns: list[str], after: dict[str, str]
) -> None:
    plan = plan_labels(node(labels, record), {}, "me", ownership=Ownership(patterns))
    changed = {**labels, **plan.after}
    assert {label: value for label, value in changed.items() if value is not None} == after
    assert all(text.startswith("Node w1: the labels ") and text.endswith(".") for text in plan.warnings)


def test_plan_with_forged_record_warns_of_labels_that_stay() -> None:
    record = {"me": {f"{number}.kubernetes.io/a": {"set": "1", "was": None} for number in range(9)}}
    labels = dict.fromkeys(record["me"], "1")
    plan = plan_labels(node(labels, record), {}, "me")
    assert not plan.changed
    [warning] = plan.warnings
    assert "0.kubernetes.io/a, 1.kubernetes.io/a" in warning
    assert "and 4 more stay" in warning


@pytest.mark.parametrize(
    "record",
    [
        entry("a", 5),
        entry("a", ["x"]),
        entry("a", "x", True),
        {"me": {"a": {"set": {}, "was": None}}},
        "[" * 100000,
        '{"me": ' * 50000,
    ],
)
def test_plan_with_other_types_in_the_record_raises(record: Any) -> None:
    with pytest.raises(LabelError, match="Node w1: annotation gpu-kubernetes/managed-labels cannot be read"):
        plan_labels(node({}, record), {}, "me")


def test_plan_with_invalid_former_value_raises() -> None:
    with pytest.raises(LabelError, match="Node w1: 'has blank' is not a valid value for label a"):
        plan_labels(node({}, entry("a", "has blank")), {}, "me")


def test_error_names_no_control_characters() -> None:
    record = {"\x1b]0;x\x07": {"a": {"set": "2", "was": None}}}
    with pytest.raises(LabelError) as caught:
        plan_labels(node({}, record), {"a": "1"}, "me")
    assert str(caught.value).isprintable()
    assert "by owner \\x1b]0;x\\x07" in str(caught.value)


@pytest.mark.parametrize(
    ("label", "reserved"),
    [
        (TENANT, True),
        ("kubernetes.io/hostname", True),
        ("k8s.io/a", True),
        ("x.y.k8s.io/a", True),
        ("notkubernetes.io/a", False),
        ("kubernetes.io.example.com/a", False),
        ("kubernetes.io", False),
        ("gpu-kubernetes/paused", False),
        ("nvidia.com/gpu.present", False),
    ],
)
def test_is_reserved_follows_the_domain(label: str, reserved: bool) -> None:
    assert is_reserved(label) is reserved


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
def test_check_labels_rejects_invalid_names_and_values(label: str, value: str, good: bool) -> None:
    if good:
        check_labels("w1", {label: value})
    else:
        with pytest.raises(LabelError, match="Node w1"):
            check_labels("w1", {label: value})


def test_read_labels_converts_values_to_text() -> None:
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
def test_read_labels_with_other_types_raises(given: Any, sentence: str) -> None:
    with pytest.raises(LabelError) as caught:
        read_labels("Node w1", given)
    assert str(caught.value) == sentence
