# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pods request, by the rule of kube-scheduler."""

from __future__ import annotations

import typing as t
from fractions import Fraction

import pytest
from fakes.kubernetes_api import GPU, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.requests import (
    count_allocated,
    count_requested,
    list_holders,
    list_requested_resources,
    list_resources,
    sum_requests,
)


def container(cpu: str | None, sidecar: bool = False, limit: str | None = None) -> dict[str, t.Any]:
    """A container that requests CPUs; without a request or a limit it has none."""
    parts = {"requests": cpu, "limits": limit}
    resources = {kind: {"cpu": amount} for kind, amount in parts.items() if amount is not None}
    return {"resources": resources, **({"restartPolicy": "Always"} if sidecar else {})}


ONE, TWO, THREE = (container(str(number)) for number in (1, 2, 3))
SIDECAR = container("1", sidecar=True)
CASES: dict[str, tuple[dict[str, t.Any], str]] = {
    "nothing": ({}, "0"),
    "no lists": ({"containers": None, "initContainers": None, "overhead": None, "resources": None}, "0"),
    "containers run together": ({"containers": [container("500m"), ONE, container(None)]}, "3/2"),
    "init containers run one by one": ({"containers": [ONE], "initContainers": [THREE, TWO]}, "3"),
    "init containers need less": ({"containers": [TWO, TWO], "initContainers": [THREE]}, "4"),
    "sidecars run with the containers": ({"containers": [ONE], "initContainers": [SIDECAR, SIDECAR]}, "3"),
    "sidecar before a small init container": (
        {"containers": [ONE], "initContainers": [SIDECAR, container("500m")]},
        "2",
    ),
    "sidecar before an equal init container": (
        {"containers": [container(None)], "initContainers": [SIDECAR, ONE]},
        "2",
    ),
    "sidecar before a large init container": ({"containers": [ONE], "initContainers": [SIDECAR, THREE]}, "4"),
    "sidecar after a large init container": ({"containers": [ONE], "initContainers": [THREE, SIDECAR]}, "3"),
    "sidecars around an init container": ({"containers": [ONE], "initContainers": [SIDECAR, THREE, SIDECAR]}, "4"),
    "overhead on top of the containers": ({"containers": [ONE], "overhead": {"cpu": "250m"}}, "5/4"),
    "overhead on top of init containers": (
        {"containers": [ONE], "initContainers": [SIDECAR, THREE], "overhead": {"cpu": "250m"}},
        "17/4",
    ),
    "the pod's own request": ({"containers": [ONE], "resources": {"requests": {"cpu": "4"}}}, "4"),
    "the pod's own request with overhead": (
        {"containers": [ONE], "resources": {"requests": {"cpu": "4"}}, "overhead": {"cpu": "1"}},
        "5",
    ),
    "a limit without a request": ({"containers": [container(None, limit="2")]}, "2"),
    "a limit above the request": ({"containers": [container("1", limit="2")]}, "1"),
    "not a quantity": ({"containers": [container("nonsense"), ONE]}, "1"),
}


@pytest.mark.parametrize(("spec", "amount"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown", ""])
def test_sum_requests_of_an_unfinished_pod(spec: dict[str, t.Any], amount: str, phase: str) -> None:
    assert sum_requests({"spec": spec, "status": {"phase": phase}}, "cpu") == Fraction(amount)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_sum_requests_of_finished_pod_is_zero(phase: str) -> None:
    finished = pod("p", on="w", gpus=1, status={"phase": phase}, overhead={GPU: "1"})
    assert sum_requests(finished, GPU) == 0
    assert count_requested(finished, GPU) == 0
    assert list_requested_resources(finished) == set()


def test_sum_requests_of_other_resource_is_zero() -> None:
    assert sum_requests(pod("p", gpus=2), "cpu") == 0
    assert sum_requests({}, GPU) == 0


def test_count_requested_rounds_up_after_the_sum() -> None:
    halves = [{"resources": {"limits": {GPU: "500m"}}}] * 3
    assert count_requested({"spec": {"containers": halves}}, GPU) == 2
    assert count_requested({"spec": {"containers": [{"resources": {"limits": {GPU: "-1"}}}]}}, GPU) == 0


def test_count_allocated_ignores_pods_without_node() -> None:
    pods = [pod("b", on="w", gpus=2), pod("waiting", gpus=4), pod("none", on="w"), pod("a", on="w", gpus=1)]
    assert count_allocated(pods, GPU) == 3
    assert list_holders(pods, GPU) == ["default/a", "default/b"]


def test_list_resources_of_all_containers() -> None:
    init = [{"resources": {"limits": {"a/x": "0"}, "requests": {"a/y": "1"}}}, {}]
    made = pod("p", gpus=1, initContainers=init)
    assert list_resources(made) == {GPU, "a/x", "a/y"}
    assert list_requested_resources(made) == {GPU, "a/y"}
