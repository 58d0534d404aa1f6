# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labelling many nodes: few calls, all or nothing before the first patch, and races."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.apply import (
    ATTEMPTS,
    build_diff,
    label_nodes,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.plan import LabelError


def labels(cluster: FakeCluster, name: str) -> dict[str, Any]:
    return dict(cluster.store_nodes[name]["metadata"]["labels"])


def test_label_nodes_with_equal_nodes_patches_only_the_others() -> None:
    cluster = FakeCluster([node(f"w{number}", labels={"a": "1"} if number % 2 else {}) for number in range(20)])
    plans, _warnings = label_nodes(cluster, {f"w{number}": {"a": "1"} for number in range(20)}, "me")
    assert sum(item.changed for item in plans) == 10
    assert cluster.calls.count("nodes") == 1
    assert len(cluster.calls) == 11
    assert all(labels(cluster, f"w{number}") == {"a": "1"} for number in range(20))


def test_label_nodes_in_check_mode_patches_nothing() -> None:
    cluster = FakeCluster([node("w1")])
    predicted, _left = label_nodes(cluster, {"w1": {"a": "1"}}, "me", check_mode=True)
    assert cluster.calls == ["node"]
    done, _left = label_nodes(cluster, {"w1": {"a": "1"}}, "me")
    assert build_diff(predicted) == build_diff(done)
    assert build_diff(done)["after"] == {"w1": {"a": "1"}}


@pytest.mark.parametrize(
    ("desired", "word"),
    [
        ({"w1": {"a": "1"}, "zz": {"a": "1"}}, r"Node zz is not in the cluster at https://api.test:6443 \(it has w1\)"),
        ({"zz": {"a": "1"}}, r"Node zz is not in the cluster at https://api.test:6443 \(it has w1\)"),
        ({"w1": {"a": "1"}, "w2": {"b": "has blank"}}, "Node w2: 'has blank' is not a valid value"),
    ],
)
def test_label_nodes_with_invalid_input_patches_nothing(desired: Any, word: str) -> None:
    cluster = FakeCluster([node("w1")])
    with pytest.raises(LabelError, match=word):
        label_nodes(cluster, desired, "me")
    assert labels(cluster, "w1") == {}


def test_label_nodes_without_labels_for_unknown_node_warns() -> None:
    plans, warnings = label_nodes(FakeCluster([node("w1")]), {"w1": {}, "gone": {}}, "me")
    assert [item.node for item in plans] == ["w1"]
    assert "Node gone" in warnings[0]
    cluster = FakeCluster([node("w1")])
    assert label_nodes(cluster, {"gone": {}}, "me") == ([], warnings)
    assert cluster.calls == ["node"], "other nodes are not read"


def test_label_nodes_with_conflict_plans_again() -> None:
    cluster = FakeCluster([node("w1")])
    calls = []

    def race(name: str) -> None:
        calls.append(name)
        if len(calls) == 1:
            cluster.store_nodes[name]["metadata"]["resourceVersion"] = "9"
            cluster.store_nodes[name]["metadata"]["labels"]["foreign"] = "x"

    cluster.on_patch = race
    label_nodes(cluster, {"w1": {"a": "1"}}, "me")
    assert labels(cluster, "w1") == {"a": "1", "foreign": "x"}
    assert len(calls) == 2


@pytest.mark.parametrize(("status", "attempts"), [(409, ATTEMPTS), (403, 1)])
def test_label_nodes_with_error_stops_after_attempts(status: int, attempts: int) -> None:
    cluster = FakeCluster([node("w1")])

    def refuse(_name: str) -> None:
        raise ApiError("no", status)

    cluster.on_patch = refuse
    with pytest.raises(ApiError):
        label_nodes(cluster, {"w1": {"a": "1"}}, "me")
    assert cluster.calls.count("patch w1") == attempts
