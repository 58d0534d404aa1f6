# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""MIG of the simulated NVML: slice arithmetic, compute instances, modes."""

from __future__ import annotations

import ctypes

import pytest
from fakes.nvml.mig_calls import (
    FULL,
    IN_USE,
    INVALID,
    NOT_FOUND,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    SUCCESS,
    UNKNOWN,
    Compose,
    MigGpu,
    in_a_process,
)

SEVEN = tuple(range(7))
STARTS = {"1": (SEVEN, 1), "wide": ((0, 2, 4, 6), 2), "2": ((0, 2, 4), 2), "3": ((0, 4), 4), "4": ((0,), 4)}


def rows_of_seven(*names: str) -> dict[str, tuple[int, int, tuple[int, ...], int]]:
    """Profiles of a GPU with seven compute slices by name: id, instances, memory slices, size."""
    kinds = [(19, 7, "1"), (20, 1, "1"), (15, 4, "wide"), (14, 3, "2"), (9, 2, "3"), (5, 1, "4")]
    rows = {name: (number, most, *STARTS[kind]) for name, (number, most, kind) in zip(names, kinds, strict=False)}
    return {**rows, names[-1]: (0, 1, (0,), 8)}


H100_NAMES = ("1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
#: As nvidia-smi mig -lgip and -lgipp print them.
PROFILES = {
    "a100-40g": rows_of_seven("1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),
    "a100-80g": rows_of_seven(*H100_NAMES),
    "h100-mig": rows_of_seven(*H100_NAMES),
    "h200": rows_of_seven("1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),
    "a30": {
        "1g.6gb": (14, 4, (0, 1, 2, 3), 1),
        "1g.6gb+me": (21, 1, (0, 1, 2, 3), 1),
        "2g.12gb": (5, 2, (0, 2), 2),
        "2g.12gb+me": (6, 1, (0, 2), 2),
        "4g.24gb": (0, 1, (0,), 4),
    },
}


# -- profiles and slice arithmetic


@pytest.mark.parametrize("name", PROFILES)
def test_profiles_are_those_of_the_gpu(compose: Compose, name: str) -> None:
    gpu = MigGpu(compose(name), 1)
    found = {each.name: (each.id, each.instances, each.starts, each.size) for each in gpu.profiles()}
    assert found == PROFILES[name]
    assert gpu.call("nvmlDeviceGetGpuInstanceProfileInfo", gpu.handle, 18, ctypes.create_string_buffer(64)) == INVALID


@pytest.mark.parametrize("name", PROFILES)
def test_create_reaches_number_of_instances_and_no_more(compose: Compose, name: str) -> None:
    gpu = MigGpu(compose(name), 1)
    for profile, (_id, most, _starts, _size) in PROFILES[name].items():
        assert gpu.capacity(profile) == (SUCCESS, most)
        made = [gpu.create(profile) for _number in range(most)]
        assert [code for code, _handle in made] == [SUCCESS] * most
        assert gpu.create(profile)[0] == FULL
        assert gpu.capacity(profile) == (SUCCESS, 0)
        assert [gpu.call("nvmlGpuInstanceDestroy", handle) for _code, handle in made] == [SUCCESS] * most


@pytest.mark.parametrize(
    ("name", "order", "codes", "layout"),
    [
        ("a100-40g", ["1g.5gb"] * 3, [0] * 3, [("1g.5gb", 11, 4), ("1g.5gb", 12, 5), ("1g.5gb", 13, 6)]),
        ("a100-40g", ["3g.20gb", "4g.20gb"], [0, 0], [("4g.20gb", 1, 0), ("3g.20gb", 2, 4)]),
        ("a100-40g", ["3g.20gb"] * 3, [0, 0, FULL], [("3g.20gb", 1, 0), ("3g.20gb", 2, 4)]),
        (
            "a100-40g",
            ["1g.5gb", "2g.10gb", "4g.20gb"],
            [0] * 3,
            [("4g.20gb", 1, 0), ("2g.10gb", 5, 4), ("1g.5gb", 13, 6)],
        ),
        ("a100-40g", ["1g.5gb", "7g.40gb"], [0, FULL], [("1g.5gb", 13, 6)]),
        ("a100-40g", ["7g.40gb", "1g.5gb"], [0, FULL], [("7g.40gb", 0, 0)]),
        ("h100-mig", ["1g.20gb"], [0], [("1g.20gb", 6, 6)]),
        # One media extension: the GPU has one set of JPEG and OFA engines.
        ("a30", ["1g.6gb+me", "2g.12gb+me", "2g.12gb"], [0, FULL, 0], [("2g.12gb", 2, 2), ("1g.6gb+me", 3, 0)]),
    ],
)
def test_driver_places_what_leaves_most_to_others(
    compose: Compose, name: str, order: list[str], codes: list[int], layout: list[tuple[str, int, int]]
) -> None:
    gpu = MigGpu(compose(name), 1)
    assert [gpu.create(profile)[0] for profile in order] == codes
    assert gpu.layout() == layout


@pytest.mark.parametrize(
    ("start", "size", "code"),
    [
        (0, 2, SUCCESS),
        (2, 2, FULL),
        (4, 2, SUCCESS),
        (1, 2, INVALID),
        (6, 2, INVALID),
        (0, 1, INVALID),
        (40, 2, INVALID),
    ],
)
def test_create_with_placement_requires_a_free_one(compose: Compose, start: int, size: int, code: int) -> None:
    gpu = MigGpu(compose("a100-40g"))
    assert gpu.create("1g.5gb", start=3)[0] == SUCCESS
    assert gpu.create("2g.10gb", start=start, size=size)[0] == code


def test_layout_of_profile_that_does_not_fit_is_refused(compose: Compose) -> None:
    library = ctypes.CDLL(compose("a100-40g", gpu="mig_devices = 7g.40gb, 1g.5gb"))
    assert library.nvmlInit_v2() == UNKNOWN


@pytest.mark.parametrize(("driver", "count"), [("535.261.03", 0), ("570.124.06", 7)])
def test_profiles_without_mig_are_listed_by_newer_drivers_only(compose: Compose, driver: str, count: int) -> None:
    gpu = MigGpu(compose("a100-40g", mig="disabled", driver_version=driver))
    assert len(gpu.profiles()) == count


# -- compute instances


@pytest.mark.parametrize(
    ("profile", "offered"),
    [
        ("1g.5gb", {0: ("MIG 1g.5gb", 1)}),
        ("2g.10gb", {0: ("MIG 1c.2g.10gb", 2), 1: ("MIG 2g.10gb", 1)}),
        ("3g.20gb", {0: ("MIG 1c.3g.20gb", 3), 1: ("MIG 2c.3g.20gb", 1), 2: ("MIG 3g.20gb", 1)}),
        ("4g.20gb", {0: ("MIG 1c.4g.20gb", 4), 1: ("MIG 2c.4g.20gb", 2), 3: ("MIG 4g.20gb", 1)}),
        (
            "7g.40gb",
            {
                0: ("MIG 1c.7g.40gb", 7),
                1: ("MIG 2c.7g.40gb", 3),
                2: ("MIG 3c.7g.40gb", 2),
                3: ("MIG 4c.7g.40gb", 1),
                4: ("MIG 7g.40gb", 1),
            },
        ),
    ],
)
def test_compute_profiles_fit_their_gpu_instance(
    compose: Compose, profile: str, offered: dict[int, tuple[str, int]]
) -> None:
    gpu = MigGpu(compose("a100-40g"))
    _code, instance = gpu.create(profile)
    found = {number: gpu.compute_profile(instance, number) for number in range(10)}
    listed = {number: info for number, (code, info) in found.items() if code == SUCCESS}
    assert {number: (info.name.decode(), info.instances) for number, info in listed.items()} == offered
    assert (found[5][0], found[9][0]) == (NOT_SUPPORTED, INVALID)
    for number, (_name, most) in offered.items():
        made = [gpu.create_compute(instance, number) for _each in range(most + 1)]
        assert [code for code, _handle in made] == [SUCCESS] * most + [FULL]
        assert [gpu.call("nvmlComputeInstanceDestroy", handle) for _code, handle in made[:-1]] == [SUCCESS] * most


def test_compute_instances_keep_their_ids_in_another_process(compose: Compose) -> None:
    path = compose("a100-40g")
    gpu = MigGpu(path)
    _code, instance = gpu.create("3g.20gb")
    handles = [gpu.create_compute(instance, 0)[1] for _number in range(3)]
    assert gpu.call("nvmlComputeInstanceDestroy", handles[0]) == SUCCESS
    assert [gpu.compute_info(handle).id for handle in handles[1:]] == [1, 2]
    assert [gpu.compute_info(handle).placement.start for handle in handles[1:]] == [1, 2]
    assert gpu.mig_devices() == ["1c.3g.20gb"] * 2
    again = "print([gpu.layout(), gpu.mig_devices()])"
    assert in_a_process(path, again) == f"{[[('3g.20gb', 2, 4)], ['1c.3g.20gb'] * 2]}\n"
    # The lowest id that is free, in the slice that is free.
    made = gpu.compute_info(gpu.create_compute(instance, 0)[1])
    assert (made.id, made.placement.start) == (0, 0)


def test_destroy_goes_from_the_inside_out(compose: Compose) -> None:
    gpu = MigGpu(compose("a100-40g"))
    _code, instance = gpu.create("2g.10gb")
    _code, compute = gpu.create_compute(instance, 1)
    assert gpu.call("nvmlGpuInstanceDestroy", instance) == IN_USE
    assert gpu.call("nvmlComputeInstanceDestroy", compute) == SUCCESS
    assert gpu.call("nvmlGpuInstanceDestroy", instance) == SUCCESS
    # The handles are stale now.
    assert gpu.call("nvmlGpuInstanceDestroy", instance) == INVALID
    assert gpu.call("nvmlComputeInstanceDestroy", compute) == INVALID
    found = ctypes.c_void_p()
    assert gpu.call("nvmlDeviceGetGpuInstanceById", gpu.handle, 3, ctypes.byref(found)) == NOT_FOUND
    assert gpu.layout() == []


@pytest.mark.parametrize("key", ["process_pid = 1", "mig_fault = in_use"])
def test_destroy_of_used_gpu_is_refused(compose: Compose, key: str) -> None:
    gpu = MigGpu(compose("a100-40g", gpu=key))
    _code, instance = gpu.create("2g.10gb")
    _code, compute = gpu.create_compute(instance, 1)
    assert gpu.call("nvmlComputeInstanceDestroy", compute) == IN_USE
    assert gpu.mig_devices() == ["2g.10gb"]


# -- modes


@pytest.mark.parametrize(
    ("name", "mig", "key", "mode", "codes", "modes"),
    [
        ("a100-40g", "disabled", "", 1, (SUCCESS, RESET_REQUIRED), (0, 1)),
        ("a100-40g", "disabled", "", 0, (SUCCESS, SUCCESS), (0, 0)),
        ("a100-40g", "disabled", "process_pid = 1", 1, (SUCCESS, IN_USE), (0, 1)),
        ("a100-40g", "enabled", "", 0, (SUCCESS, RESET_REQUIRED), (1, 0)),
        ("a100-40g", "disabled", "mig_at_once = true", 1, (SUCCESS, SUCCESS), (1, 1)),
        ("a100-40g", "disabled", "mig_at_once = true\nmig_fault = in_use", 1, (SUCCESS, IN_USE), (0, 1)),
        ("a30", "enabled", "mig_devices = 2g.12gb", 0, (SUCCESS, IN_USE), (1, 0)),
        ("h200", "disabled", "", 1, (SUCCESS, SUCCESS), (1, 1)),
        ("h200", "disabled", "mig_fault = in_use", 1, (SUCCESS, IN_USE), (0, 1)),
        ("h200", "enabled", "mig_devices = 3g.71gb", 0, (SUCCESS, IN_USE), (1, 0)),
        ("h200", "enabled", "", 0, (SUCCESS, SUCCESS), (0, 0)),
        ("h200", "disabled", "", 2, (INVALID, 77), (0, 0)),
    ],
)
def test_set_mode_is_pending_or_active(
    compose: Compose, name: str, mig: str, key: str, mode: int, codes: tuple[int, int], modes: tuple[int, int]
) -> None:
    path = compose(name, mig=mig, gpu=key)
    gpu = MigGpu(path)
    assert gpu.set_mode(mode) == codes
    assert gpu.modes() == modes
    assert in_a_process(path, "print(gpu.modes())") == f"{modes}\n"


def test_gpu_without_mig_refuses_it(compose: Compose) -> None:
    gpu = MigGpu(compose("t4"))
    number = ctypes.byref(ctypes.c_uint())
    assert gpu.set_mode(1) == (NOT_SUPPORTED, 77)
    assert gpu.call("nvmlDeviceGetMigMode", gpu.handle, number, number) == NOT_SUPPORTED
    assert gpu.call("nvmlDeviceCreateGpuInstance", gpu.handle, 19, number) == NOT_SUPPORTED


def test_create_without_mode_is_refused(compose: Compose) -> None:
    gpu = MigGpu(compose("a100-40g", mig="disabled"))
    assert gpu.set_mode(1)[0] == SUCCESS
    assert gpu.create("1g.5gb")[0] == NOT_SUPPORTED
    assert gpu.capacity("1g.5gb")[0] == NOT_SUPPORTED
    count = ctypes.c_uint(5)
    assert gpu.call("nvmlDeviceGetMaxMigDeviceCount", gpu.handle, ctypes.byref(count)) == SUCCESS
    assert count.value == 0


def test_compute_mode_is_of_the_gpu_or_of_its_mig_devices(compose: Compose) -> None:
    path = compose("h100-mig")
    gpu, number = MigGpu(path), ctypes.c_uint()
    assert gpu.call("nvmlDeviceSetComputeMode", gpu.handle, 3) == NOT_SUPPORTED
    mig = ctypes.c_void_p()
    assert gpu.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu.handle, 0, ctypes.byref(mig)) == SUCCESS
    assert [gpu.call("nvmlDeviceSetComputeMode", mig, mode) for mode in range(5)] == [SUCCESS] * 4 + [INVALID]
    assert gpu.call("nvmlDeviceGetComputeMode", mig, ctypes.byref(number)) == SUCCESS
    assert number.value == 3
    whole = MigGpu(compose("a100-80g", mig="disabled"))
    assert whole.call("nvmlDeviceSetComputeMode", whole.handle, 3) == SUCCESS
    assert whole.call("nvmlDeviceGetComputeMode", whole.handle, ctypes.byref(number)) == SUCCESS
    assert number.value == 3
    assert whole.call("fakeNvmlResetGpu", whole.handle) == SUCCESS
    assert whole.call("nvmlDeviceGetComputeMode", whole.handle, ctypes.byref(number)) == SUCCESS
    assert number.value == 0
