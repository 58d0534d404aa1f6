# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The removal of an installer's driver on a fake machine, also after an interruption. The scenario removes packages, too."""

from __future__ import annotations

import os

import pytest
from fakes.driver_machine import DAEMON, FABRIC_MANAGER

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

ABSENT = {"nvidia_driver_state": "absent"}


@pytest.fixture(autouse=True)
def _driver(machine):
    """The driver and the packages that built it; only its daemon uses it."""
    machine.write_records("driver-runfile", "packages-nvidia-driver-build")
    machine.write_records(f"driver-enabled-{DAEMON}", f"driver-stopped-{FABRIC_MANAGER}")
    machine.write_config()
    machine.start()
    (machine.folder / f"{DAEMON}.enabled").touch()


def is_removed(machine):
    """Whether nothing remains of the changes of the role."""
    remaining = [machine.folder / name for name in ("state", "modprobe.d/gpu-kubernetes-nvidia-driver.conf")]
    return (
        not machine.node.loaded() and not machine.has_state("enabled") and not any(path.exists() for path in remaining)
    )


def test_nothing_changes_in_check_mode_or_if_packages_cannot_be_removed(machine, apply):
    before = (machine.node.loaded(), machine.list_records(), True)
    code, changes, output = apply("main", "--check", **ABSENT)
    assert (code, changes > 0, machine.read_actions()) == (0, True, []), output
    assert (machine.node.loaded(), machine.list_records(), machine.has_state("running")) == before
    with machine.fail_step("packages"):
        code, changes, output = apply("main", **ABSENT)
    assert (code != 0, changes, machine.read_actions()) == (True, 0, []), output
    assert "The packages of nvidia-driver-build have to stay" in output
    assert (machine.node.loaded(), machine.list_records(), machine.has_state("running")) == before


def test_interrupted_removal_is_resumed(machine, apply):
    """It ends in the uninstaller, then after the packages, whose record is gone; and a completed one changes nothing."""
    uninstalled = []
    for step in ("uninstall", "initramfs"):
        with machine.fail_step(step):
            code, _changes, output = apply("main", **ABSENT)
        assert (code != 0, is_removed(machine)) == (True, False), output
        assert "driver-started-runfile" in machine.list_records()
        uninstalled += [word for word in machine.read_actions() if word == "uninstall"]
    assert not {"driver-runfile", "packages-nvidia-driver-build"} & set(machine.list_records())
    code, _changes, output = apply("main", **ABSENT)
    assert (code, is_removed(machine)) == (0, True), output
    uninstalled += [word for word in machine.read_actions() if word == "uninstall"]
    assert uninstalled == ["uninstall"], "the uninstaller runs only once"
    code, changes, output = apply("main", **ABSENT)
    assert (code, changes, machine.read_actions()) == (0, 0, []), output
