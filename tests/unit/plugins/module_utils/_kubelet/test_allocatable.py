# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import allocatable

# As kubelet 1.34 reports a node with evictionHard memory.available 100Mi and nodefs.available 10%.
NODE: dict[str, t.Any] = {
    "status": {
        "capacity": {
            "cpu": "8",
            "memory": "32865216Ki",
            "ephemeral-storage": "61255492Ki",
            "hugepages-1Gi": "0",
            "nvidia.com/gpu": "2",
            "pods": "110",
        },
        "allocatable": {"cpu": "8", "memory": "32762816Ki", "ephemeral-storage": "56453061334"},
    }
}
DEFAULTS = {"memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "15%"}


def compute_parts(**reserved: t.Any) -> dict[str, allocatable.Part]:
    """Compute the allocatable parts of NODE."""
    found = allocatable.parts(NODE, {"evictionHard": DEFAULTS, **reserved}, allocatable.RESOURCES)
    return {part.resource: part for part in found}


def pod(phase: str = "Running", **requests: str) -> dict[str, t.Any]:
    return {"spec": {"containers": [{"resources": {"requests": requests}}]}, "status": {"phase": phase}}


def test_node_without_reservations_has_no_difference() -> None:
    assert allocatable.find_differences(compute_parts().values()) == []


def test_reservations_reduce_allocatable() -> None:
    known = compute_parts(
        kubeReserved={"cpu": "500m", "memory": "1Gi"},
        systemReserved={"cpu": "1", "ephemeral-storage": "1Gi", "pid": "100"},
        evictionHard={"memory.available": "1%", "nodefs.available": "0%", "nodefs.inodesFree": "5%"},
    )
    assert known["cpu"].expected * 10 == 65
    assert known["memory"].expected == (32865216 - (1 << 20)) * 1024 - int(32865216 * 1024 * 0.009999999776482582)
    assert known["ephemeral-storage"].expected == (61255492 - (1 << 20)) * 1024
    assert allocatable.find_excess(known.values()) == []
    assert allocatable.find_differences(known.values()) == [
        "8 of cpu instead of 6.5",
        "31.25Gi of memory instead of 30.03Gi",
        "52.58Gi of ephemeral-storage instead of 57.42Gi",
    ]


def test_small_difference_is_exact() -> None:
    node = {"status": {"capacity": {"memory": "4Gi"}, "allocatable": {"memory": "4194303Ki"}}}
    known = allocatable.parts(node, {}, ["memory"])
    assert allocatable.find_differences(known) == ["4294966272 of memory instead of 4294967296"]


def test_excess_reservations_are_found() -> None:
    known = compute_parts(kubeReserved={"memory": "500Gi", "cpu": "4"}, systemReserved={"cpu": "4"})
    assert known["memory"].expected == 0
    assert allocatable.find_excess(known.values()) == ["500.1Gi of memory, of which it has 31.34Gi"]
    assert allocatable.find_shortages([known["memory"]], [pod(memory="1Gi")]) == []
    assert compute_parts(kubeReserved={"cpu": "9"})["cpu"].expected == 0


def test_shortages_of_running_pods_are_found() -> None:
    pods = [pod(cpu="3", memory="1Gi"), pod(cpu="3500m"), pod("Succeeded", cpu="8"), pod()]
    assert allocatable.find_shortages(compute_parts(kubeReserved={"cpu": "1500m"}).values(), pods) == []
    assert allocatable.find_shortages(compute_parts(kubeReserved={"cpu": "1501m"}).values(), pods) == [
        "6.5 of cpu, of which 6.499 would be left"
    ]
    # pods that do not fit before the change are not a shortage
    assert allocatable.find_shortages(compute_parts().values(), [*pods, *pods]) == []


def test_huge_pages_are_not_memory_for_pods() -> None:
    node = {
        "status": {"capacity": {"memory": "4Gi", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "1Gi"}, "allocatable": {}}
    }
    [part] = allocatable.parts(node, {}, ["memory", "cpu"])
    assert (part.format(part.expected), part.format(part.reported), part.fits) == ("2Gi", "nothing", True)


@pytest.mark.parametrize(
    ("text", "reserved"), [("nonsense", 0), ("200%", 0), ("0%", 0), ("100%", 0), ("50%", 2 << 30), ("1Gi", 1 << 30)]
)
def test_threshold_reserves_amount(text: str, reserved: int) -> None:
    node = {"status": {"capacity": {"memory": "4Gi"}}}
    [part] = allocatable.parts(node, {"evictionHard": {"memory.available": text}}, ["memory"])
    assert part.reserved == reserved
