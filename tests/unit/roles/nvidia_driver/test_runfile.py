# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver by a fake installer on a fake machine, above all after a failure or an interruption."""

from __future__ import annotations

import base64
import json
import os

import pytest
from fakes.driver_machine import DAEMON, FABRIC_MANAGER

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import find_task

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

BROKEN = "could not remove the module: Device or resource busy"


def test_login_in_a_url_is_not_shown(machine, apply):
    variables = machine.write_installer("exit 0")
    variables["nvidia_driver_version"] = "570.2"
    url = "https://me:secret@mirror.example.com/570.run"
    machine.write_records("driver-runfile")
    record = json.dumps({"version": "570.2", "url": url, "checksum": "sha256:" + "0" * 64, "options": ["--silent"]})
    (machine.folder / "state" / "state" / "driver-runfile.json").write_text(record)
    code, _changes, output = apply("plan", "-v", **variables)
    assert code == 0, output
    assert "Export the planned driver change" in output
    assert "secret" not in output
    assert base64.b64encode(record.encode()).decode() not in output


#: The record of an installer: the version, whether it has the requested checksum, and whether that is refused.
RECORDS = {
    "another": ("570.2", True, True),
    "another-installer": ("570.2", False, False),
    "same": ("580.1", True, False),
    "interrupted": ("", True, False),
    "interrupted-another": ("", False, False),
}


def test_installer_of_another_version_is_refused_unless_interrupted(evaluate_role):
    """A rollback finds the new installer in the record, and an upgrade the former one."""
    task = find_task("nvidia_driver", "plan", "Refuse the installer of another version")
    checksum = "sha256:" + "1" * 64
    variables = {
        "nvidia_driver_method": "runfile",
        "nvidia_driver_version": "580.1",
        "nvidia_driver_runfile": {"url": "file:///new.run", "checksum": checksum},
    }
    hosts = {}
    for name, (version, same, _refused) in RECORDS.items():
        record = {"version": version, "url": "file:///former.run", "checksum": checksum if same else "sha256:0"}
        content = base64.b64encode(json.dumps(record).encode()).decode()
        hosts[name] = {**variables, "__nvidia_driver_runfile_recorded": {"content": content}}
    messages = evaluate_role("nvidia_driver", hosts, "''", task)
    for name, (*_record, refused) in RECORDS.items():
        words = f"{name}: nvidia_driver_runfile is the installer of the installed driver 570.2, but nvidia_driver_vers"
        assert (messages[name] or "").startswith(words) is refused, messages[name]
        assert bool(messages[name]) is refused, messages[name]


def test_installer_with_a_wrong_checksum_unloads_nothing(machine, apply):
    machine.start()
    variables = machine.write_installer(f"touch {machine.folder}/ran")
    variables["nvidia_driver_runfile"]["checksum"] = f"sha256:{'0' * 64}"
    code, _changes, output = apply("runfile_install", **variables)
    assert code != 0, output
    assert (machine.read_actions(), machine.has_state("running")) == ([], True)
    assert not (machine.folder / "ran").exists()
    assert not (machine.folder / "state" / "driver-runfile").exists()


def test_installer_is_not_fetched_while_the_driver_is_in_use(machine, apply):
    machine.start()
    machine.node.process(4712, "/dev/nvidia0", "train")
    code, changes, output = apply("runfile_install", **machine.write_installer("exit 0"))
    assert (code != 0, changes, machine.read_actions()) == (True, 0, []), output
    assert "train (pid 4712) uses the GPUs; replace it with the playbook" in output


def test_missing_headers_stop_the_installer_before_any_change(machine, apply):
    machine.start()
    (machine.folder / "modules" / "6.1.0-56-amd64" / "build").rmdir()
    code, changes, output = apply("runfile_install", **machine.write_installer(f"touch {machine.folder}/ran"))
    assert (code != 0, changes, machine.read_actions(), (machine.folder / "ran").exists()) == (True, 0, [], False), (
        output
    )
    assert "because the headers of the running kernel 6.1.0-56-amd64 are not installed" in output
    code, _changes, output = apply("runfile_install", "--check", **machine.write_installer("exit 0"))
    assert code == 0, "check mode does not require them: " + output


