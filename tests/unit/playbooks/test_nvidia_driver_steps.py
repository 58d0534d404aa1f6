# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps of the role on a machine whose kernel, services and installer are stand-ins, above all when one of them fails."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")

import yaml
from fakes.driver_machine import DAEMON, FABRIC_MANAGER, NEXT_KERNEL, Machine
from fakes.loopback_api import write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.effort import PROFILE

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

TASKS = Path(__file__).resolve().parents[3] / "roles" / "nvidia_driver" / "tasks"
INVENTORY = "node ansible_connection=local ansible_become=false\n"
BROKEN = "could not insert the module: Key was rejected by service"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def apply(run, machine):
    """Run a part of the role: exit code, how many tasks changed something, what was said in one line."""

    def play(part, *options, hosts=INVENTORY, **asked):
        code, said = run(hosts, machine.play(*part.split(), **asked), *options)
        return code, int(re.findall(r"\bchanged=(\d+)", said)[-1]), " ".join(said.split())

    return play


def test_a_reload_is_foreseen_that_only_the_daemon_is_in_the_way_of(machine, apply):
    machine.start()
    machine.update()
    code, told, said = apply("kernel_modules", "--check")
    assert (code, told > 0, machine.done()) == (0, True, []), said
    assert (
        "the kernel modules would be loaded again, because the loaded kernel module is another build of 570.2" in said
    )
    code, done, said = apply("kernel_modules")
    assert (code, done > 0, machine.is_("running")) == (0, True, True), said
    assert machine.done()[-2:] == [f"stop {DAEMON}", f"start {DAEMON}"]
    code, again, said = apply("kernel_modules")
    assert (code, again, machine.done()) == (0, 0, []), said


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
    assert said.rpartition("Tell why they are not loaded")[2].count(BROKEN) == 1


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
        assert "the loaded kernel module has NVreg_EnableStreamMemOPs = 0, which is not wanted any more" in said
    shutil.rmtree(machine.node.root / "proc" / "4712")
    machine.done()
    code, _done, said = apply("present")
    assert code == 0, said
    assert "rmmod nvidia" in machine.done()
    code, again, said = apply("present")
    assert (code, again, machine.done()) == (0, 0, []), said


LIBRARIES, FABRIC = "libnvidia-ml1", "nvidia-fabricmanager"
NAMING = {"nvidia_driver_version", "nvidia_driver_branch"}


