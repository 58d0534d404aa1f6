# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the role on a machine whose kernel and services are fakes, above all when one of them fails."""

from __future__ import annotations

import os
import shutil

import pytest
import yaml
from fakes.driver_machine import DAEMON, INVENTORY, NEXT_KERNEL

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

TASKS = ROOT / "roles" / "nvidia_driver" / "tasks"
BROKEN = "could not insert the module: Key was rejected by service"


def test_a_reload_is_foreseen_that_only_the_daemon_is_in_the_way_of(machine, apply):
    machine.start()
    machine.update()
    code, told, said = apply("kernel_modules", "--check")
    assert (code, told > 0, machine.done()) == (0, True, []), said
    assert "the kernel modules would be reloaded, because the loaded kernel module is another build of 570.2" in said
    code, done, said = apply("kernel_modules")
    assert (code, done > 0, machine.is_("running")) == (0, True, True), said
    assert machine.done()[-2:] == [f"stop {DAEMON}", f"start {DAEMON}"]


@pytest.mark.parametrize("broken", [False, True])
def test_a_daemon_that_was_stopped_comes_back_where_the_modules_do_not(machine, apply, broken):
    machine.start()
    machine.update()
    machine.node.set(errors={"modprobe nvidia": BROKEN})
    if broken:
        (machine.folder / f"{DAEMON}.broken").touch()
    code, _done, said = apply("kernel_modules")
    assert code != 0, said
    assert machine.done()[-1] == f"start {DAEMON}"
    assert machine.is_("running") is not broken
    assert said.rpartition("Report why the kernel modules are not loaded")[2].count(BROKEN) == 1


@pytest.mark.thorough
def test_a_parameter_that_is_asked_for_no_more_goes_also_if_somebody_is_in_the_way_first(machine, apply):
    machine.note("packages-nvidia-driver")
    machine.note("driver-enabled-" + DAEMON)
    parameters = {"nvidia_driver_module_parameters": {"NVreg_EnableStreamMemOPs": 0}}
    code, _done, said = apply("present", **parameters)
    assert code == 0, said
    machine.node.process(4712, "/dev/nvidia0", "train")
    for _again in range(2):
        code, _done, said = apply("present")
        assert code != 0, said
        assert "the loaded kernel module has NVreg_EnableStreamMemOPs = 0, which is no longer requested" in said
    shutil.rmtree(machine.node.root / "proc" / "4712")
    machine.done()
    code, _done, said = apply("present")
    assert code == 0, said
    assert "rmmod nvidia" in machine.done()


LIBRARIES, FABRIC = "libnvidia-ml1", "nvidia-fabricmanager"
NAMING = {"nvidia_driver_version", "nvidia_driver_branch"}


@pytest.mark.parametrize(
    ("mode", "asked", "different", "refused"),
    [
        ([], {"nvidia_driver_branch": "570"}, [LIBRARIES, FABRIC], True),
        (["--check"], {"nvidia_driver_version": "570.2"}, [LIBRARIES], True),
        (["--check"], {"nvidia_driver_fabric_manager": "always"}, [LIBRARIES], True),
        ([], {"nvidia_driver_branch": "570"}, [], False),
    ],
)
def test_parts_of_different_versions_are_not_brought_to_one_under_a_job(
    machine, apply, mode, asked, different, refused
):
    """As a partial update leaves them."""
    machine.note("packages-nvidia-driver")
    machine.differ(*different)
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, done, said = apply("present", *mode, **asked)
    words = f"of which {' and '.join(different)} would be replaced, cannot be unloaded, because train (pid"
    assert (code != 0, words in said) == (refused, refused), said
    assert ("and needs nvidia_driver_version" in said) == (refused and len(asked.keys() & NAMING) == 0), said
    assert (done == 0, machine.installed() == []) == (refused, refused), said


