# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the role on a machine with a fake kernel and fake services, above all when one of them fails."""

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


def test_reload_that_only_the_daemon_blocks_is_predicted(machine, apply):
    machine.start()
    machine.install_build()
    code, changes, output = apply("kernel_modules", "--check")
    assert (code, changes > 0, machine.read_actions()) == (0, True, []), output
    assert "the kernel modules would be reloaded, because the loaded kernel module is another build of 570.2" in output
    code, changes, output = apply("kernel_modules")
    assert (code, changes > 0, machine.has_state("running")) == (0, True, True), output
    assert machine.read_actions()[-2:] == [f"stop {DAEMON}", f"start {DAEMON}"]


@pytest.mark.parametrize("broken", [False, True])
def test_stopped_daemon_starts_again_after_a_failed_reload(machine, apply, broken):
    machine.start()
    machine.install_build()
    machine.node.set(errors={"modprobe nvidia": BROKEN})
    if broken:
        (machine.folder / f"{DAEMON}.broken").touch()
    code, _changes, output = apply("kernel_modules")
    assert code != 0, output
    assert machine.read_actions()[-1] == f"start {DAEMON}"
    assert machine.has_state("running") is not broken
    assert output.rpartition("Report why the kernel modules are not loaded")[2].count(BROKEN) == 1


@pytest.mark.thorough
def test_unrequested_parameter_is_removed_once_no_process_uses_the_gpus(machine, apply):
    machine.write_records("packages-nvidia-driver")
    machine.write_records("driver-enabled-" + DAEMON)
    parameters = {"nvidia_driver_module_parameters": {"NVreg_EnableStreamMemOPs": 0}}
    code, _changes, output = apply("present", **parameters)
    assert code == 0, output
    machine.node.process(4712, "/dev/nvidia0", "train")
    for _attempt in range(2):
        code, _changes, output = apply("present")
        assert code != 0, output
        assert "the loaded kernel module has NVreg_EnableStreamMemOPs = 0, which is no longer requested" in output
    shutil.rmtree(machine.node.root / "proc" / "4712")
    machine.read_actions()
    code, _changes, output = apply("present")
    assert code == 0, output
    assert "rmmod nvidia" in machine.read_actions()


LIBRARIES, FABRIC = "libnvidia-ml1", "nvidia-fabricmanager"
NAMING = {"nvidia_driver_version", "nvidia_driver_branch"}


@pytest.mark.parametrize(
    ("mode", "variables", "different", "refused"),
    [
        ([], {"nvidia_driver_branch": "570"}, [LIBRARIES, FABRIC], True),
        (["--check"], {"nvidia_driver_version": "570.2"}, [LIBRARIES], True),
        (["--check"], {"nvidia_driver_fabric_manager": "always"}, [LIBRARIES], True),
        ([], {"nvidia_driver_branch": "570"}, [], False),
    ],
)
def test_packages_of_different_versions_are_not_aligned_during_a_job(
    machine, apply, mode, variables, different, refused
):
    """A partial update leaves such packages."""
    machine.write_records("packages-nvidia-driver")
    machine.set_pending(*different)
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, changes, output = apply("present", *mode, **variables)
    words = f"of which {' and '.join(different)} would be replaced, cannot be unloaded, because train (pid"
    assert (code != 0, words in output) == (refused, refused), output
    assert ("and needs nvidia_driver_version" in output) == (refused and len(variables.keys() & NAMING) == 0), output
    assert (changes == 0, machine.read_installed() == []) == (refused, refused), output


@pytest.mark.parametrize(
    ("mode", "variables"), [(["--check"], {"nvidia_driver_branch": "570"}), ([], {})], ids=["branch", "nothing"]
)
def test_packages_of_another_provider_are_not_installed_during_a_job(machine, apply, mode, variables):
    """The content of their repository is not known yet."""
    machine.write_records("packages-nvidia-driver")
    machine.remove_requested_packages()
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, changes, output = apply("present", *mode, **variables)
    assert (code != 0, changes, machine.read_installed()) == (True, 0, []), output
    assert "node: the driver, which nvidia-smi and libnvidia-ml1 and" in output
    assert "would replace, cannot be unloaded, because train (pid 4712)" in output


