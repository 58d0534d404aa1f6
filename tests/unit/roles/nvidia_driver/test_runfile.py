# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver by an installer, which is a fake as the machine is, above all when it fails or was cut off."""

from __future__ import annotations

import base64
import json
import os

import pytest
from fakes.driver_machine import DAEMON, FABRIC_MANAGER

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import task_of

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

BROKEN = "could not remove the module: Device or resource busy"


def test_a_login_is_not_shown(machine, apply):
    asked = machine.installer("exit 0")
    asked["nvidia_driver_version"] = "570.2"
    url = "https://me:secret@mirror.example.com/570.run"
    machine.note("driver-runfile")
    record = json.dumps({"version": "570.2", "url": url, "checksum": "sha256:" + "0" * 64, "options": ["--silent"]})
    (machine.folder / "state" / "state" / "driver-runfile.json").write_text(record)
    code, _done, said = apply("plan", "-v", **asked)
    assert code == 0, said
    assert "Export the planned driver change" in said
    assert "secret" not in said
    assert base64.b64encode(record.encode()).decode() not in said


#: What an installer has left in its record: the version, whether it has the checksum that is asked for now, and whether that is refused.
RECORDS = {
    "another": ("570.2", True, True),
    "another-installer": ("570.2", False, False),
    "same": ("580.1", True, False),
    "cut-off": ("", True, False),
    "cut-off-another": ("", False, False),
}


def test_the_installer_of_another_version_is_refused_and_one_that_was_cut_off_is_not(made):
    """On the way back the new one is what is recorded, and on the way forth the former one."""
    task = task_of("nvidia_driver", "plan", "Refuse the installer of another version")
    checksum = "sha256:" + "1" * 64
    asked = {
        "nvidia_driver_method": "runfile",
        "nvidia_driver_version": "580.1",
        "nvidia_driver_runfile": {"url": "file:///new.run", "checksum": checksum},
    }
    hosts = {}
    for name, (version, same, _refused) in RECORDS.items():
        record = {"version": version, "url": "file:///former.run", "checksum": checksum if same else "sha256:0"}
        content = base64.b64encode(json.dumps(record).encode()).decode()
        hosts[name] = {**asked, "__nvidia_driver_runfile_recorded": {"content": content}}
    told = made("nvidia_driver", hosts, "''", task)
    for name, (*_record, refused) in RECORDS.items():
        words = f"{name}: nvidia_driver_runfile is the installer of the installed driver 570.2, but nvidia_driver_vers"
        assert (told[name] or "").startswith(words) is refused, told[name]
        assert bool(told[name]) is refused, told[name]


def test_nothing_is_unloaded_for_an_installer_that_cannot_be_had(machine, apply):
    machine.start()
    asked = machine.installer(f"touch {machine.folder}/ran")
    asked["nvidia_driver_runfile"]["checksum"] = f"sha256:{'0' * 64}"
    code, _done, said = apply("runfile_install", **asked)
    assert code != 0, said
    assert (machine.done(), machine.is_("running")) == ([], True)
    assert not (machine.folder / "ran").exists()
    assert not (machine.folder / "state" / "driver-runfile").exists()


def test_nothing_is_fetched_for_a_driver_that_somebody_uses(machine, apply):
    machine.start()
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, done, said = apply("runfile_install", **machine.installer("exit 0"))
    assert (code != 0, done, machine.done()) == (True, 0, []), said
    assert "train (pid 4712) uses the GPUs; replace it with the playbook" in said


def test_nothing_is_touched_without_the_headers_that_an_installer_needs(machine, apply):
    machine.start()
    (machine.folder / "modules" / "6.1.0-56-amd64" / "build").rmdir()
    code, done, said = apply("runfile_install", **machine.installer(f"touch {machine.folder}/ran"))
    assert (code != 0, done, machine.done(), (machine.folder / "ran").exists()) == (True, 0, [], False), said
    assert "because the headers of the running kernel 6.1.0-56-amd64 are not installed" in said
    code, _done, said = apply("runfile_install", "--check", **machine.installer("exit 0"))
    assert code == 0, "they are still to come: " + said


@pytest.mark.parametrize("taken", [False, True])
def test_the_former_driver_comes_back_if_the_installer_has_left_it(machine, apply, taken):
    machine.start()
    before = sorted(machine.node.loaded())
    code, _done, said = apply(
        "runfile_install", **machine.installer(f"{f'rm {machine.folder}/library;' if taken else ''} exit 3")
    )
    assert code != 0
    assert "node: the installer ended with status 3 and wrote last" in said
    assert sorted(machine.node.loaded()) == ([] if taken else before)
    assert machine.is_("running") is not taken
    assert machine.done()[-1] == f"{'stop' if taken else 'start'} {DAEMON}"


def test_a_check_knows_a_distribution_without_a_package_manager_of_ours(machine, apply):
    asked = machine.installer("exit 0")
    code, _done, said = apply("present", "--check", family="Gentoo", distribution="Gentoo", **asked)
    assert (code, machine.done()) == (0, []), said
    assert "node: the installer of driver 580.1 would be fetched and run." in said


def test_an_installer_unpacks_into_the_state_directory(machine, apply):
    """Its scratch folder is not /tmp, where others can write, and which may be mounted with noexec."""
    text = f'stat --format "%a %n" "$TMPDIR" > {machine.folder}/scratch'
    code, _done, said = apply("runfile_install", **machine.installer(text))
    assert code == 0, said
    mode, path = (machine.folder / "scratch").read_text().split()
    assert (mode, path.endswith("/driver-runfile")) == ("700", True)


def test_an_installer_that_succeeds_is_recorded_and_goes(machine, apply):
    code, _done, said = apply("runfile_install", **machine.installer("exit 0"))
    assert (code, machine.node.loaded()) == (0, []), said
    assert [path.name for path in (machine.folder / "state").rglob("*")] == ["state", "driver-runfile.json"]


@pytest.mark.thorough
@pytest.mark.parametrize("killed", [False, True])
def test_somebody_elses_fabric_manager_comes_back_with_another_driver(machine, apply, killed):
    """Nothing else would start it: it is none of the services that the role has run."""
    machine.note("driver-runfile")
    machine.start(FABRIC_MANAGER)
    if killed:
        machine.node.set(errors={"rmmod nvidia": BROKEN})
        (machine.folder / f"{FABRIC_MANAGER}.broken").touch()
    library = f"echo 580.1 > {machine.folder}/library"
    code, _done, said = apply("runfile_install", **machine.installer(library))
    assert (code != 0, machine.is_("running", FABRIC_MANAGER)) == (killed, False), said
    assert machine.notes() == ["driver-runfile", f"driver-stopped-{FABRIC_MANAGER}"]
    (machine.folder / f"{FABRIC_MANAGER}.broken").unlink(missing_ok=True)
    code, _done, said = apply("services")
    assert (code, machine.is_("running", FABRIC_MANAGER), machine.is_("enabled", FABRIC_MANAGER)) == (0, True, False), (
        said
    )
    assert f"driver-stopped-{FABRIC_MANAGER}" not in machine.notes()


@pytest.mark.thorough
def test_an_installer_of_which_only_the_packages_came_is_installed_anew(machine, apply):
    """A first installation that failed has left a note and no record of the installer."""
    machine.note("driver-begun-runfile", "packages-nvidia-driver-build")
    code, _done, said = apply("runfile", **machine.installer(f"echo 580.1 > {machine.folder}/library"))
    assert (code, machine.notes()) == (0, ["driver-begun-runfile", "driver-runfile", "packages-nvidia-driver-build"]), (
        said
    )
