# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of each GPU."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import fleet_map
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.texts import TEXTS
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.fleet import resource

SLICE = "nvidia.com/mig-1g.5gb"
NO_API = {"allocatable": None, "expected": None, "ready": None}


def node(number: int, kubernetes: dict[str, Any] | None = None, **device: Any) -> dict[str, Any]:
    """A node of the report; the values of *device* are those of its first GPU."""
    devices = [{"index": index, "lost": False, "mig_mode": None} for index in range(number)]
    devices[0].update(device)
    given = {"allocatable": number, "expected": number, "ready": True, **(kubernetes or {})}
    return {"gpus": {"count": number, "devices": devices}, "kubernetes": given}


def indexed(*pairs: tuple[int, int]) -> list[dict[str, int]]:
    return [{"index": index, "allocated": allocated, "total": 10} for index, allocated in pairs]


@pytest.mark.parametrize(
    ("given", "codes", "rows", "states"),
    [
        # f free, u used, h shared, s sick, ? unknown
        (node(2), [], [], "??"),
        (node(2), ["driver_error"], [resource("n", 1, 2)], "ss"),
        (node(2), ["smoke_test"], [resource("n", 1, 2)], "uf"),
        (node(2, {"ready": False}), ["node"], [], "ss"),
        (node(2, NO_API), [], [], "??"),
        (node(3, lost=True), ["gpu_lost"], [resource("n", 1, 3)], "suf"),
        (node(3, {"allocatable": 2}), ["node"], [resource("n", 2, 2)], "uus"),
        (node(3, {"allocatable": 0}), ["node"], [resource("n", 0, 0)], "sss"),
        # a part of the GPUs is offered: 12 replicas of 16, for 4 GPUs
        (node(4, {"allocatable": 12, "expected": 16}), ["node"], [resource("n", 1, 12, "replicas")], "hhhs"),
        (node(2), [], [resource("n", 0, 8, "replicas")], "ff"),
        (node(2), [], [resource("n", 8, 8, "replicas")], "uu"),
        (node(2), [], [resource("n", 9, 8, "replicas")], "uu"),
        (node(2), [], [resource("n", 1, 8, "devices")], "hh"),
        (node(2), [], [resource("n", 1, 2, "devices")], "uf"),
        # the allocation names the GPUs; one that the node does not have is not drawn
        (node(3), [], [resource("n", 15, 30, "GiB", gpus=indexed((0, 10), (1, 5), (2, 0), (7, 1)))], "uhf"),
        (node(3, lost=True), ["gpu_lost"], [resource("n", 9, 20, "percent", gpus=indexed((0, 5), (2, 4)))], "s?h"),
        # slices on the GPUs in MIG mode, and whole GPUs beside them
        (
            node(3, mig_mode="enabled"),
            [],
            [resource("n", 3, 7, "slices", resource=SLICE), resource("n", 1, 2)],
            "huf",
        ),
        # the node offers it no more
        (node(1), [], [resource("n", 2, 0, "units")], "?"),
    ],
)
def test_find_states_of_each_gpu(given: Any, codes: Any, rows: Any, states: str) -> None:
    letters = {"f": "free", "u": "used", "h": "shared", "s": "sick", "?": "unknown"}
    assert fleet_map.find_states(given, codes, rows) == [letters[letter] for letter in states]


@pytest.mark.parametrize(
    ("faults", "states"),
    [
        ([], "uf??"),
        (["GPU 1 at 0000:01:00.0 has 2 uncorrectable memory errors"], "us??"),
        (["Xid 79 of the GPU at 0000:00:00.0; r", "GPU 2 at 0000:02:00.0 has no spare rows"], "sfs?"),
        (["GPU 1 has 2 uncorrectable memory errors"], "ssss"),
        (["the NVSwitch fabric of GPU 9 at 0000:09:00.0 is in progress"], "ssss"),
    ],
)
def test_find_states_of_faults_draws_the_named_gpus(faults: list[str], states: str) -> None:
    given = node(4)
    for place, gpu in enumerate(given["gpus"]["devices"]):
        gpu["pci_address"] = f"0000:0{place}:00.0"
    rows = [resource("n", 10, 20, "GiB", gpus=indexed((0, 10), (1, 0)))]
    found = fleet_map.find_states(given, ["hw.ecc"], rows, faults)
    letters = {"free": "f", "used": "u", "shared": "h", "sick": "s", "unknown": "?"}
    assert "".join(letters[state] for state in found) == states


def test_cells_of_one_state_are_one_path() -> None:
    assert fleet_map.draw_cells(["free", "sick", "free"]) == [
        ("free", "M2 2h12v12h-12zM34 2h12v12h-12z"),
        ("sick", "M18 2l12 12m0-12l-12 12"),
    ]
    assert fleet_map.draw_cells([]) == []


def test_count_states_is_in_the_order_of_the_states() -> None:
    assert fleet_map.count_states(["sick", "free", "sick"]) == [("free", 1), ("sick", 2)]


@pytest.mark.parametrize("state", fleet_map.STATES)
def test_each_state_has_a_text_and_a_shape(state: str) -> None:
    assert f"state_{state}" in TEXTS
    assert fleet_map.draw_cells([state])


def test_shapes_differ_without_colours() -> None:
    # free and used are an outline and a filled square
    shapes = {state: shape for state, shape in fleet_map.SHAPES.items() if state != "used"}
    assert len(set(shapes.values())) == len(shapes)