@pytest.mark.parametrize("mode", [["--check"], []])
@pytest.mark.parametrize(
    ("asked", "different", "refused"),
    [
        ({"nvidia_driver_branch": "570"}, [LIBRARIES, FABRIC], True),
        ({"nvidia_driver_version": "570.2"}, [LIBRARIES], True),
        ({"nvidia_driver_fabric_manager": "always"}, [LIBRARIES], True),
        ({"nvidia_driver_branch": "570"}, [FABRIC], True),
        ({"nvidia_driver_branch": "570"}, [], False),
        ({}, [], False),
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
    words = (
        f"of which {' and '.join(different)} would come in another version, cannot be taken away, because train (pid"
    )
    assert (code != 0, words in said) == (refused, refused), said
    assert ("and has to be told nvidia_driver_version" in said) == (refused and len(asked.keys() & NAMING) == 0), said
    assert (done == 0, machine.installed() == []) == (refused, refused or mode != []), said


def test_parts_of_different_versions_are_a_reason_for_an_upgrade(machine, apply):
    machine.note("packages-nvidia-driver")
    due = {"ansible.builtin.assert": {"that": "nvidia_driver_plan.due == expected"}}
    for different, expected in ((LIBRARIES, True), ("", False)):
        machine.differ(different)
        code, _done, said = apply("plan", nvidia_driver_branch="570", then=[due], expected=expected)
        assert code == 0, said


def test_a_daemon_that_ran_before_its_drop_in_is_started_again(machine, apply):
    machine.start()
    (machine.folder / f"{DAEMON}.enabled").touch()
    folder = machine.folder / "systemd" / f"{DAEMON}.service.d"
    code, done, said = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, done > 0, (folder / "gpu-kubernetes.conf").exists()) == (0, True, True), said
    assert machine.done() == ["daemon-reload", f"restart {DAEMON}"]
    code, again, said = apply("services_drop_in services", distribution="Ubuntu")
    assert (code, again, machine.done()) == (0, 0, []), said
    code, _done, said = apply("services_drop_in_absent", distribution="Ubuntu")
    assert (code, folder.exists(), machine.done()) == (0, False, ["daemon-reload"]), said


def test_without_persistence_ubuntus_daemon_is_left_as_it_comes(machine, apply):
    """Its unit is static: it cannot be disabled, and udev starts it, without persistence mode."""
    asked = {"distribution": "Ubuntu", "nvidia_driver_persistence": False}
    for _start in ("of the role's own unit", "of the package's unit"):
        code, _done, said = apply("services_drop_in services", distribution="Ubuntu")
        assert (code, machine.is_("running")) == (0, True), said
        machine.done()
        code, done, said = apply("services_drop_in_absent services", **asked)
        assert (code, done > 0, machine.is_("running")) == (0, True, False), said
        assert machine.done() == ["daemon-reload", f"stop {DAEMON}"]
    machine.start()
    for mode in (["--check"], []):
        code, again, said = apply("services_drop_in_absent services", *mode, **asked)
        assert (code, again, machine.done(), machine.is_("running")) == (0, 0, [], True), said


def test_several_nodes_that_need_a_reboot_are_not_begun_with(machine, apply):
    machine.tell(nouveau_loaded=True)
    hosts = INVENTORY + INVENTORY.replace("node ", "other ")
    code, done, said = apply("present", hosts=hosts, nvidia_driver_reboot="if_needed")
    assert (code != 0, done, machine.installed(), machine.notes()) == (True, 0, [], []), said
    assert "node: the driver needs a reboot, because nouveau is loaded, and this run has 2 hosts at once" in said


@pytest.mark.parametrize(("reboot", "fails"), [("never", True), ("report", False)])
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


def test_a_login_is_not_shown(machine, apply):
    asked = installer(machine, "exit 0")
    asked["nvidia_driver_version"] = "570.2"
    url = "https://me:secret@mirror.example.com/570.run"
    machine.note("driver-runfile")
    record = json.dumps({"version": "570.2", "url": url, "checksum": "sha256:" + "0" * 64, "options": ["--silent"]})
    (machine.folder / "state" / "state" / "driver-runfile.json").write_text(record)
    code, _done, said = apply("plan", "-v", **asked)
    assert code == 0, said
    assert "Tell what would be swapped for what" in said
    assert "secret" not in said
    assert base64.b64encode(record.encode()).decode() not in said


def installer(machine, text):
    """What asks for an installer of this text."""
    path = machine.folder / "theirs.run"
    path.write_text(text)
    return {
        "nvidia_driver_method": "runfile",
        "nvidia_driver_version": "580.1",
        "nvidia_driver_runfile": {
            "url": f"file://{path}",
            "checksum": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
        },
    }


#: What an installer has left in its record: the version, whether it has the checksum that is asked for now, and whether that is refused.
RECORDS = {
    "another's": ("570.2", True, True),
    "the same": ("580.1", True, False),
    "cut off": ("", True, False),
    "cut off, another": ("", False, False),
}


@pytest.mark.parametrize(("version", "same", "refused"), RECORDS.values(), ids=RECORDS)
def test_an_installer_that_was_cut_off_may_be_asked_for_again(machine, apply, version, same, refused):
    """On the way back the new one is what is recorded, and on the way forth the former one."""
    asked = installer(machine, "exit 0")
    checksum = asked["nvidia_driver_runfile"]["checksum"] if same else "sha256:" + "0" * 64
    machine.note("driver-runfile")
    record = {"version": version, "url": "file:///former.run", "checksum": checksum, "options": ["--silent"]}
    (machine.folder / "state" / "state" / "driver-runfile.json").write_text(json.dumps(record))
    code, _done, said = apply("plan", **asked)
    assert ((code != 0), "is the installer of driver 570.2, which is there" in said) == (refused, refused), said


def test_nothing_is_unloaded_for_an_installer_that_cannot_be_had(machine, apply):
    machine.start()
    asked = installer(machine, f"touch {machine.folder}/ran")
    asked["nvidia_driver_runfile"]["checksum"] = f"sha256:{'0' * 64}"
    code, _done, said = apply("runfile_install", **asked)
    assert code != 0, said
    assert (machine.done(), machine.is_("running")) == ([], True)
    assert not (machine.folder / "ran").exists()
    assert not (machine.folder / "state" / "driver-runfile").exists()


def test_nothing_is_fetched_for_a_driver_that_somebody_uses(machine, apply):
    machine.start()
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, done, said = apply("runfile_install", **installer(machine, "exit 0"))
    assert (code != 0, done, machine.done()) == (True, 0, []), said
    assert "train (pid 4712) uses the GPUs; swap it with the playbook" in said


def test_nothing_is_touched_without_the_headers_that_an_installer_needs(machine, apply):
    machine.start()
    (machine.folder / "modules" / "6.1.0-56-amd64" / "build").rmdir()
    code, done, said = apply("runfile_install", **installer(machine, f"touch {machine.folder}/ran"))
    assert (code != 0, done, machine.done(), (machine.folder / "ran").exists()) == (True, 0, [], False), said
    assert "node: the headers of the running kernel 6.1.0-56-amd64 are not there" in said
    code, _done, said = apply("runfile_install", "--check", **installer(machine, "exit 0"))
    assert code == 0, "they are still to come: " + said


@pytest.mark.parametrize("taken", [False, True])
def test_the_former_driver_comes_back_if_the_installer_has_left_it(machine, apply, taken):
    machine.start()
    before = sorted(machine.node.loaded())
    code, _done, said = apply(
        "runfile_install", **installer(machine, f"{f'rm {machine.folder}/library;' if taken else ''} exit 3")
    )
    assert code != 0
    assert "node: the installer ended with status 3 and wrote last" in said
    assert sorted(machine.node.loaded()) == ([] if taken else before)
    assert machine.is_("running") is not taken
    assert machine.done()[-1] == f"{'stop' if taken else 'start'} {DAEMON}"


def test_an_installer_that_succeeds_is_recorded_and_goes(machine, apply):
    code, _done, said = apply("runfile_install", "--check", **installer(machine, "exit 0"))
    assert (code, machine.done()) == (0, []), said
    code, _done, said = apply("runfile_install", **installer(machine, "exit 0"))
    assert (code, machine.node.loaded()) == (0, []), said
    assert [path.name for path in (machine.folder / "state").rglob("*")] == ["state", "driver-runfile.json"]


@pytest.mark.parametrize("killed", [False, True])
def test_somebody_elses_fabric_manager_comes_back_with_another_driver(machine, apply, killed):
    """Nothing else would start it: it is none of the services that the role has run."""
    machine.note("driver-runfile")
    machine.start(FABRIC_MANAGER)
    if killed:
        machine.node.set(errors={"rmmod nvidia": BROKEN})
        (machine.folder / f"{FABRIC_MANAGER}.broken").touch()
    library = f"echo 580.1 > {machine.folder}/library"
    code, _done, said = apply("runfile_install", **installer(machine, library))
    assert (code != 0, machine.is_("running", FABRIC_MANAGER)) == (killed, False), said
    assert machine.notes() == ["driver-runfile", f"driver-stopped-{FABRIC_MANAGER}"]
    (machine.folder / f"{FABRIC_MANAGER}.broken").unlink(missing_ok=True)
    code, _done, said = apply("services")
    assert (code, machine.is_("running", FABRIC_MANAGER), machine.is_("enabled", FABRIC_MANAGER)) == (0, True, False), (
        said
    )
    assert f"driver-stopped-{FABRIC_MANAGER}" not in machine.notes()


def test_only_what_the_role_has_enabled_is_disabled_again(machine, apply):
    note = machine.folder / "state" / "state" / f"driver-enabled-{DAEMON}.json"
    note.parent.mkdir(parents=True)
    code, told, said = apply("services", "--check")
    assert (code, told > 0, machine.done()) == (0, True, []), said
    code, done, said = apply("services")
    assert (code, done > 0, machine.is_("enabled"), note.exists()) == (0, True, True, True), said
    code, again, said = apply("services")
    assert (code, again, note.exists()) == (0, 0, True), said
    code, told, said = apply("services_absent", "--check")
    assert (code, told > 0, machine.is_("enabled")) == (0, True, True), said
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
    code, told, said = apply("main", "--check", **ABSENT)
    assert (code, told > 0, machine.done(), len(machine.notes())) == (0, True, [], len(RECORDS[installed]) + 2), said
    code, _done, said = apply("main", **ABSENT)
    assert (code, taken_away(machine)) == (0, True), said
    assert ("uninstall" in machine.done()) is (installed == "runfile")
    code, again, said = apply("main", **ABSENT)
    assert (code, again, machine.done()) == (0, 0, []), said


def test_before_packages_that_have_to_stay_nothing_is_touched(machine, apply, installed):
    loaded, notes = machine.node.loaded(), machine.notes()
    with machine.failing("packages"):
        code, done, said = apply("main", **ABSENT)
    assert (code != 0, done, machine.done()) == (True, 0, []), said
    assert f"nvidia-driver{'-build' if installed == 'runfile' else ''} have to stay" in said
    assert (machine.node.loaded(), machine.notes(), machine.is_("running")) == (loaded, notes, True)


@pytest.mark.skipif(PROFILE == "quick", reason="it takes long, and differs by where it is cut off alone")
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


def test_an_installer_of_which_only_the_packages_came_is_installed_anew(machine, apply):
    """A first installation that failed has left a note and no record of the installer."""
    machine.note("driver-begun-runfile", "packages-nvidia-driver-build")
    code, _done, said = apply("runfile", **installer(machine, f"echo 580.1 > {machine.folder}/library"))
    assert (code, machine.notes()) == (0, ["driver-begun-runfile", "driver-runfile", "packages-nvidia-driver-build"]), (
        said
    )


def test_a_missing_mokutil_is_named(run, machine):
    code, said = run(INVENTORY, machine.play("secure_boot", path_of_programs="/nowhere"))
    said = " ".join(said.split())
    assert code != 0
    assert (
        "node: Secure Boot is on, and there is no mokutil to ask whether the firmware knows /var/lib/dkms/mok.pub"
        in said
    )
    assert "mok.pub; install mokutil, then, if the firmware does not know the key, enrol it (mokutil --import" in said


def test_what_is_included_in_a_loop_can_have_loops_of_its_own():
    for path in TASKS.glob("*.yml"):
        for task in yaml.safe_load(path.read_text()):
            if "loop" in task and {"ansible.builtin.include_tasks", "ansible.builtin.include_role"} & set(task):
                assert task["loop_control"]["loop_var"].startswith("__nvidia_driver_"), task["name"]


def test_the_node_is_given_back_once_it_offers_its_gpus_again(machine, apply):
    def offer(count):
        status = {"capacity": {"nvidia.com/gpu": "2"}, "allocatable": {"nvidia.com/gpu": count}}
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        return {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": "node", "labels": {}},
            "spec": {},
            "status": {**status, **ready},
        }

    cluster = SmallCluster(offer("2"), {"kind": "Namespace", "metadata": {"name": "kube-system"}})
    threading.Thread(target=cluster.serve_forever, daemon=True).start()
    asked = {
        "gpu_kubeconfig": str(write_kubeconfig(cluster.url, machine.folder / "kubeconfig")),
        "nvidia_driver_reboot_reasons": ["nouveau is loaded"],
        "nvidia_driver_reboot_timeout": 1,
    }
    code, _done, said = apply("reboot_if_needed", **asked)
    assert code == 0, said
    note = machine.folder / "state" / "state" / "driver-reboot.json"
    assert int(json.loads(note.read_text())["gpus"]) == 2
    cluster.put(offer("1"))
    code, _done, said = apply("reboot_wait", **asked)
    assert code != 0, said
    assert "node: Waited 1 s in vain for allocatable nvidia.com/gpu: node node: 1 of 2" in said
    assert "Node node stays cordoned until then; run again, which gives it back." in said
    cluster.put(offer("2"))
    code, _done, said = apply("reboot_wait reboot_end", **asked)
    cluster.shutdown()
    cluster.server_close()
    assert (code, note.exists()) == (0, False), said
