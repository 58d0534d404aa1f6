# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The smoke test of pods that share GPUs while others or the API server disturb it: no pod stays, and other nodes are tested."""

from __future__ import annotations

import itertools
from typing import Any, Iterator

import pytest
from fakes.kubernetes_api import FakeCluster
from fakes.sharing_cluster import AWAY, FakeSharing, shared_node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.runner import run_smoke_test
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubernetes.smoke_test.sharing_runs import (
    LARGE,
    SMALL,
    TEST,
    TOO_MUCH,
    make_timing,
    requests,
    run,
)


@pytest.mark.parametrize("amount", [SMALL, LARGE, TOO_MUCH])
def test_refused_pod_fails_only_its_node(amount: int) -> None:
    cluster = FakeSharing([shared_node("w1"), shared_node("w2")])
    place = cluster.on_create

    def reject(made: dict[str, Any]) -> None:
        if "w1" in str(made["spec"]["affinity"]) and cluster.request_of(made) == amount:
            raise ApiError('pod rejected: RuntimeClass "nvidia" not found', 403)
        place(made)

    cluster.on_create = reject
    first, second = run(cluster, nodes=["w1", "w2"])
    assert (first.passed, second.passed) == (False, True)
    assert f"the API server refused the pod with {amount} aliyun.com/gpu-mem: pod rejected" in first.reason


@pytest.mark.parametrize("amount", [SMALL, LARGE, TOO_MUCH])
def test_deleted_pod_fails_the_node(amount: int) -> None:
    cluster = FakeSharing([shared_node("w1")])

    def delete_pods(_cluster: FakeCluster) -> None:
        cluster.store_pods = [item for item in cluster.store_pods if cluster.request_of(item) != amount]

    cluster.on_list = delete_pods
    result = run(cluster)
    assert not result.passed
    assert "was deleted by others during the test" in result.reason


def test_node_that_fails_does_not_affect_others() -> None:
    cluster = FakeSharing([shared_node("w1"), shared_node("w2")])
    cluster.refusal = lambda made: AWAY if "w1" in str(made["spec"]["affinity"]) else ""
    first, second = run(cluster, nodes=["w1", "w2"])
    assert (first.passed, second.passed, requests(cluster)) == (False, True, [SMALL, SMALL, LARGE, TOO_MUCH])


@pytest.mark.parametrize("error", [ApiError("forbidden", 403), KeyboardInterrupt()], ids=["forbidden", "interrupted"])
def test_run_that_ends_at_any_list_of_pods_leaves_no_pod(error: BaseException) -> None:
    created: set[int] = set()
    for last in range(1, 5):  # the fifth list is that of the deletion
        cluster = FakeSharing([shared_node("w1")])
        lists = itertools.count(1)

        def interrupt(_cluster: FakeCluster, lists: Iterator[int] = lists, last: int = last) -> None:
            if next(lists) == last:
                raise error

        cluster.on_list = interrupt
        with pytest.raises(type(error)):
            run_smoke_test(cluster, TEST, ["w1"], make_timing())
        assert cluster.store_pods == [], f"list {last}"
        created.add(len(cluster.created))
    assert created == {0, 1, 3}


@pytest.mark.parametrize("status", [0, 503])
@pytest.mark.parametrize("last", [3, 4])
def test_server_that_fails_during_a_wait_is_retried(status: int, last: int) -> None:
    cluster = FakeSharing([shared_node("w1")])
    lists: list[int] = []

    def interrupt(_cluster: FakeCluster) -> None:
        lists.append(1)
        if len(lists) == last:
            raise ApiError("cannot be reached", status)

    cluster.on_list = interrupt
    assert run(cluster).passed
    assert len(lists) > last


def test_server_that_fails_between_pods_ends_the_run_without_pods() -> None:
    cluster = FakeSharing([shared_node("w1")])
    place = cluster.on_create

    def fail(made: dict[str, Any]) -> None:
        if cluster.request_of(made) == LARGE:
            raise ApiError("cannot be reached", 0)
        place(made)

    cluster.on_create = fail
    with pytest.raises(ApiError):
        run_smoke_test(cluster, TEST, ["w1"], make_timing())
    assert cluster.store_pods == []
