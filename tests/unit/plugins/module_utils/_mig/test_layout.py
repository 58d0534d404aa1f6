# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which layouts are valid, what they mean for each GPU, and what is said about the others."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._mig import layout
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.layout import Desired, LayoutError, Slot
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._mig.gpus import gpu, partition

ALL_SMALL = [{"gpus": "all", "profiles": {"1g.5gb": 7}}]
NODE = [gpu(0, mode=False), gpu(1, mode=False), gpu(2, mode=None)]
OFF = Desired(mode=False)

REFUSED = [
    ({}, "is not a list"),
    ([["all"]], "entry 1 of the layout does not have exactly the keys gpus and profiles"),
    ([{"gpus": "all"}], "does not have exactly the keys"),
    ([*ALL_SMALL, {"gpus": "all", "profiles": {}, "mode": "on"}], "entry 2 of the layout does not have exactly"),
    ([{"gpus": "some", "profiles": {}}], "neither all nor a list of GPU indices"),
    ([{"gpus": [], "profiles": {}}], "neither all nor a list"),
    ([{"gpus": [-1], "profiles": {}}], "neither all nor a list"),
    ([{"gpus": [True], "profiles": {}}], "neither all nor a list"),
    ([{"gpus": ["0"], "profiles": {}}], "neither all nor a list"),
    ([{"gpus": [0, 0], "profiles": {}}], "names a GPU twice"),
    ([{"gpus": "all", "profiles": ["1g.5gb"]}], "are not a mapping of names to counts"),
    ([{"gpus": "all", "profiles": {"1g": 7}}], "has the profile '1g'; write profiles as nvidia-smi"),
    ([{"gpus": "all", "profiles": {"MIG 1g.5gb": 7}}], "write profiles as nvidia-smi"),
    ([{"gpus": "all", "profiles": {19: 7}}], "has the profile 19; write"),
    ([{"gpus": "all", "profiles": {"3c.3g.20gb": 1}}], "is not a part of its GPU instance; write 3g.20gb"),
    ([{"gpus": "all", "profiles": {"1g.5gb": 0}}], "the count of 1g.5gb in entry 1 of the layout is 0"),
    ([{"gpus": "all", "profiles": {"1g.5gb": "7"}}], "is '7'; write a number from 1"),
    ([{"gpus": "all", "profiles": {"1g.5gb": True}}], "is True; write a number"),
]


@pytest.mark.parametrize(("raw", "words"), REFUSED)
def test_invalid_layout_is_refused(raw: Any, words: str) -> None:
    with pytest.raises(LayoutError) as error:
        layout.parse_layout(raw)
    assert words in str(error.value)


def test_canonical_form_is_sorted() -> None:
    raw = [{"gpus": [1, 0], "profiles": {"3g.20gb": 1, "1g.5gb+me": 1}}, {"gpus": "all", "profiles": {}}]
    assert layout.parse_layout(raw) == (
        layout.Entry((0, 1), (("1g.5gb+me", 1), ("3g.20gb", 1))),
        layout.Entry(None, ()),
    )


SELECTED: list[tuple[Any, dict[int, Desired]]] = [
    ([], {0: OFF, 1: OFF}),
    (ALL_SMALL, {0: Desired(True, (Slot("1g.5gb"),) * 7), 1: Desired(True, (Slot("1g.5gb"),) * 7)}),
    ([{"gpus": [1], "profiles": {"7g.40gb": 1}}], {0: OFF, 1: Desired(True, (Slot("7g.40gb"),))}),
    ([*ALL_SMALL, {"gpus": [0], "profiles": {}}], {0: OFF, 1: Desired(True, (Slot("1g.5gb"),) * 7)}),
    ([{"gpus": [0], "profiles": {"7g.40gb": 1}}, {"gpus": "all", "profiles": {}}], {0: OFF, 1: OFF}),
    # MIG off is what a GPU without MIG has.
    ([{"gpus": [2], "profiles": {}}], {0: OFF, 1: OFF}),
    # Smaller compute instances share GPU instances.
    (
        [{"gpus": [0], "profiles": {"1c.3g.20gb": 4, "2c.4g.20gb": 1}}],
        {0: Desired(True, (Slot("3g.20gb", (1, 1, 1)), Slot("3g.20gb", (1,)), Slot("4g.20gb", (2,)))), 1: OFF},
    ),
]


@pytest.mark.parametrize(("raw", "desired"), SELECTED)
def test_later_entry_replaces_earlier_one(raw: Any, desired: dict[int, Desired]) -> None:
    assert layout.select(layout.parse_layout(raw), NODE) == desired


@pytest.mark.parametrize(
    ("gpus", "words"),
    [([2], "GPU 2 (A100) has no MIG; leave it out"), ([3], "names GPU 3, and this host has 3 GPUs")],
)
def test_gpu_that_cannot_be_split_is_refused(gpus: list[int], words: str) -> None:
    with pytest.raises(LayoutError) as error:
        layout.select(layout.parse_layout([{"gpus": gpus, "profiles": {"1g.5gb": 1}}]), NODE)
    assert words in str(error.value)


def test_host_without_mig_is_refused() -> None:
    with pytest.raises(LayoutError, match="no GPU of this host has MIG"):
        layout.select(layout.parse_layout(ALL_SMALL), [gpu(0, mode=None)])
    assert layout.select(layout.parse_layout([{"gpus": "all", "profiles": {}}]), [gpu(0, mode=None)]) == {}


TWO = [gpu(0), gpu(1)]
STRATEGIES = [
    ("single", TWO, [{"gpus": "all", "profiles": {"1g.5gb": 7}}], ""),
    ("single", TWO, [{"gpus": "all", "profiles": {"1c.3g.20gb": 2}}], ""),
    ("single", TWO, [], ""),
    ("single", TWO, [{"gpus": [0], "profiles": {"1g.5gb": 7}}], "GPU 1 would have none"),
    ("single", NODE, ALL_SMALL, "GPU 2 would have none"),
    ("single", TWO, [{"gpus": "all", "profiles": {"1g.5gb": 1, "3g.20gb": 1}}], "the layout has 1g.5gb and 3g.20gb"),
    ("mixed", TWO, [{"gpus": [0], "profiles": {"1g.5gb": 1, "3g.20gb": 1}}], ""),
    ("mixed", TWO, [{"gpus": [0], "profiles": {"1c.3g.20gb": 2}}], "the device plugin fails with 1c.3g.20gb"),
    (None, TWO, [{"gpus": [0], "profiles": {"1c.3g.20gb": 2}}], ""),
]


@pytest.mark.parametrize(("strategy", "gpus", "raw", "words"), STRATEGIES)
def test_layout_that_the_device_plugin_cannot_serve_is_refused(
    strategy: str | None, gpus: list[Any], raw: Any, words: str
) -> None:
    try:
        layout.check_strategy(strategy, layout.select(layout.parse_layout(raw), gpus), gpus)
        message = ""
    except LayoutError as error:
        message = str(error)
    assert words.replace("the device plugin", "device plugin") in message
    assert bool(message) == bool(words)


def test_observed_state_is_described_as_a_desired_one() -> None:
    observed = gpu(0, partition(1, "3g.20gb", 4, [2, 1]), partition(2, "1g.5gb", 0), partition(3, "1g.5gb", 1, []))
    assert layout.describe(observed) == Desired(True, (Slot("1g.5gb"), Slot("3g.20gb", (1, 2))))
    assert layout.count_devices(observed.partitions) == {"1c.3g.20gb": 1, "1g.5gb": 1, "2c.3g.20gb": 1}
