# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: parameters, changes and diff."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import RECORD_ANNOTATION
from ansible_collections.gpu.kubernetes.plugins.modules import node_labels


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, node_labels)


def test_check_run_repeat_and_undo_restore_the_node(run: Any) -> None:
    cluster = FakeCluster([node("w1"), node("w2", labels={"a": "old"})])
    desired = {"w1": {"a": "1"}, "w2": {"a": "1"}}
    checked = run(cluster, nodes=desired, _ansible_check_mode=True, _ansible_diff=True)
    done = run(cluster, nodes=desired, _ansible_diff=True)
    assert checked["changed"] is done["changed"] is True
    assert checked["diff"] == done["diff"]
    assert done["diff"]["before"] == {"w1": {"a": None}, "w2": {"a": "old"}}
    assert done["nodes"]["w1"] == {"changed": True, "before": {"a": None}, "after": {"a": "1"}, "yielded": []}
    assert run(cluster, nodes=desired, _ansible_check_mode=True)["changed"] is False
    assert run(cluster, nodes=desired)["changed"] is False
    assert run(cluster, nodes=desired, state="absent")["changed"] is True
    assert cluster.store_nodes["w1"]["metadata"]["labels"] == {}
    assert cluster.store_nodes["w2"]["metadata"]["labels"] == {"a": "old"}
    assert run(cluster, nodes=desired, state="absent")["changed"] is False


def test_absent_after_adopt_removes_label_set_by_others(run: Any) -> None:
    record = {RECORD_ANNOTATION: json.dumps({"another": {"b": {"set": "1", "was": None}}})}
    labels = {"a": "1", "b": "1", "c": "other"}
    cluster = FakeCluster([node("w1", labels=dict(labels), annotations=dict(record)), node("w2", labels={"a": "2"})])
    desired = {"w1": {"a": "1", "b": "1", "c": "1"}, "w2": {"a": "1"}}
    assert run(cluster, nodes={"w1": {"a": "1"}})["changed"] is False
    checked = run(cluster, nodes=desired, adopt=True, _ansible_check_mode=True)
    assert checked["changed"] is run(cluster, nodes=desired, adopt=True)["changed"] is True
    assert run(cluster, nodes=desired, adopt=True)["changed"] is False
    assert run(cluster, nodes=desired, adopt=True, state="absent")["changed"] is True
    assert cluster.store_nodes["w1"]["metadata"]["labels"] == {"b": "1", "c": "other"}
    assert cluster.store_nodes["w1"]["metadata"]["annotations"] == record
    assert cluster.store_nodes["w2"]["metadata"]["labels"] == {"a": "2"}
    assert run(cluster, nodes=desired, adopt=True, state="absent")["changed"] is False


def test_absent_with_adopt_removes_label_without_record(run: Any) -> None:
    cluster = FakeCluster([node("w1", labels={"a": "1", "b": "2"})])
    desired = {"w1": {"a": "1", "b": "1"}}
    assert run(cluster, nodes=desired, state="absent")["changed"] is False
    assert run(cluster, nodes=desired, state="absent", adopt=True)["changed"] is True
    assert cluster.store_nodes["w1"]["metadata"]["labels"] == {"b": "2"}


def test_null_labels_change_nothing(run: Any) -> None:
    assert run(FakeCluster([node("w1")]), nodes={"w1": None})["changed"] is False


@pytest.mark.parametrize("labels", [{"a": ["b"]}, {"a": {"b": "c"}}, ["a"], {"a": "1\n"}])
def test_invalid_labels_fail_with_one_sentence(run: Any, labels: Any) -> None:
    cluster = FakeCluster([node("w1")])
    result = run(cluster, nodes={"w1": labels})
    assert result["failed"] is True
    assert result["msg"].startswith("Node w1: ")
    assert "\n" not in result["msg"]
    assert not any(call.startswith("patch") for call in cluster.calls)
    assert "failed" not in run(cluster, nodes={"w1": labels}, state="absent")


def test_yield_to_leaves_labels_to_the_tool(run: Any) -> None:
    cluster = FakeCluster([node("w1", labels={"nvidia.com/gfd.timestamp": "1"})])
    rules = [{"when": ["nvidia.com/gfd.*"], "labels": ["nvidia.com/*"]}]
    result = run(cluster, nodes={"w1": {"nvidia.com/gpu.count": "1"}}, yield_to=rules)
    assert (result["changed"], result["nodes"]["w1"]["yielded"]) == (False, ["nvidia.com/gpu.count"])


