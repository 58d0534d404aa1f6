# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether GPUs have other MIG devices than a layout, and whether it leaves whole GPUs, by their facts."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.facts import differs, has_whole


def gpu(index, mode, *profiles, **more):
    devices = [{"name": f"NVIDIA A100-SXM4-40GB MIG {profile}"} for profile in profiles]
    return {"index": index, "name": "A100", "uuid": f"GPU-{index}", "mig_mode": mode, "mig_devices": devices, **more}


HALVES = [{"gpus": "all", "profiles": {"3g.20gb": 2}}]
#: The GPUs, the layout, and whether they differ.
CASES = {
    "as-declared": ([gpu(0, "enabled", "3g.20gb", "3g.20gb")], HALVES, False),
    "mode-off": ([gpu(0, "disabled")], HALVES, True),
    "one-is-missing": ([gpu(0, "enabled", "3g.20gb")], HALVES, True),
    "other-profiles": ([gpu(0, "enabled", "3g.20gb", "2g.10gb")], HALVES, True),
    "no-layout": ([gpu(0, "disabled")], [], False),
    "left-on": ([gpu(0, "enabled")], [], True),
    "one-of-two": (
        [gpu(0, "enabled", "7g.40gb"), gpu(1, "disabled")],
        [{"gpus": [0], "profiles": {"7g.40gb": 1}}],
        False,
    ),
    "without-mig": ([gpu(0, None)], [], False),
    "lost": ([gpu(0, "enabled", "3g.20gb", "3g.20gb"), gpu(1, None, lost=True)], HALVES, False),
    "invalid-layout": ([gpu(0, "disabled")], "text", False),
}


@pytest.mark.parametrize(("gpus", "layout", "expected"), CASES.values(), ids=CASES)
def test_gpus_are_compared_with_the_layout(gpus, layout, expected):
    assert differs({"source": "nvml", "gpus": gpus}, layout) is expected


def test_gpus_without_nvml_are_not_compared():
    assert not differs({"source": "pci", "gpus": [gpu(0, "disabled")]}, HALVES)
    assert not differs({}, HALVES)


OFF, NONE, LOST = gpu(0, "disabled"), gpu(1, None), gpu(1, None, lost=True)
#: The GPUs, the layout, and whether it leaves GPUs without MIG.
WHOLE = {
    "all": ([OFF, gpu(1, "enabled")], HALVES, False),
    "all-by-index": ([OFF, gpu(1, "disabled")], [{"gpus": [0, 1], "profiles": {"3g.20gb": 2}}], False),
    "all-but-one": ([OFF, gpu(1, "disabled")], [*HALVES, {"gpus": [0], "profiles": {}}], True),
    "one-of-two": ([OFF, gpu(1, "disabled")], [{"gpus": [0], "profiles": {"3g.20gb": 2}}], True),
    "one-has-no-mig": ([OFF, NONE], HALVES, True),
    "one-is-lost": ([OFF, LOST], HALVES, False),
    "no-layout": ([OFF], [], True),
    "invalid-layout": ([OFF], "text", True),
}


@pytest.mark.parametrize(("gpus", "layout", "expected"), WHOLE.values(), ids=WHOLE)
def test_layout_leaves_whole_gpus(gpus, layout, expected):
    assert has_whole({"source": "nvml", "gpus": gpus}, layout) is expected


def test_whole_gpus_are_expected_without_nvml():
    assert has_whole({"source": "pci", "gpus": [OFF]}, HALVES)