@pytest.mark.parametrize(
    ("mode", "asked"), [(["--check"], {"nvidia_driver_branch": "570"}), ([], {})], ids=["branch", "nothing"]
)
def test_packages_of_another_provider_do_not_come_under_a_job(machine, apply, mode, asked):
    """Nobody knows yet what their repository has."""
    machine.note("packages-nvidia-driver")
    machine.have_others()
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, done, said = apply("present", *mode, **asked)
    assert (code != 0, done, machine.installed()) == (True, 0, []), said
    assert "node: the driver, which nvidia-smi and libnvidia-ml1 and" in said
    assert "would replace, cannot be unloaded, because train (pid 4712)" in said


def test_other_parts_are_a_reason_for_an_upgrade(machine, apply):
    machine.note("packages-nvidia-driver")
    due = {
        "ansible.builtin.assert": {
            "that": ["nvidia_driver_plan.due == expected", "nvidia_driver_plan.no_way_back == way"]
        }
    }
    for different, expected in ((LIBRARIES, True), ("", False)):
        machine.differ(different)
        code, _done, said = apply("plan", nvidia_driver_branch="570", then=[due], expected=expected, way="")
        assert code == 0, said
    machine.have_others()
    way = "the requested packages differ from the installed ones."
    code, _done, said = apply("plan", nvidia_driver_branch="570", then=[due], expected=True, way=way)
    assert code == 0, said


def test_a_daemon_that_ran_before_its_drop_in_is_started_again(machine, apply):
    machine.start()
    (machine.folder / f"{DAEMON}.enabled").touch()
    folder = machine.folder / "systemd" / f"{DAEMON}.service.d"
    code, done, said = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, done > 0, (folder / "gpu-kubernetes.conf").exists()) == (0, True, True), said
    assert machine.done() == ["daemon-reload", f"restart {DAEMON}"]
    code, _done, said = apply("services_drop_in_absent", distribution="Ubuntu")
    assert (code, folder.exists(), machine.done()) == (0, False, ["daemon-reload"]), said


def test_without_persistence_ubuntus_daemon_is_left_as_it_comes(machine, apply):
    """Its unit is static: it cannot be disabled, and udev starts it, without persistence mode."""
    asked = {"distribution": "Ubuntu", "nvidia_driver_persistence": False}
    code, _done, said = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, machine.is_("running")) == (0, True), said
    machine.done()
    code, done, said = apply("services_drop_in_absent services", **asked)
    assert (code, done > 0, machine.is_("running")) == (0, True, False), said
    assert machine.done() == ["daemon-reload", f"stop {DAEMON}"]
    machine.start()
    code, again, said = apply("services_drop_in_absent services", **asked)
    assert (code, again, machine.done(), machine.is_("running")) == (0, 0, [], True), said


@pytest.mark.thorough
def test_a_drop_in_that_a_run_has_only_written_comes_into_force_with_the_next(machine, apply):
    machine.start()
    code, _done, said = apply("services_drop_in", distribution="Ubuntu")
    assert (code, machine.done(), machine.notes()) == (0, [], ["driver-drop-in"]), said
    code, _done, said = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, machine.done()) == (0, ["daemon-reload", f"enable {DAEMON}", f"restart {DAEMON}"]), said
    assert machine.notes() == [f"driver-enabled-{DAEMON}"]
    code, again, said = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, again, machine.done()) == (0, 0, []), said


def test_libraries_come_to_signed_kernel_modules_of_another_version(machine, apply):
    """As after a boot into a newer kernel, whose modules want newer ones."""
    machine.note("packages-nvidia-driver")
    machine.node.load()
    asked = {"distribution": "Ubuntu", "nvidia_driver_branch": "570"}
    machine.tell(secure_boot=True, module_version=None, installed_module_version="570.3")
    _code, _done, said = apply("present", **asked)
    # The pin is that of the branch again.
    assert machine.versions() == ["570.*", "570.3", "570.*"], said