def test_different_packages_require_an_upgrade(machine, apply):
    machine.write_records("packages-nvidia-driver")
    due = {
        "ansible.builtin.assert": {
            "that": ["nvidia_driver_plan.due == expected", "nvidia_driver_plan.rollback_blocker == blocker"]
        }
    }
    for different, expected in ((LIBRARIES, True), ("", False)):
        machine.set_pending(different)
        code, _changes, output = apply("plan", nvidia_driver_branch="570", then=[due], expected=expected, blocker="")
        assert code == 0, output
    machine.remove_requested_packages()
    blocker = "the requested packages differ from the installed ones."
    code, _changes, output = apply("plan", nvidia_driver_branch="570", then=[due], expected=True, blocker=blocker)
    assert code == 0, output


def test_daemon_that_ran_before_its_drop_in_is_restarted(machine, apply):
    machine.start()
    (machine.folder / f"{DAEMON}.enabled").touch()
    folder = machine.folder / "systemd" / f"{DAEMON}.service.d"
    code, changes, output = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, changes > 0, (folder / "gpu-kubernetes.conf").exists()) == (0, True, True), output
    assert machine.read_actions() == ["daemon-reload", f"restart {DAEMON}"]
    code, _changes, output = apply("services_drop_in_absent", distribution="Ubuntu")
    assert (code, folder.exists(), machine.read_actions()) == (0, False, ["daemon-reload"]), output


def test_ubuntus_daemon_is_not_managed_without_persistence(machine, apply):
    """Its unit is static: it cannot be disabled, and udev starts it, without persistence mode."""
    variables = {"distribution": "Ubuntu", "nvidia_driver_persistence": False}
    code, _changes, output = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, machine.has_state("running")) == (0, True), output
    machine.read_actions()
    code, changes, output = apply("services_drop_in_absent services", **variables)
    assert (code, changes > 0, machine.has_state("running")) == (0, True, False), output
    assert machine.read_actions() == ["daemon-reload", f"stop {DAEMON}"]
    machine.start()
    code, changes, output = apply("services_drop_in_absent services", **variables)
    assert (code, changes, machine.read_actions(), machine.has_state("running")) == (0, 0, [], True), output


@pytest.mark.thorough
def test_drop_in_of_an_interrupted_run_takes_effect_with_the_next(machine, apply):
    machine.start()
    code, _changes, output = apply("services_drop_in", distribution="Ubuntu")
    assert (code, machine.read_actions(), machine.list_records()) == (0, [], ["driver-drop-in"]), output
    code, _changes, output = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, machine.read_actions()) == (0, ["daemon-reload", f"enable {DAEMON}", f"restart {DAEMON}"]), output
    assert machine.list_records() == [f"driver-enabled-{DAEMON}"]
    code, changes, output = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, changes, machine.read_actions()) == (0, 0, []), output


def test_libraries_follow_signed_kernel_modules_of_another_version(machine, apply):
    """As after a boot into a newer kernel, whose modules require newer ones."""
    machine.write_records("packages-nvidia-driver")
    machine.node.load()
    variables = {"distribution": "Ubuntu", "nvidia_driver_branch": "570"}
    machine.set_driver_facts(secure_boot=True, module_version=None, installed_module_version="570.3")
    _code, _changes, output = apply("present", **variables)
    # The pin is that of the branch again.
    assert machine.read_versions() == ["570.*", "570.3", "570.*"], output


