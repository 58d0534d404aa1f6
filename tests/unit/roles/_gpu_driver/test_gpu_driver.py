# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the internal role on a fake machine: packages, drain, reboot and their undo, in this order."""

from __future__ import annotations

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.playbook_files import iterate_tasks

VENDOR = {"amdgpu_driver_source": "vendor"}
REBOOTED = {**VENDOR, "amdgpu_driver_reboot": "if_needed"}
BEGIN, WAIT, END = (f"gpu_node_maintenance {step}" for step in ("begin", "wait", "end"))
# The connection of the fake machine is local, with which a reboot is refused.
OVER_SSH = {"__gpu_driver_refusals": []}


def test_driver_of_the_vendor_needs_a_reboot_that_is_not_allowed(machine, apply):
    code, changes, output = apply("--check", **VENDOR)
    assert (code, changes > 0, machine.read_log(), machine.has_packages()) == (0, True, [], False), output
    # The driver of the kernel works, so that the GPUs are known.
    assert "REQUIRED=True AWAITED=False" in output
    code, _changes, output = apply(**VENDOR)
    assert (code, machine.read_log()) == (2, ["vendor_packages present"]), output
    assert (
        "node: the AMD GPU driver is installed and needs a reboot, because the loaded module amdgpu is that of the kernel, and the installed one is "
        "6.14.14; reboot the host and run again, or set amdgpu_driver_reboot."
    ) in output


def test_check_of_a_host_without_a_driver_predicts_its_installation(machine, apply):
    machine.lose_driver()
    code, changes, output = apply("--check", **VENDOR)
    assert (code, changes > 0, machine.read_log(), machine.has_packages()) == (0, True, [], False), output
    assert "REQUIRED=True AWAITED=True" in output
    assert (
        "UNKNOWN IN CHECK MODE: node: changes of labels, device plugin and smoke test depend on the AMD GPU driver"
        in output
    )


def test_reboot_follows_a_drain_and_loads_the_driver_which_is_removed_again(machine, apply):
    machine.use_gpu()
    code, _changes, output = apply(**VENDOR)
    assert (code, machine.read_log()) == (2, []), output
    assert "node: the AMD GPU driver would be replaced, and train (pid 7) uses the GPUs; drain the node" in output
    code, _changes, output = apply(**REBOOTED, **OVER_SSH)
    assert (code, machine.read_log()) == (0, [BEGIN, "vendor_packages present", BEGIN, "reboot", WAIT, END]), output
    assert "REQUIRED=False" in output
    code, changes, output = apply(**VENDOR)
    assert (code, changes, machine.read_log()) == (0, 0, ["vendor_packages present"]), output
    code, _changes, output = apply(amdgpu_driver_state="absent", **VENDOR)
    assert (code, machine.read_log(), machine.has_packages()) == (0, ["vendor_packages absent"], False), output
    assert (
        "REBOOT REQUIRED: node: the AMD GPU driver is removed and stays loaded until the next boot, because" in output
    )


def test_other_version_replaces_the_installed_one_after_a_drain(machine, apply):
    machine.install("6.12.12")
    newer = {**REBOOTED, **OVER_SSH, "amdgpu_driver_version": "6.14.14"}
    code, changes, output = apply("--check", **newer)
    assert (code, changes > 0, machine.read_log()) == (0, True, []), output
    assert "REQUIRED=True" in output
    code, _changes, output = apply(**newer)
    assert (code, machine.read_log()) == (0, [BEGIN, "vendor_packages present", BEGIN, "reboot", WAIT, END]), output
    assert "REQUIRED=False" in output
    assert (machine.root / "sys/module/amdgpu/version").read_text() == "6.14.14"
    code, changes, output = apply(**newer)
    assert (code, changes) == (0, 0), output
    assert "reboot" not in machine.read_log()


@pytest.mark.parametrize("again", [REBOOTED, VENDOR])
def test_interrupted_removal_resumes_and_uncordons_the_node(machine, apply, again):
    machine.install("6.14.14")
    (machine.folder / "lost").touch()
    code, _changes, output = apply(amdgpu_driver_state="absent", **REBOOTED, **OVER_SSH)
    assert (code, machine.read_log()) == (2, [BEGIN, "vendor_packages absent", BEGIN, "reboot"]), output
    (machine.folder / "lost").unlink()
    code, _changes, output = apply(amdgpu_driver_state="absent", **again, **OVER_SSH)
    log = machine.read_log()
    assert (code, log[-1], "reboot" in log) == (0, END, again is REBOOTED), output
    assert list((machine.folder / "state").rglob("*.json")) == []
    code, changes, output = apply(amdgpu_driver_state="absent", **REBOOTED, **OVER_SSH)
    assert (code, changes, machine.read_log()) == (0, 0, []), output


@pytest.mark.parametrize("other", [{"amdgpu_driver_state": "absent"}, {"amdgpu_driver_source": "distribution"}])
def test_interrupted_drain_is_ended_by_an_undo_and_by_another_source(machine, apply, other):
    (machine.folder / "stuck").touch()
    code, _changes, output = apply(**REBOOTED, **OVER_SSH)
    assert (code, machine.read_log(), machine.has_packages()) == (2, [BEGIN], False), output
    (machine.folder / "stuck").unlink()
    code, _changes, output = apply(**other)
    assert (code, machine.read_log()) == (0, [END]), output
    code, changes, output = apply(**other)
    assert (code, changes, machine.read_log()) == (0, 0, []), output


def test_state_that_the_playbook_passes_to_the_role_of_any_vendor_removes_the_driver(machine, apply):
    apply(**VENDOR)
    assert machine.has_packages()
    tasks = iterate_tasks(yaml.safe_load((ROOT / "playbooks" / "tasks" / "remove_host.yml").read_text()))
    [removal] = [task for task in tasks if task["name"] == "Remove the driver of the vendor"]
    code, _changes, output = apply(task_vars=removal["vars"], **VENDOR)
    assert (code, machine.has_packages()) == (0, False), output


def test_boot_into_the_former_driver_leaves_the_node_drained(machine, apply):
    (machine.folder / "stale").touch()
    code, _changes, output = apply(**REBOOTED, **OVER_SSH)
    assert (code, machine.read_log()) == (2, [BEGIN, "vendor_packages present", BEGIN, "reboot"]), output
    assert (
        "node: the AMD GPU driver is not loaded even after a reboot, because the loaded module amdgpu is that of"
        in output
    )