@pytest.mark.parametrize("removed", [False, True])
def test_former_driver_is_loaded_again_if_a_failed_installer_kept_it(machine, apply, removed):
    machine.start()
    before = sorted(machine.node.loaded())
    code, _changes, output = apply(
        "runfile_install", **machine.write_installer(f"{f'rm {machine.folder}/library;' if removed else ''} exit 3")
    )
    assert code != 0
    assert "node: the installer ended with status 3 and wrote last" in output
    assert sorted(machine.node.loaded()) == ([] if removed else before)
    assert machine.has_state("running") is not removed
    assert machine.read_actions()[-1] == f"{'stop' if removed else 'start'} {DAEMON}"
    assert ("No driver is loaded until then." in output) is removed


def test_check_mode_accepts_an_unknown_package_manager(machine, apply):
    variables = machine.write_installer("exit 0")
    code, _changes, output = apply("present", "--check", family="Gentoo", distribution="Gentoo", **variables)
    assert (code, machine.read_actions()) == (0, []), output
    assert "node: the installer of driver 580.1 would be fetched and run." in output


def test_installer_unpacks_into_the_state_directory(machine, apply):
    """Its scratch folder is not /tmp, where others can write, and which may be mounted with noexec."""
    text = f'stat --format "%a %n" "$TMPDIR" > {machine.folder}/scratch'
    code, _changes, output = apply("runfile_install", **machine.write_installer(text))
    assert code == 0, output
    mode, path = (machine.folder / "scratch").read_text().split()
    assert (mode, path.endswith("/driver-runfile")) == ("700", True)


def test_successful_installer_is_recorded_and_deleted(machine, apply):
    code, _changes, output = apply("runfile_install", **machine.write_installer("exit 0"))
    assert (code, machine.node.loaded()) == (0, []), output
    assert [path.name for path in (machine.folder / "state").rglob("*")] == ["state", "driver-runfile.json"]


@pytest.mark.thorough
@pytest.mark.parametrize("interrupted", [False, True])
def test_unmanaged_fabric_manager_starts_again_with_another_driver(machine, apply, interrupted):
    """Nothing else would start it, since the role does not manage this service."""
    machine.write_records("driver-runfile")
    machine.start(FABRIC_MANAGER)
    if interrupted:
        machine.node.set(errors={"rmmod nvidia": BROKEN})
        (machine.folder / f"{FABRIC_MANAGER}.broken").touch()
    library = f"echo 580.1 > {machine.folder}/library"
    code, _changes, output = apply("runfile_install", **machine.write_installer(library))
    assert (code != 0, machine.has_state("running", FABRIC_MANAGER)) == (interrupted, False), output
    assert machine.list_records() == ["driver-runfile", f"driver-stopped-{FABRIC_MANAGER}"]
    (machine.folder / f"{FABRIC_MANAGER}.broken").unlink(missing_ok=True)
    code, _changes, output = apply("services")
    assert (code, machine.has_state("running", FABRIC_MANAGER), machine.has_state("enabled", FABRIC_MANAGER)) == (
        0,
        True,
        False,
    ), output
    assert f"driver-stopped-{FABRIC_MANAGER}" not in machine.list_records()


@pytest.mark.thorough
def test_failed_first_installation_is_repeated(machine, apply):
    """It has recorded its start and the packages, but no installer."""
    machine.write_records("driver-started-runfile", "packages-nvidia-driver-build")
    code, _changes, output = apply(
        "runfile_install", **machine.write_installer(f"echo 580.1 > {machine.folder}/library")
    )
    assert (code, machine.list_records()) == (
        0,
        ["driver-runfile", "driver-started-runfile", "packages-nvidia-driver-build"],
    ), output
