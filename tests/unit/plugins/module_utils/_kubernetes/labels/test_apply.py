# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labelling many nodes: few calls, all or nothing before the first patch, and races."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.apply import (
    ATTEMPTS,
    MAX_SHOWN,
    LabelRun,
    Outcome,
    build_diff,
    explain_failures,
    label_nodes,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import (
    RECORD_ANNOTATION,
    LabelError,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import API_SECONDS, Timing


def labels(cluster: FakeCluster, name: str) -> dict[str, Any]:
    return dict(cluster.store_nodes[name]["metadata"]["labels"])


def label(cluster: FakeCluster, desired: Any, check_mode: bool = False, clock: FakeClock | None = None) -> Outcome:
    clock = clock or FakeClock()
    return label_nodes(cluster, LabelRun(desired, "me"), check_mode, Timing(clock, clock.sleep))


def test_label_nodes_with_equal_nodes_patches_only_the_others() -> None:
    cluster = FakeCluster([node(f"w{number}", labels={"a": "1"} if number % 2 else {}) for number in range(20)])
    outcome = label(cluster, {f"w{number}": {"a": "1"} for number in range(20)})
    assert sum(item.changed for item in outcome.plans) == 10
    assert cluster.calls.count("nodes") == 1
    assert len(cluster.calls) == 11
    assert all(labels(cluster, f"w{number}") == {"a": "1"} for number in range(20))


def test_label_nodes_in_check_mode_patches_nothing() -> None:
    cluster = FakeCluster([node("w1")])
    predicted = label(cluster, {"w1": {"a": "1"}}, check_mode=True).plans
    assert cluster.calls == ["node"]
    done = label(cluster, {"w1": {"a": "1"}}).plans
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
        label(cluster, desired)
    assert labels(cluster, "w1") == {}


def test_label_nodes_without_labels_for_unknown_node_warns() -> None:
    outcome = label(FakeCluster([node("w1")]), {"w1": {}, "gone": {}})
    assert [item.node for item in outcome.plans] == ["w1"]
    assert "Node gone" in outcome.warnings[0]
    cluster = FakeCluster([node("w1")])
    assert label(cluster, {"gone": {}}) == Outcome(warnings=outcome.warnings)
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
    assert label(cluster, {"w1": {"a": "1"}}).failures == {}
    assert labels(cluster, "w1") == {"a": "1", "foreign": "x"}
    assert len(calls) == 2


@pytest.mark.parametrize(("status", "attempts"), [(409, ATTEMPTS), (403, 1)])
def test_label_nodes_with_rejected_patch_labels_the_others(status: int, attempts: int) -> None:
    cluster = FakeCluster([node("w1"), node("w2")])

    def refuse(name: str) -> None:
        if name == "w1":
            raise ApiError("no", status)

    cluster.on_patch = refuse
    outcome = label(cluster, {"w1": {"a": "1"}, "w2": {"a": "1"}})
    assert outcome.failures == {"w1": "no"}
    assert [item.node for item in outcome.plans] == ["w2"]
    assert cluster.calls.count("patch w1") == attempts
    assert labels(cluster, "w2") == {"a": "1"}


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_label_nodes_with_busy_server_retries(status: int) -> None:
    cluster, clock = FakeCluster([node("w1")]), FakeClock()

    def refuse(_name: str) -> None:
        if clock() < 10:
            raise ApiError("busy", status)

    cluster.on_patch = refuse
    assert label(cluster, {"w1": {"a": "1"}}, clock=clock).failures == {}
    assert labels(cluster, "w1") == {"a": "1"}
    assert cluster.calls.count("patch w1") == 5, "the pauses grow"


def test_label_nodes_with_server_that_stays_busy_has_one_limit() -> None:
    cluster, clock = FakeCluster([node(f"w{number}") for number in range(50)]), FakeClock()

    def refuse(_name: str) -> None:
        raise ApiError("busy", 429)

    cluster.on_patch = refuse
    outcome = label(cluster, {f"w{number}": {"a": "1"} for number in range(50)}, clock=clock)
    assert len(outcome.failures) == 50
    assert clock() <= API_SECONDS * 3, "as the threads add to one clock"
    assert explain_failures(outcome.failures) == f"busy {50 - MAX_SHOWN} more nodes could not be labelled."


def test_label_nodes_with_damaged_record_labels_the_others() -> None:
    nodes = [node("w1", annotations={RECORD_ANNOTATION: "[" * 100000}), node("w2")]
    cluster = FakeCluster(nodes)
    outcome = label(cluster, {"w1": {"a": "1"}, "w2": {"a": "1"}})
    assert list(outcome.failures) == ["w1"]
    assert (labels(cluster, "w1"), labels(cluster, "w2")) == ({}, {"a": "1"})
