# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the role on a machine with a fake kernel and fake services, above all when one of them fails."""

from __future__ import annotations

import os

import pytest
import yaml
from fakes.driver_machine import DAEMON, INVENTORY, ROLE

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

TASKS = ROOT / "roles" / "nvidia_driver" / "tasks"
BROKEN = "could not insert the module: Key was rejected by service"
LIBRARIES, FABRIC = "libnvidia-ml1", "nvidia-fabricmanager"


def test_stopped_daemon_is_started_after_a_failed_reload(machine, apply):
    """Its own failure does not replace the cause."""
    machine.start()
    machine.install_build()
    machine.node.set(errors={"modprobe nvidia": BROKEN})
    machine.fail_start(DAEMON)
    code, _changes, output = apply("kernel_modules")
    assert code != 0, output
    assert machine.read_actions()[-1] == f"start {DAEMON}"
    assert output.rpartition("Report why the kernel modules are not loaded")[2].count(BROKEN) == 1


def test_packages_are_not_replaced_during_a_job(machine, apply):
    """A partial update leaves packages of different versions; the packages of another provider have other names."""
    machine.write_records("packages-nvidia-driver")
    machine.node.process(4712, "/dev/nvidia0", "train")
    named = {"nvidia_driver_branch": "570"}
    remedy = "and needs nvidia_driver_version"

    machine.set_pending(LIBRARIES, FABRIC)
    code, changes, output = apply("present", "--check", **named)
    assert (code != 0, changes, machine.read_installed()) == (True, 0, []), output
    assert f"of which {LIBRARIES} and {FABRIC} would be replaced, cannot be unloaded, because train (pid" in output
    assert remedy not in output

    machine.set_pending()
    machine.remove_requested_packages()
    code, changes, output = apply("present")
    assert (code != 0, changes, machine.read_installed()) == (True, 0, []), output
    assert "node: the driver, which nvidia-smi and libnvidia-ml1 and" in output
    assert "would replace, cannot be unloaded, because train (pid 4712)" in output
    assert remedy in output

    machine.remove_requested_packages(removed=False)
    code, _changes, output = apply("present", **named)
    assert (code, machine.read_installed() == []) == (0, False), output


def test_different_packages_require_an_upgrade(machine, apply):
    """One run plans three times: with a package of another version, with none, and with packages of another provider."""
    machine.write_records("packages-nvidia-driver")
    machine.set_pending(LIBRARIES)
    blocker = "the requested packages differ from the installed ones."

    def expect(due, blocker=""):
        found = [f"nvidia_driver_plan.due == {due}", f"nvidia_driver_plan.rollback_blocker == '{blocker}'"]
        return {"ansible.builtin.assert": {"that": found}}

    def write(name):
        return {"ansible.builtin.copy": {"content": "", "dest": str(machine.folder / name)}}

    plan = {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "plan"}}
    steps = [expect(True), write("pending"), plan, expect(False), write("others"), plan, expect(True, blocker)]
    code, _changes, output = apply("plan", nvidia_driver_branch="570", then=steps)
    assert code == 0, output


def test_drop_in_of_the_daemon_takes_effect_once_and_is_removed_without_persistence(machine, apply):
    """Ubuntu's unit is static: it cannot be disabled, and udev starts it, without persistence mode."""
    machine.start()
    folder = machine.folder / "systemd" / f"{DAEMON}.service.d"
    variables = {"distribution": "Ubuntu"}
    # The first run ended before the daemon was restarted; the second one reads its record.
    code, _changes, output = apply("services_drop_in set_vars services_drop_in services", **variables)
    assert (code, machine.read_actions()) == (0, ["daemon-reload", f"enable {DAEMON}", f"restart {DAEMON}"]), output
    assert (machine.list_records(), (folder / "gpu-kubernetes.conf").exists()) == ([f"driver-enabled-{DAEMON}"], True)
    code, changes, output = apply("services_drop_in services", **variables)
    assert (code, changes, machine.read_actions()) == (0, 0, []), output

    variables["nvidia_driver_persistence"] = False
    code, _changes, output = apply("services_drop_in_absent services", **variables)
    assert (code, folder.exists(), machine.has_state("running")) == (0, False, False), output
    assert machine.read_actions() == ["daemon-reload", f"stop {DAEMON}"]
    machine.start()
    code, changes, output = apply("services_drop_in_absent services", **variables)
    assert (code, changes, machine.read_actions(), machine.has_state("running")) == (0, 0, [], True), output


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


def test_check_mode_predicts_the_reboot_for_nouveau(machine, apply):
    machine.set_driver_facts(nouveau_loaded=True)
    code, _changes, output = apply("present", "--check", vendor_packages_result={"changed": True})
    assert (code != 0, machine.read_actions(), machine.read_installed(), machine.list_records()) == (
        True,
        [],
        [],
        [],
    ), output
    assert "node: the driver would be installed and need a reboot, because nouveau is loaded, and" in output


def test_daemon_that_the_role_has_disabled_is_unmanaged_afterwards(machine, apply):
    record = machine.folder / "state" / "state" / f"driver-enabled-{DAEMON}.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    (machine.folder / f"{DAEMON}.enabled").touch()
    code, _changes, output = apply("services", nvidia_driver_persistence=False)
    assert (code, machine.has_state("enabled"), record.exists()) == (0, False, False), output


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
