# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of a driver of either method on a fake machine, also after an interruption."""

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
def method(machine, request):
    """The driver by either method; only its daemon uses it."""
    machine.write_records(*RECORDS[request.param], f"driver-enabled-{DAEMON}", f"driver-stopped-{FABRIC_MANAGER}")
    machine.write_config()
    machine.start()
    (machine.folder / f"{DAEMON}.enabled").touch()
    if request.param == "package":
        (machine.node.programs / "nvidia-uninstall").unlink()
    return request.param


def is_removed(machine):
    """Whether nothing remains of the changes of the role."""
    remaining = [machine.folder / name for name in ("state", "modprobe.d/gpu-kubernetes-nvidia-driver.conf")]
    return (
        not machine.node.loaded() and not machine.has_state("enabled") and not any(path.exists() for path in remaining)
    )


def test_driver_is_removed(machine, apply, method):
    if method == "package":
        code, changes, output = apply("main", "--check", **ABSENT)
        assert (code, changes > 0, machine.read_actions(), len(machine.list_records())) == (
            0,
            True,
            [],
            len(RECORDS[method]) + 2,
        ), output
    code, _changes, output = apply("main", **ABSENT)
    assert (code, is_removed(machine)) == (0, True), output
    assert ("uninstall" in machine.read_actions()) is (method == "runfile")
    if method == "runfile":
        code, changes, output = apply("main", **ABSENT)
        assert (code, changes, machine.read_actions()) == (0, 0, []), output


def test_nothing_changes_if_packages_cannot_be_removed(machine, apply, method):
    loaded, records = machine.node.loaded(), machine.list_records()
    with machine.fail_step("packages"):
        code, changes, output = apply("main", **ABSENT)
    assert (code != 0, changes, machine.read_actions()) == (True, 0, []), output
    assert f"nvidia-driver{'-build' if method == 'runfile' else ''} have to stay" in output
    assert (machine.node.loaded(), machine.list_records(), machine.has_state("running")) == (loaded, records, True)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("method", "step"),
    [("runfile", "uninstall"), ("package", "removal"), ("runfile", "repository"), ("package", "initramfs")],
    indirect=["method"],
)
def test_interrupted_removal_is_resumed(machine, apply, method, step):
    with machine.fail_step(step):
        code, _changes, output = apply("main", **ABSENT)
    assert (code != 0, is_removed(machine)) == (True, False), output
    assert f"driver-started-{method}" in machine.list_records()
    machine.read_actions()
    code, changes, output = apply("main", **ABSENT)
    assert (code, changes > 0, is_removed(machine)) == (0, True, True), output
    assert machine.read_actions().count("uninstall") == (step == "uninstall"), "the uninstaller runs only once"
