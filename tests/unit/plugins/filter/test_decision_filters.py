# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions of roles, a table each."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

NAMES = (
    *("allocated_nodes", "driver_managed", "driver_test", "keys_where", "kubelet_stability", "lease_seconds"),
    *(
        "has_unknown_objects",
        "kubelet_problem",
        "unavailable_nodes",
        "unconnected_gpus",
        "values_of",
    ),
)
FILTERS: dict[str, Any] = {
    name: getattr(importlib.import_module(f"ansible_collections.gpu.kubernetes.plugins.filter.{name}"), name)
    for name in NAMES
}


@pytest.mark.parametrize(
    ("values", "options", "keys"),
    [
        ({"a": 1, "b": 0, "c": "x"}, {}, ["a", "c"]),
        ({"a": 1, "b": 0, "c": []}, {"expected": False}, ["b", "c"]),
        ({"a": {"changed": True}, "b": {"changed": False}, "c": {}}, {"field": "changed"}, ["a"]),
        ({"a": {"url": "x"}, "b": {"url": ""}, "c": {}}, {"field": "url", "expected": False}, ["b", "c"]),
        ({}, {}, []),
    ],
)
def test_keys_where_returns_keys_of_true_values(values: Any, options: Any, keys: list[str]) -> None:
    assert FILTERS["keys_where"](values, **options) == keys


def test_allocated_nodes_are_those_of_any_result() -> None:
    def result(**allocated: int) -> dict[str, Any]:
        return {"nodes": [{"name": name, "allocated": count} for name, count in allocated.items()]}

    results = [result(b=1, a=0), result(b=2, a=3, c=0)]
    assert FILTERS["allocated_nodes"](results) == ["a", "b"]
    assert FILTERS["allocated_nodes"](results, without=["b", "x"]) == ["a"]


def test_unavailable_nodes_are_not_ready_or_cordoned() -> None:
    states = {"d": (True, True), "c": (False, True), "b": (True, False), "a": (False, False)}
    nodes = [{"name": name, "ready": ready, "schedulable": may} for name, (ready, may) in states.items()]
    assert FILTERS["unavailable_nodes"](nodes) == ["a", "b", "c"]


def test_services_of_users_are_services_among_the_programs() -> None:
    users = ["nv-fabricmanage", "python", "nvidia-persiste", "nv-fabricmanage"]
    services = {"nvidia-persiste": "nvidia-persistenced", "nv-fabricmanage": "nvidia-fabricmanager", "x": "y"}
    assert FILTERS["values_of"](users, services) == ["nvidia-fabricmanager", "nvidia-persistenced"]


def test_packages_of_parts_are_listed_once() -> None:
    packages = {"libraries": ["a", "b"], "open": ["b", "c"], "headers": [], "persistence": "d"}
    parts = ["libraries", "open", "headers", "persistence", "fabric_manager"]
    assert FILTERS["values_of"](parts, packages) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("state", "exits", "attempts", "failing", "stable"),
    [
        ("active", 0, 5, False, False),
        ("active", 0, 6, False, True),
        # After an exit, as many reads again.
        ("active", 1, 10, False, False),
        ("active", 1, 11, False, True),
        ("active", 2, 99, True, False),
        ("activating", 0, 99, False, False),
        ("failed", 0, 99, True, False),
        ("inactive", 0, 1, True, False),
    ],
)
def test_kubelet_is_stable_after_reads_without_an_exit(
    state: str, exits: int, attempts: int, failing: bool, stable: bool
) -> None:
    found = FILTERS["kubelet_stability"](
        {"ActiveState": state, "NRestarts": str(3 + exits)}, {"NRestarts": "3"}, attempts, 5
    )
    assert found == {"exits": exits, "failing": failing, "stable": stable}


def test_kubelet_without_an_answer_of_systemd_is_neither_stable_nor_failing() -> None:
    assert FILTERS["kubelet_stability"]({}, {}, 1, 5) == {"exits": 0, "failing": False, "stable": False}


WORKING = {"method": "", "operated": [], "licensed": False, "recorded": False, "works": True}


@pytest.mark.parametrize(
    ("more", "managed"),
    [
        ({}, False),
        ({"works": False}, True),
        ({"method": "package"}, True),
        ({"licensed": True}, True),
        ({"recorded": True}, True),
        ({"method": "none", "works": False, "recorded": True}, False),
        ({"method": "package", "operated": ["driver"], "works": False}, False),
        ({"works": False, "operated": ["device_plugin"]}, True),
    ],
)
def test_working_driver_of_others_is_not_managed(more: dict[str, Any], managed: bool) -> None:
    assert FILTERS["driver_managed"]({**WORKING, **more}) is managed


