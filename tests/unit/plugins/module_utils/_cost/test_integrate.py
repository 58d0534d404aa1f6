# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hours of segments: allocated, idle, wasted and without load data."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import (
    Held,
    Hours,
    Segment,
    State,
    Usage,
    integrate,
)

A100, T4 = "NVIDIA-A100", "Tesla-T4"
HOUR = 3600


def hold(namespace: str, node: str, gpus: float, resource: str = "nvidia.com/gpu") -> Held:
    return Held(namespace, node, resource, "GPUs", gpus, gpus)


def add_up(*segments: Segment, start: float = 0, end: float = 24 * HOUR, **more: Any) -> Usage:
    return integrate(segments, start, end, **more)


def get_hours(hours: Hours) -> dict[str, float]:
    """The hours that are not 0."""
    return {name: round(value, 6) for name, value in vars(hours).items() if value}


# Eight GPUs: pods hold some for an hour; (GPUs with known load, with load) -> hours.
CASES: dict[str, tuple[float, float, tuple[float, float] | None, dict[str, float]]] = {
    "nothing is held": (8, 0, (8, 0), {"gpu": 8, "idle": 8}),
    "all are held and have a load": (8, 8, (8, 8), {"gpu": 8, "allocated": 8}),
    "all are held and two have a load": (8, 8, (8, 2), {"gpu": 8, "allocated": 8, "wasted": 6}),
    "half is held and has a load": (8, 4, (8, 4), {"gpu": 8, "allocated": 4, "idle": 4}),
    "half is held, three have a load": (8, 4, (8, 3), {"gpu": 8, "allocated": 4, "idle": 4, "wasted": 1}),
    # Programs outside pods use free GPUs.
    "more have a load than are held": (8, 2, (8, 5), {"gpu": 8, "allocated": 2, "idle": 6}),
    "half of a GPU is held without load": (1, 0.5, (1, 0), {"gpu": 1, "allocated": 0.5, "idle": 0.5, "wasted": 0.5}),
    "half of a GPU is held with load": (1, 0.5, (1, 1), {"gpu": 1, "allocated": 0.5, "idle": 0.5}),
    "no load is known": (8, 4, None, {"gpu": 8, "allocated": 4, "idle": 4, "unmeasured": 4}),
    "the load of one is not known": (8, 8, (7, 0), {"gpu": 8, "allocated": 8, "wasted": 7, "unmeasured": 1}),
    "more are held than there are": (1, 1.5, (1, 1), {"gpu": 1, "allocated": 1.5, "unmeasured": 0.5}),
}


@pytest.mark.parametrize(("gpus", "allocated", "load", "expected"), CASES.values(), ids=CASES)
def test_hours_of_a_node(
    gpus: float, allocated: float, load: tuple[float, float] | None, expected: dict[str, float]
) -> None:
    held = [hold("a", "n1", allocated)] if allocated else []
    state = State({"n1": {A100: gpus}}, held, {"n1": load} if load else {})
    usage = add_up(Segment(0, HOUR, state))
    assert get_hours(usage.nodes[("n1", A100)]) == expected
    assert usage.measured is (load is not None)
    of_namespace = {name: hours for name, hours in expected.items() if name not in ("gpu", "idle")}
    assert {key: get_hours(hours) for key, hours in usage.namespaces.items()} == (
        {("a", "n1", A100): of_namespace} if allocated else {}
    )


def test_namespaces_share_wasted_hours_by_what_they_hold() -> None:
    state = State({"n1": {A100: 8}}, [hold("a", "n1", 6), hold("b", "n1", 2)], {"n1": (8, 4)})
    usage = add_up(Segment(0, HOUR, state))
    assert usage.namespaces[("a", "n1", A100)].wasted == pytest.approx(3)
    assert usage.namespaces[("b", "n1", A100)].wasted == pytest.approx(1)


def test_window_cuts_segments_and_gaps_count_nothing() -> None:
    state = State({"n1": {A100: 1}}, [hold("a", "n1", 1)])
    usage = add_up(Segment(0, 2 * HOUR, state), Segment(4 * HOUR, 9 * HOUR, state), start=HOUR, end=6 * HOUR)
    assert usage.covered == 3
    assert usage.nodes[("n1", A100)].allocated == 3
    assert add_up(Segment(0, HOUR, state), start=HOUR).covered == 0


def test_pod_that_moves_counts_on_each_node_for_its_time() -> None:
    gpus = {"n1": {A100: 1}, "n2": {T4: 1}}
    usage = add_up(
        Segment(0, HOUR, State(gpus, [hold("a", "n1", 1)])),
        Segment(HOUR, 4 * HOUR, State(gpus, [hold("a", "n2", 1)])),
    )
    assert {key: hours.allocated for key, hours in usage.namespaces.items()} == {
        ("a", "n1", A100): 1,
        ("a", "n2", T4): 3,
    }
    assert usage.nodes[("n1", A100)].idle == 3


def test_gpus_that_are_added_count_from_then_on() -> None:
    usage = add_up(
        Segment(0, HOUR, State({"n1": {A100: 1}}, [])), Segment(HOUR, 3 * HOUR, State({"n1": {A100: 2}}, []))
    )
    assert usage.nodes[("n1", A100)].gpu == usage.nodes[("n1", A100)].idle == 5


def test_products_of_a_node_share_what_is_held() -> None:
    state = State({"n1": {A100: 3, T4: 1}}, [hold("a", "n1", 2)], {"n1": (4, 1)})
    usage = add_up(Segment(0, HOUR, state))
    assert {product: hours.allocated for (_node, product), hours in usage.nodes.items()} == {A100: 1.5, T4: 0.5}
    assert sum(hours.wasted for hours in usage.nodes.values()) == pytest.approx(1)
    assert sum(hours.allocated for hours in usage.namespaces.values()) == pytest.approx(2)


def test_node_without_known_gpus_has_no_idle_hours() -> None:
    usage = add_up(Segment(0, HOUR, State({}, [hold("a", "n1", 2)])), products={"n1": T4})
    assert (usage.sized, usage.unsized) == ({}, {"n1": 1})
    assert get_hours(usage.nodes[("n1", T4)]) == {"allocated": 2, "unmeasured": 2}
    assert list(add_up(Segment(0, HOUR, State({}, [hold("a", "n9", 2)]))).nodes) == [("n9", "unknown")]


def test_node_whose_gpus_are_known_for_a_part_has_hours_of_both() -> None:
    held = [hold("a", "n1", 8)]
    usage = add_up(
        Segment(0, 12 * HOUR, State({"n1": {A100: 8}}, held)), Segment(12 * HOUR, 24 * HOUR, State({}, held))
    )
    assert (usage.sized, usage.unsized) == ({"n1": 12}, {"n1": 12})


def test_resources_have_hours_of_units_and_of_gpus() -> None:
    held = [
        Held("a", "n1", "aliyun.com/gpu-mem", "GiB", 8, 0.5),
        Held("b", "n1", "aliyun.com/gpu-mem", "GiB", 4, 0.25),
        Held("b", "n2", "nvidia.com/mig-1g.10gb", "slices", 7, 1),
    ]
    usage = add_up(Segment(0, 2 * HOUR, State({}, held)))
    assert usage.resources == {("aliyun.com/gpu-mem", "GiB"): [24, 1.5], ("nvidia.com/mig-1g.10gb", "slices"): [14, 2]}
