# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the pods of a strategy with a scheduler extender are restarted."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.extender import (
    find_capacities,
    find_restart,
    merge_extenders,
)

MOMENT = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def before(days):
    return (MOMENT - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


NOW, YESTERDAY = before(0), before(1)


def restart_state(record, *days):
    """A DaemonSet with the time of its restart, and pods of these ages in days."""
    annotations = {} if record is None else {"gpu-kubernetes/restarted": record}
    daemon_set = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
    return [[daemon_set], [{"metadata": {"creationTimestamp": before(each)}} for each in days], []]


#: The state, the age in days at which pods are restarted, and the value of the annotation.
AGES = {
    "young": (restart_state("", 10, 179.9), 180, ""),
    "old": (restart_state("", 10, 180.1), 180, NOW),
    "old-without-a-record": (restart_state(None, 181), 180, NOW),
    "old-again": (restart_state(before(181), 181), 180, NOW),
    # The node is not Ready, and its former pod remains.
    "restarted-since": (restart_state(YESTERDAY, 0, 200), 180, YESTERDAY),
    "other-age": (restart_state("", 6), 5, NOW),
    "never": (restart_state(YESTERDAY, 400), 0, YESTERDAY),
    "extender-alone": ([[], [], [{"metadata": {"creationTimestamp": before(200)}}]], 180, NOW),
    "nothing": ([[], [], []], 180, ""),
    "not-read": ([], 180, ""),
}


@pytest.mark.parametrize(("state", "days", "value"), AGES.values(), ids=AGES)
def test_pods_are_restarted_by_age(state, days, value):
    assert find_restart(state, days, NOW) == value


def row(name, **units):
    return {"name": name, "gpu_capacity": {f"example.com/{key}": amount for key, amount in units.items()}}


RESOURCES = ["example.com/mem", "example.com/count"]


def test_capacities_are_those_of_nodes_with_the_first_resource():
    rows = [row("two", mem=32, count=2), row("none", count=2), row("lost", mem=0), row("new", mem=8, whole=4)]
    assert find_capacities(rows, RESOURCES) == {"two": [32, 2], "new": [8, 0]}
    assert find_capacities(rows, RESOURCES[:1], {"none": ["16"], "two": [64]}) == {
        "two": [64],
        "new": [8],
        "none": [16],
    }


GPUSHARE = {
    "urlPrefix": "http://10.0.0.1:12345/gpushare-scheduler",
    "managedResources": [{"name": "aliyun.com/gpu-mem"}],
}
BY_ADDRESS = {"urlPrefix": "http://other/gpushare-scheduler/"}
NANO = {"urlPrefix": "http://10.0.0.2/scheduler", "managedResources": [{"name": "elasticgpu.io/gpu-core"}]}
OWN = {"urlPrefix": "http://10.0.0.3/scheduler", "managedResources": [{"name": "example.com/part"}]}
ALL = [GPUSHARE, BY_ADDRESS, NANO, OWN]


@pytest.mark.parametrize(
    ("settings", "strategies", "expected"),
    [
        ({}, [], ALL),
        ({}, ["gpushare"], [NANO, OWN]),
        ({}, ["nano_gpu"], [GPUSHARE, BY_ADDRESS, OWN]),
        ({"nano_gpu": {"urlPrefix": "new"}}, ["gpushare", "nano_gpu"], [OWN, {"urlPrefix": "new"}]),
        ({"nano_gpu": {}}, ["nano_gpu"], [GPUSHARE, BY_ADDRESS, OWN]),
    ],
)
def test_extenders_of_a_strategy_are_replaced_and_others_stay(settings, strategies, expected):
    assert merge_extenders(ALL, settings, strategies) == expected