@pytest.mark.parametrize(
    ("hosts", "forks", "seconds"), [(1, 5, 3700), (5, 5, 3700), (6, 5, 7300), (11, "5", 10900), (3, 1, 10900)]
)
def test_lease_lasts_an_hour_for_each_round_of_hosts(hosts: int, forks: Any, seconds: int) -> None:
    assert FILTERS["lease_seconds"](hosts, {"forks": forks, "jobs": "60", "evictions": 40}) == seconds


@pytest.mark.parametrize(
    ("allocatable", "requested", "resources", "unverified"),
    [
        ({"nvidia.com/gpu": 8}, True, ["nvidia.com/gpu"], ""),
        ({"nvidia.com/gpu": 8}, False, ["nvidia.com/gpu"], "nvidia_driver_upgrade_smoke_test is false"),
        ({}, True, [], "the node reported no GPUs before"),
        ({"nvidia.com/mig-1g.5gb": 7, "example.com/gpu": 2}, True, ["example.com/gpu", "nvidia.com/mig-1g.5gb"], ""),
        (
            {"b.com/share": 1, "a.com/share": 1},
            True,
            [],
            "the node reports a.com/share, b.com/share, which the test does not request",
        ),
    ],
)
def test_driver_test_requests_a_resource_of_the_default_scheduler(
    allocatable: dict[str, int], requested: bool, resources: list[str], unverified: str
) -> None:
    found = FILTERS["driver_test"](allocatable, "example.com/gpu", requested)
    assert found == {"resources": resources, "unverified": unverified}


def test_unconnected_gpus_have_a_fabric_that_is_not_ready() -> None:
    states = {"a": "completed", "b": "in_progress", "c": "not_supported", "d": "not_started"}
    gpus = [{"pci_address": address, "fabric": {"state": state}} for address, state in states.items()]
    others = [{"pci_address": "e"}, {"pci_address": "f", "fabric": None}]
    assert FILTERS["unconnected_gpus"]({"gpus": [*gpus, *others]}) == ["b", "d"]
    assert FILTERS["unconnected_gpus"]({}) == []


@pytest.mark.parametrize(
    ("loops", "unknown"),
    [
        ([{}, {"results": [{"changed": True, "id": 1}, {"changed": False}]}], False),
        ([{"results": [{"changed": True, "id": 1}]}, {"results": [{"changed": True}]}], True),
        ([{"results": [{"skipped": True}]}], False),
    ],
)
def test_objects_that_check_mode_would_create_are_unknown(loops: list[dict[str, Any]], unknown: bool) -> None:
    assert FILTERS["has_unknown_objects"](loops) is unknown


def find_node(status: str = "True", reported: str = "12:01", **more: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": status, "lastHeartbeatTime": reported, **more}
    amounts = {"cpu": "4", "memory": "8Gi"}
    node = {"status": {"conditions": [ready], "capacity": amounts, "allocatable": {**amounts, "cpu": "3500m"}}}
    return {"found": [[node]]}


@pytest.mark.parametrize(
    ("result", "reserved", "problem"),
    [
        ({"msg": "refused"}, "500m", "the API server cannot be queried (refused)"),
        ({}, "500m", "the API server cannot be queried (no answer)"),
        ({"found": [[]]}, "500m", "the cluster has no node n1"),
        (find_node(reported="12:00"), "500m", "the kubelet has not reported"),
        (find_node("False", message="no CNI"), "500m", "the node is not Ready (no CNI)"),
        (find_node("Unknown"), "500m", "the node is not Ready (no reason given)"),
        (find_node(), "500m", ""),
        (find_node(), "1", "the node reports "),
        # A former configuration is not compared.
        (find_node(), "", ""),
    ],
)
def test_kubelet_problem_is_the_first_that_the_node_shows(result: Any, reserved: str, problem: str) -> None:
    planned = {"reserved": {"kubeReserved": {"cpu": reserved}}, "resources": ["cpu"]} if reserved else {}
    found = FILTERS["kubelet_problem"](result, "n1", "12:00", planned)
    assert found.startswith(problem)
    assert bool(found) is bool(problem)
