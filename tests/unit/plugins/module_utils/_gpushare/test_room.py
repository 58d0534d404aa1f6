# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where gpushare's extender puts pods, as arithmetic, and what no GPU has."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.room import (
    allocated_to,
    best_fit,
    free_by_gpu,
    has_room,
    landing,
    percent_of,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.sharing import (
    Sharing,
    SharingResult,
    Trial,
    too_large,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import Smoke


@pytest.mark.parametrize(
    ("free", "amount", "index"),
    [
        ({0: 16}, 3, 0),
        ({0: 2}, 3, None),
        ({}, 1, None),
        ({0: 16, 1: 8, 2: 4}, 5, 1),
        ({0: 16, 1: 8, 2: 4}, 4, 2),
        ({1: 8, 0: 8}, 8, 0),
        ({0: -3, 1: 16}, 1, 1),
    ],
)
def test_the_smallest_that_is_enough_and_the_first_among_equals(free: Any, amount: int, index: Any) -> None:
    assert best_fit(free, amount) == index


@pytest.mark.parametrize(
    ("free", "amounts", "landed"),
    [
        ({0: 16}, [3, 5], [0, 0]),
        ({0: 16, 1: 16}, [3, 5], [0, 0]),
        ({0: 7, 1: 16}, [3, 5], [0, 1]),
        ({0: 7, 1: 16}, [5, 3], [0, 1]),
        ({0: 8, 1: 16}, [3, 5], [0, 0]),
        ({0: 4}, [3, 5], [0, None]),
    ],
)
def test_one_pod_after_the_other(free: Any, amounts: Any, landed: Any) -> None:
    assert landing(free, amounts) == landed


def row_of(*pods: tuple[str, int, int], gpus: int = 2, size: int = 16) -> dict[str, Any]:
    """Make a row from pods of (name, GPU, amount); GPU -1 is not known."""
    used = {index: sum(amount for _name, on, amount in pods if on == index) for index in range(-1, gpus)}
    return {
        "gpus": [{"index": index, "total": size, "allocated": used[index]} for index in range(gpus)],
        "allocated": sum(used.values()),
        "total": gpus * size,
        "pods": [
            {
                "namespace": "default",
                "name": name,
                "terminating": False,
                "gpus": [{"index": index, "allocated": amount}] if index >= 0 else [],
            }
            for name, index, amount in pods
        ],
    }


def test_what_is_free_with_and_without_pods() -> None:
    row = row_of(("a", 0, 3), ("b", 1, 5), ("c", 1, 2), ("d", -1, 1))
    assert free_by_gpu(row, 2) == {0: 13, 1: 9}
    assert free_by_gpu(row, 2, {"default/b", "default/d", "other/a"}) == {0: 13, 1: 14}
    assert free_by_gpu(row, 1, {"default/b"}) == {0: 13}
    assert (percent_of(row, 0), percent_of(row, 1), percent_of(row, 7)) == (18, 43, 0)
    assert allocated_to(row, {"default/b", "default/c"}, 1) == 7
    assert allocated_to(row, {"default/a"}, 1) == 0


@pytest.mark.parametrize(("pending", "room"), [(0, True), (8, True), (9, False)])
def test_what_is_on_no_known_gpu_takes_room_of_the_node(pending: int, room: bool) -> None:
    row = row_of(("a", 0, 16), ("b", -1, pending))
    assert has_room(row, free_by_gpu(row, 2), 8) is room


@pytest.mark.parametrize(
    ("gpus", "used", "capacity", "amount"),
    [
        (1, 0, 16, 17),
        (1, 8, 16, 17),
        (2, 8, 32, 17),
        (2, 15, 32, 17),
        (2, 16, 32, 33),
        # Part of the memory is of an unhealthy GPU, which the extender does not know of.
        (2, 0, 40, 21),
        (2, 16, 40, 41),
    ],
)
def test_what_is_too_large(gpus: int, used: int, capacity: int, amount: int) -> None:
    trial = Trial(SharingResult("w1"), gpus, capacity, row_of(("a", 0, used), gpus=gpus))
    assert too_large(trial) == amount


@pytest.mark.parametrize(("unit", "amounts", "told"), [("GiB", [3, 5], "3 GiB"), ("MiB", [3072, 5120], "3072 MiB")])
def test_amounts_in_units(unit: str, amounts: list[int], told: str) -> None:
    sharing = Sharing(Smoke(image="i", timeout=100)).in_units(unit)
    assert (sharing.amounts, sharing.unit) == (amounts, unit)
    pod = sharing.pod(amounts[0])
    assert (pod.subject, pod.count, pod.resource) == (f"the pod of {told}", amounts[0], "aliyun.com/gpu-mem")
    assert (pod.timeout, pod.lifetime) == (100, 400)
