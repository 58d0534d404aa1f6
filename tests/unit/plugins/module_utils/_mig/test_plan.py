# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU has to change, and in which placements."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.layout import (
    Desired,
    LayoutError,
    parse_layout,
    select,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.plan import find_disturbed, plan_gpu
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.mig import Change, Creation
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.partitions import Gpu, Process
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._mig.gpus import PROFILES, gpu, partition

SEVEN = tuple(partition(number, "1g.5gb", number) for number in range(7))


def desired(**profiles: int) -> Desired:
    """The desired state of a GPU with these profiles, whose names begin with an underscore here."""
    counts = {name[1:].replace("_", ".").replace(".me", "+me"): count for name, count in profiles.items()}
    return select(parse_layout([{"gpus": [0], "profiles": counts}]), [gpu()])[0]


CHANGES: list[tuple[str, Gpu, Desired, Change]] = [
    ("nothing", gpu(0, *SEVEN), desired(_1g_5gb=7), Change()),
    (
        "from empty, big first",
        gpu(),
        desired(_1g_5gb=3, _4g_20gb=1),
        Change(
            create=(
                Creation(5, (0, 4), (4,)),
                Creation(19, (4, 1), (1,)),
                Creation(19, (5, 1), (1,)),
                Creation(19, (6, 1), (1,)),
            )
        ),
    ),
    # 4g.20gb has one placement, which the naive order would occupy.
    (
        "3g and 4g",
        gpu(),
        desired(_3g_20gb=1, _4g_20gb=1),
        Change(create=(Creation(9, (4, 4), (3,)), Creation(5, (0, 4), (4,)))),
    ),
    (
        "kept beside",
        gpu(0, partition(1, "3g.20gb", 4)),
        desired(_3g_20gb=2),
        Change(create=(Creation(9, (0, 4), (3,)),)),
    ),
    (
        "others removed",
        gpu(0, partition(1, "3g.20gb", 4), partition(2, "1g.5gb", 0)),
        desired(_3g_20gb=2),
        Change((2,), (), (Creation(9, (0, 4), (3,)),)),
    ),
    # 1g at 2 leaves no place for 4g.20gb.
    (
        "rebuilt",
        gpu(0, partition(3, "1g.5gb", 2)),
        desired(_1g_5gb=1, _4g_20gb=1),
        Change((3,), (), (Creation(5, (0, 4), (4,)), Creation(19, (4, 1), (1,)))),
    ),
    (
        "interrupted before the compute instance",
        gpu(0, *SEVEN[:6], partition(6, "1g.5gb", 6, [])),
        desired(_1g_5gb=7),
        Change(complete=((6, (1,)),)),
    ),
    (
        "one of two stays, the whole one",
        gpu(0, partition(1, "3g.20gb", 0, []), partition(2, "3g.20gb", 4)),
        desired(_3g_20gb=1),
        Change(remove=(1,)),
    ),
    (
        "parts completed",
        gpu(0, partition(1, "3g.20gb", 0, [1])),
        desired(_1c_3g_20gb=3),
        Change(complete=((1, (1, 1)),)),
    ),
    (
        "other parts",
        gpu(0, partition(1, "3g.20gb", 0)),
        desired(_1c_3g_20gb=3),
        Change((1,), (), (Creation(9, (0, 4), (1, 1, 1)),)),
    ),
    ("media", gpu(), desired(_1g_5gb_me=1), Change(create=(Creation(20, (0, 1), (1,)),))),
    ("removed before MIG is switched off", gpu(0, *SEVEN[:2]), Desired(False), Change(remove=(0, 1))),
]


@pytest.mark.parametrize(("observed", "state", "change"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_instances_change(observed: Gpu, state: Desired, change: Change) -> None:
    assert plan_gpu(observed, state).change == change


MODES = [
    # mode, pending, whether Ampere, desired: (set_mode, changes_mode, needs_reset)
    (False, False, True, True, (True, True, True)),
    (False, True, True, True, (None, True, True)),
    (False, True, True, False, (False, False, False)),
    (True, True, True, False, (False, True, True)),
    (False, False, False, True, (True, True, False)),
    (True, True, False, True, (None, False, False)),
    (True, False, False, True, (True, False, False)),
]


@pytest.mark.parametrize(("mode", "pending", "ampere", "on", "result"), MODES)
def test_mode_changes(mode: bool, pending: bool, ampere: bool, on: bool, result: tuple[Any, ...]) -> None:
    plan = plan_gpu(gpu(0, mode=mode, pending=pending, needs_reset=ampere), Desired(on))
    assert (plan.set_mode, plan.changes_mode, plan.needs_reset) == result
    assert plan.changes == (result[0] is not None or result[1])


REFUSED = [
    (
        gpu(),
        desired(_1g_10gb=4, _1g_18gb=1),
        "does not have the profile 1g.18gb; it has 1g.10gb, 1g.5gb, 1g.5gb+me, 2g.10gb",
    ),
    (gpu(), desired(_4g_20gb=2), "has 2 GPU instances of 4g.20gb for GPU 0, which holds at most 1"),
    (gpu(), desired(_1g_5gb=7, _1g_5gb_me=1), "7 x 1g.5gb, 1 x 1g.5gb+me do not fit together on GPU 0 (A100)"),
    (gpu(0, *SEVEN, mode=False), desired(_7g_40gb=1, _1g_5gb=1), "do not fit together"),
]


@pytest.mark.parametrize(("observed", "state", "words"), REFUSED)
def test_layout_that_does_not_fit_is_refused(observed: Gpu, state: Desired, words: str) -> None:
    with pytest.raises(LayoutError) as error:
        plan_gpu(observed, state)
    assert words in str(error.value)


@pytest.mark.parametrize("profiles", [(), tuple(each._replace(placements=()) for each in PROFILES)])
def test_profiles_that_the_driver_hides_while_mig_is_off_are_checked_later(profiles: Any) -> None:
    plan = plan_gpu(gpu(0, mode=False, profiles=profiles), desired(_1g_18gb=99))
    assert (plan.set_mode, plan.change) == (True, Change())


def test_only_processes_of_removed_instances_are_disturbed() -> None:
    inside, beside, somewhere = Process(1, "a", 2), Process(2, "b", 1), Process(3, "c")
    observed = gpu(0, partition(1, "3g.20gb", 4), partition(2, "1g.5gb", 0), processes=(inside, beside, somewhere))
    assert find_disturbed(observed, plan_gpu(observed, desired(_3g_20gb=2))) == [inside, somewhere]
    assert find_disturbed(observed, plan_gpu(observed, desired(_3g_20gb=1, _1g_5gb=1))) == []
    assert find_disturbed(observed, plan_gpu(observed, Desired(False))) == [inside, beside, somewhere]
