# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof of shared GPUs leaves a clean floor, and a node that fails keeps no other from its test."""

from __future__ import annotations

import itertools
from typing import Any, Iterator

import pytest
from fakes.gpushare_cluster import AWAY, FakeGpushare, request_of, shared_node
from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.proving import (
    remove_sharing_pods,
    run_sharing_test,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.sharing import NAME
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import LABELS, labels_for
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import run_smoke_test
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._gpushare.prover import (
    SHARING,
    SMOKE,
    pace,
    prove,
)


@pytest.mark.parametrize("amount", [3, 5, 17])
def test_a_refused_pod_fails_only_its_node(amount: int) -> None:
    cluster = FakeGpushare([shared_node("w1"), shared_node("w2")])
    place = cluster.on_create

    def refuse(made: dict[str, Any]) -> None:
        if "w1" in str(made["spec"]["affinity"]) and request_of(made) == amount:
            raise ApiError('pod rejected: RuntimeClass "nvidia" not found', 403)
        place(made)

    cluster.on_create = refuse
    first, second = prove(cluster, nodes=["w1", "w2"])
    assert (first.passed, second.passed) == (False, True)
    assert f"the API server refused the pod of {amount} GiB: pod rejected" in first.reason


@pytest.mark.parametrize("error", [ApiError("forbidden", 403), KeyboardInterrupt()], ids=["forbidden", "interrupted"])
def test_a_run_that_ends_at_any_list_of_pods_leaves_none_behind(error: BaseException) -> None:
    created: set[int] = set()
    for last in range(1, 9):  # the ninth list is the clean-up's own
        cluster = FakeGpushare([shared_node("w1")])
        lists = itertools.count(1)

        def interrupt(_cluster: FakeCluster, lists: Iterator[int] = lists, last: int = last) -> None:
            if next(lists) == last:
                raise error

        cluster.on_list = interrupt
        with pytest.raises(type(error)):
            run_sharing_test(cluster, SHARING, ["w1"], pace())
        assert cluster.store_pods == [], f"list {last}"
        created.add(len(cluster.created))
    assert created == {0, 1, 2, 3}


@pytest.mark.parametrize("status", [0, 429, 503])
@pytest.mark.parametrize("last", [3, 5, 7])
def test_an_api_server_that_is_away_for_a_moment_is_waited_for(status: int, last: int) -> None:
    cluster = FakeGpushare([shared_node("w1")])
    lists: list[int] = []

    def interrupt(_cluster: FakeCluster) -> None:
        lists.append(1)
        if len(lists) == last:
            raise ApiError("gone away", status)

    cluster.on_list = interrupt
    result = prove(cluster)
    assert (result.passed, result.percent) == (True, [0, 18, 50])
    assert len(lists) > last


def test_an_api_server_that_goes_away_between_pods() -> None:
    cluster = FakeGpushare([shared_node("w1")])
    place = cluster.on_create

    def away(made: dict[str, Any]) -> None:
        if request_of(made) == 5:
            raise ApiError("cannot be reached", 0)
        place(made)

    cluster.on_create = away
    with pytest.raises(ApiError):
        run_sharing_test(cluster, SHARING, ["w1"], pace())
    assert cluster.store_pods == []


def test_leftovers_are_swept_up_and_only_those_of_this_test() -> None:
    def old(name: str, labels: dict[str, str]) -> dict[str, Any]:
        return pod(name, labels=labels, created="2025-12-31T00:00:00Z", activeDeadlineSeconds=60)

    young = pod("young", labels=labels_for(NAME), created="2026-01-01T00:59:30Z", activeDeadlineSeconds=600)
    cluster = FakeGpushare([node("w1")], [old("ours", labels_for(NAME)), old("theirs", dict(LABELS)), young])
    assert run_sharing_test(cluster, SHARING, [], pace(), check_mode=True).removed_leftovers == ["ours"]
    assert len(cluster.store_pods) == 3
    assert run_sharing_test(cluster, SHARING, [], pace()).removed_leftovers == ["ours"]
    assert run_smoke_test(cluster, SMOKE, [], pace()).removed_leftovers == ["theirs"]
    assert remove_sharing_pods(cluster, "default", pace()).removed_leftovers == ["young"]
    assert cluster.store_pods == []


@pytest.mark.parametrize("amount", [3, 5, 17])
def test_a_pod_deleted_by_somebody_else(amount: int) -> None:
    cluster = FakeGpushare([shared_node("w1")])

    def vanish(_cluster: FakeCluster) -> None:
        cluster.store_pods = [item for item in cluster.store_pods if request_of(item) != amount]

    cluster.on_list = vanish
    result = prove(cluster)
    assert not result.passed
    assert "somebody deleted the pod default/gpushare-smoke-test-" in result.reason
    assert len(cluster.created) == {3: 1, 5: 2, 17: 3}[amount]


def test_a_node_that_fails_keeps_no_other_from_its_test() -> None:
    cluster = FakeGpushare([shared_node("w1"), shared_node("w2")])
    cluster.refusal = lambda made: AWAY if "w1" in str(made["spec"]["affinity"]) else ""
    first, second = prove(cluster, nodes=["w1", "w2"])
    assert (first.passed, second.passed, second.percent) == (False, True, [0, 18, 50])
    assert len(first.pods) == 1
