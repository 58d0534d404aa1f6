# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back from a driver of either method on a machine of fakes, also where it is cut off."""

from __future__ import annotations

import os

import pytest
from fakes.driver_machine import DAEMON, FABRIC_MANAGER

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

ABSENT = {"nvidia_driver_state": "absent"}
RECORDS = {
    "package": ["packages-nvidia-driver"],
    "runfile": ["driver-runfile", "packages-nvidia-driver-build"],
}


@pytest.fixture(params=RECORDS)
def installed(machine, request):
    """The driver by either method, in use by nobody but its daemon."""
    machine.note(*RECORDS[request.param], f"driver-enabled-{DAEMON}", f"driver-stopped-{FABRIC_MANAGER}")
    machine.configure()
    machine.start()
    (machine.folder / f"{DAEMON}.enabled").touch()
    if request.param == "package":
        (machine.node.programs / "nvidia-uninstall").unlink()
    return request.param


def taken_away(machine):
    """Whether nothing is left of what the role did."""
    left = [machine.folder / name for name in ("state", "modprobe.d/gpu-kubernetes-nvidia-driver.conf")]
    return not machine.node.loaded() and not machine.is_("enabled") and not any(path.exists() for path in left)


def test_a_driver_is_taken_away(machine, apply, installed):
    if installed == "package":
        code, told, said = apply("main", "--check", **ABSENT)
        assert (code, told > 0, machine.done(), len(machine.notes())) == (0, True, [], len(RECORDS[installed]) + 2), (
            said
        )
    code, _done, said = apply("main", **ABSENT)
    assert (code, taken_away(machine)) == (0, True), said
    assert ("uninstall" in machine.done()) is (installed == "runfile")
    if installed == "runfile":
        code, again, said = apply("main", **ABSENT)
        assert (code, again, machine.done()) == (0, 0, []), said


def test_before_packages_that_have_to_stay_nothing_is_touched(machine, apply, installed):
    loaded, notes = machine.node.loaded(), machine.notes()
    with machine.failing("packages"):
        code, done, said = apply("main", **ABSENT)
    assert (code != 0, done, machine.done()) == (True, 0, []), said
    assert f"nvidia-driver{'-build' if installed == 'runfile' else ''} have to stay" in said
    assert (machine.node.loaded(), machine.notes(), machine.is_("running")) == (loaded, notes, True)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("installed", "step"),
    [
        ("runfile", "uninstall"),
        *((method, step) for method in RECORDS for step in ("removal", "repository", "initramfs")),
    ],
    indirect=["installed"],
)
def test_a_removal_that_is_cut_off_is_gone_on_with(machine, apply, installed, step):
    with machine.failing(step):
        code, _done, said = apply("main", **ABSENT)
    assert (code != 0, taken_away(machine)) == (True, False), said
    assert f"driver-begun-{installed}" in machine.notes()
    machine.done()
    code, done, said = apply("main", **ABSENT)
    assert (code, done > 0, taken_away(machine)) == (0, True, True), said
    assert machine.done().count("uninstall") == (step == "uninstall"), (
        "once, and not what somebody may have installed since"
    )