def test_reboot_of_several_nodes_at_once_is_refused(machine, apply):
    machine.set_driver_facts(nouveau_loaded=True)
    hosts = INVENTORY + INVENTORY.replace("node ", "other ")
    code, changes, output = apply("present", hosts=hosts, nvidia_driver_reboot="if_needed")
    assert (code != 0, changes, machine.read_installed(), machine.list_records()) == (True, 0, [], []), output
    assert "node: the driver needs a reboot, because nouveau is loaded, and this run has 2 hosts at once" in output


@pytest.mark.parametrize(
    ("reboot", "fails"), [("never", True), pytest.param("report", False, marks=pytest.mark.thorough)]
)
def test_check_mode_predicts_the_reboot_for_nouveau(machine, apply, reboot, fails):
    machine.set_driver_facts(nouveau_loaded=True)
    packages = {"vendor_packages_result": {"changed": True}}
    code, _changes, output = apply("present", "--check", nvidia_driver_reboot=reboot, **packages)
    assert (code != 0, machine.read_actions(), machine.read_installed(), machine.list_records()) == (
        fails,
        [],
        [],
        [],
    ), output
    assert "node: the driver would be installed and need a reboot, because nouveau is loaded, and" in output


def test_headers_of_the_booted_kernel_are_installed_after_a_reboot(machine, apply):
    variables = {"nvidia_driver_reboot_drain": False, "nvidia_driver_reboot_reasons": ["nouveau is loaded"]}
    code, _changes, output = apply("reboot_if_needed", **variables)
    assert (code, f"linux-headers-{NEXT_KERNEL}" in machine.read_installed()) == (0, True), output


def test_only_a_daemon_that_the_role_has_enabled_is_disabled(machine, apply):
    record = machine.folder / "state" / "state" / f"driver-enabled-{DAEMON}.json"
    record.parent.mkdir(parents=True)
    code, changes, output = apply("services")
    assert (code, changes > 0, machine.has_state("enabled"), record.exists()) == (0, True, True, True), output
    code, _changes, output = apply("services_absent")
    assert (code, machine.has_state("enabled"), record.exists()) == (0, False, False), output
    # Enabled by others, as Debian's package does.
    (machine.folder / f"{DAEMON}.enabled").touch()
    code, changes, output = apply("services")
    assert (code, changes, record.exists()) == (0, 0, False), output


def test_daemon_that_the_role_has_disabled_is_unmanaged_afterwards(machine, apply):
    record = machine.folder / "state" / "state" / f"driver-enabled-{DAEMON}.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    (machine.folder / f"{DAEMON}.enabled").touch()
    code, _changes, output = apply("services", nvidia_driver_persistence=False)
    assert (code, machine.has_state("enabled"), record.exists()) == (0, False, False), output


def test_missing_mokutil_is_named(run, machine, tmp_path):
    (tmp_path / "programs-of-the-host").mkdir()
    (tmp_path / "programs-of-the-host" / "timeout").symlink_to(shutil.which("timeout"))
    code, output = run(
        INVENTORY, machine.write_play("secure_boot", path_of_programs=str(tmp_path / "programs-of-the-host"))
    )
    output = " ".join(output.split())
    assert code != 0
    assert (
        "node: Secure Boot is on, and mokutil is not installed, so that it is unknown whether the firmware trusts /var/lib/dkms/mok.pub"
        in output
    )
    assert (
        "mok.pub; install mokutil, then, if the firmware does not trust the key, enrol it (mokutil --import" in output
    )


def test_included_files_in_a_loop_have_their_own_loop_variable():
    for path in TASKS.glob("*.yml"):
        for task in yaml.safe_load(path.read_text()):
            if "loop" in task and {"ansible.builtin.include_tasks", "ansible.builtin.include_role"} & set(task):
                assert task["loop_control"]["loop_var"].startswith("__nvidia_driver_"), task["name"]


@pytest.mark.thorough
def test_process_on_a_drained_node_is_named(machine, apply):
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, changes, output = apply("users", nvidia_driver_drained=True)
    assert (code != 0, changes) == (True, 0), output
    assert "node: the driver cannot be unloaded, because train (pid 4712) uses the GPUs; replace it" in output