def test_several_nodes_that_need_a_reboot_are_not_begun_with(machine, apply):
    machine.tell(nouveau_loaded=True)
    hosts = INVENTORY + INVENTORY.replace("node ", "other ")
    code, done, said = apply("present", hosts=hosts, nvidia_driver_reboot="if_needed")
    assert (code != 0, done, machine.installed(), machine.notes()) == (True, 0, [], []), said
    assert "node: the driver needs a reboot, because nouveau is loaded, and this run has 2 hosts at once" in said


@pytest.mark.parametrize(
    ("reboot", "fails"), [("never", True), pytest.param("report", False, marks=pytest.mark.thorough)]
)
def test_a_check_foresees_the_reboot_that_nouveau_makes_necessary(machine, apply, reboot, fails):
    machine.tell(nouveau_loaded=True)
    come = {"vendor_packages_result": {"changed": True}}
    code, _told, said = apply("present", "--check", nvidia_driver_reboot=reboot, **come)
    assert (code != 0, machine.done(), machine.installed(), machine.notes()) == (fails, [], [], []), said
    assert "node: the driver would be installed and need a reboot, because nouveau is loaded, and" in said


def test_after_a_reboot_the_kernel_that_was_booted_counts(machine, apply):
    asked = {"nvidia_driver_reboot_drain": False, "nvidia_driver_reboot_reasons": ["nouveau is loaded"]}
    code, _done, said = apply("reboot_if_needed", **asked)
    assert (code, f"linux-headers-{NEXT_KERNEL}" in machine.installed()) == (0, True), said


def test_only_what_the_role_has_enabled_is_disabled_again(machine, apply):
    note = machine.folder / "state" / "state" / f"driver-enabled-{DAEMON}.json"
    note.parent.mkdir(parents=True)
    code, done, said = apply("services")
    assert (code, done > 0, machine.is_("enabled"), note.exists()) == (0, True, True, True), said
    code, _done, said = apply("services_absent")
    assert (code, machine.is_("enabled"), note.exists()) == (0, False, False), said
    # Somebody else, as a package of Debian's does.
    (machine.folder / f"{DAEMON}.enabled").touch()
    code, again, said = apply("services")
    assert (code, again, note.exists()) == (0, 0, False), said


def test_a_daemon_that_the_role_has_disabled_is_somebody_elses_from_then_on(machine, apply):
    note = machine.folder / "state" / "state" / f"driver-enabled-{DAEMON}.json"
    note.parent.mkdir(parents=True)
    note.write_text("{}")
    (machine.folder / f"{DAEMON}.enabled").touch()
    code, _done, said = apply("services", nvidia_driver_persistence=False)
    assert (code, machine.is_("enabled"), note.exists()) == (0, False, False), said


def test_a_missing_mokutil_is_named(run, machine):
    code, said = run(INVENTORY, machine.play("secure_boot", path_of_programs="/nowhere"))
    said = " ".join(said.split())
    assert code != 0
    assert (
        "node: Secure Boot is on, and mokutil is not installed, so that it is unknown whether the firmware trusts /var/lib/dkms/mok.pub"
        in said
    )
    assert "mok.pub; install mokutil, then, if the firmware does not trust the key, enrol it (mokutil --import" in said


def test_what_is_included_in_a_loop_can_have_loops_of_its_own():
    for path in TASKS.glob("*.yml"):
        for task in yaml.safe_load(path.read_text()):
            if "loop" in task and {"ansible.builtin.include_tasks", "ansible.builtin.include_role"} & set(task):
                assert task["loop_control"]["loop_var"].startswith("__nvidia_driver_"), task["name"]


@pytest.mark.thorough
def test_who_stays_on_an_emptied_node_is_named(machine, apply):
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, done, said = apply("users", nvidia_driver_drained=True)
    assert (code != 0, done) == (True, 0), said
    assert "node: the driver cannot be unloaded, because train (pid 4712) uses the GPUs; replace it" in said