def test_yield_to_nfd_leaves_recorded_labels(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("ansible.module_utils.basic.AnsibleModule.warn", lambda _self, text: warnings.append(text))
    annotations = {"nfd.node.kubernetes.io/feature-labels": "nvidia.com/gpu.count"}
    cluster = FakeCluster([node("w1", labels={"nvidia.com/gpu.count": "2"}, annotations=annotations)])
    rule = {"published": ["nvidia.com/gpu.count"], "labels": ["nvidia.com/*"], "compare": ["nvidia.com/gpu.count"]}
    desired = {"w1": {"nvidia.com/gpu.count": "1"}}
    result = run(cluster, nodes=desired, yield_to_nfd=True, yield_to=[{**rule, "tool": "A tool"}])
    assert (result["changed"], result["nodes"]["w1"]["yielded"]) == (False, ["nvidia.com/gpu.count"])
    assert [warning.partition(",")[0] for warning in warnings] == ["Node w1: A tool publishes nvidia.com/gpu.count=2"]
    assert run(cluster, nodes=desired)["changed"] is True


def test_node_with_damaged_record_fails_without_the_others(run: Any) -> None:
    bad = {RECORD_ANNOTATION: "[" * 100000}
    cluster = FakeCluster([node("w1"), node("w2", annotations=bad), node("w3")])
    desired = {name: {"a": "1"} for name in ("w1", "w2", "w3")}
    checked = run(cluster, nodes=desired, _ansible_check_mode=True)
    result = run(cluster, nodes=desired)
    assert checked["failures"] == result["failures"]
    assert (result["failed"], result["changed"], list(result["failures"])) == (True, True, ["w2"])
    assert result["msg"] == result["failures"]["w2"]
    assert result["msg"].startswith("Node w2: annotation gpu-kubernetes/managed-labels cannot be read")
    assert {name: bool(item["metadata"]["labels"]) for name, item in cluster.store_nodes.items()} == {
        "w1": True,
        "w2": False,
        "w3": True,
    }


def test_record_of_reserved_labels_changes_none(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("ansible.module_utils.basic.AnsibleModule.warn", lambda _self, text: warnings.append(text))
    tenant, pool = "node-restriction.kubernetes.io/tenant", "node-restriction.kubernetes.io/pool"
    record = {"me": {tenant: {"set": None, "was": "payments"}, pool: {"set": "gpu", "was": "payments"}}}
    cluster = FakeCluster([node("w1", labels={pool: "gpu"}, annotations={RECORD_ANNOTATION: json.dumps(record)})])
    run(cluster, owner="me", nodes={"w1": {"a": "1"}})
    assert cluster.store_nodes["w1"]["metadata"]["labels"] == {pool: "gpu", "a": "1"}
    assert [text[: text.index(", because")] for text in warnings] == [
        f"Node w1: the labels {pool} stay",
        f"Node w1: the labels {tenant} do not get the former values that the node has recorded",
    ]
    # Named by the administrator, it is removed, and gets no value from the record.
    run(cluster, owner="me", state="absent", nodes={"w1": {pool: "gpu"}})
    assert cluster.store_nodes["w1"]["metadata"]["labels"] == {}
    assert RECORD_ANNOTATION not in cluster.store_nodes["w1"]["metadata"]["annotations"]


def test_api_error_fails_with_one_sentence(run: Any) -> None:
    result = run(FakeCluster([node("w1")]), nodes={"zz": {"a": "1"}})
    assert result["failed"] is True
    assert result["msg"].startswith("Node zz is not in the cluster")
    assert "\n" not in result["msg"]


def test_unknown_node_without_labels_warns(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    monkeypatch.setattr("ansible.module_utils.basic.AnsibleModule.warn", lambda _self, text: warnings.append(text))
    assert run(FakeCluster([]), nodes={"gone": {}})["changed"] is False
    assert warnings == ["Node gone is not in the cluster, so it has no labels to remove."]


def test_named_labels_are_restored_on_their_node_alone(run: Any) -> None:
    """A kubelet can write the record of its node."""
    reserved = "node-restriction.kubernetes.io/tenant"
    record = {
        RECORD_ANNOTATION: json.dumps({"default": {"a": {"set": "1", "was": "0"}, reserved: {"set": "x", "was": None}}})
    }
    cluster = FakeCluster(
        [node(name, labels={"a": "1", reserved: "x"}, annotations=dict(record)) for name in ("w1", "w2")]
    )
    names = {"w1": ["a", reserved]}
    assert run(cluster, nodes={"w1": {}, "w2": {}}, owner_labels=["b"], named=names)["changed"] is True
    assert cluster.store_nodes["w1"]["metadata"]["labels"] == {"a": "0"}
    assert cluster.store_nodes["w2"]["metadata"]["labels"] == {reserved: "x"}
