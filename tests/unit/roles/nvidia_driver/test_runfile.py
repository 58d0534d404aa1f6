# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver by a fake installer on a fake machine, above all refusals and failures. The scenario has checksums and reloads."""

from __future__ import annotations

import base64
import json
import os

import pytest
from fakes.driver_machine import DAEMON, FABRIC_MANAGER

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


def test_missing_headers_stop_the_installer_before_any_change(machine, apply):
    machine.start()
    (machine.folder / "modules" / "6.1.0-56-amd64" / "build").rmdir()
    code, changes, output = apply("runfile_install", **machine.write_installer(f"touch {machine.folder}/ran"))
    assert (code != 0, changes, machine.read_actions(), (machine.folder / "ran").exists()) == (True, 0, [], False), (
        output
    )
    assert "because the headers of the running kernel 6.1.0-56-amd64 are not installed" in output


def test_installer_does_not_run_during_a_job_or_beside_nouveau(machine, apply):
    """The role would stop the daemon of the driver, but not before it finds the job."""
    machine.start()
    machine.node.process(4712, "/dev/nvidia0", "train")
    variables = machine.write_installer(f"touch {machine.folder}/ran")
    code, changes, output = apply("runfile_install", **variables)
    assert (code != 0, changes, machine.read_actions()) == (True, 0, []), output
    assert "the driver cannot be unloaded, because nvidia-persiste (pid 4711) uses the GPUs" in output
    assert "train (pid 4712) uses the GPUs; replace it with the playbook upgrade_nvidia_driver" in output
    machine.load_nouveau()
    code, changes, output = apply("runfile_install", **variables)
    assert (code != 0, changes, machine.read_actions()) == (True, 0, []), output
    assert "node: the installer cannot run, because nouveau is loaded; it is blacklisted from the next" in output
    assert not (machine.folder / "ran").exists()


def test_installer_of_the_libraries_alone_needs_no_headers_and_unloads_nothing(machine, apply):
    (machine.folder / "modules" / "6.1.0-56-amd64" / "build").rmdir()
    loaded = machine.node.loaded()
    variables = machine.write_installer(f'echo "$@" > {machine.folder}/options')
    code, _changes, output = apply("runfile_install", nvidia_driver_kernel_modules="none", **variables)
    assert (code, machine.node.loaded(), machine.read_actions()) == (0, loaded, []), output
    options = (machine.folder / "options").read_text().split()
    assert options == ["--silent", "--no-x-check", "--no-install-compat32-libs", "--no-kernel-modules"]


def test_no_driver_is_loaded_after_an_installer_that_has_removed_the_former_one(machine, apply):
    machine.start()
    code, _changes, output = apply("runfile_install", **machine.write_installer(f"rm {machine.folder}/library; exit 3"))
    assert code != 0
    assert "node: the installer ended with status 3 and wrote last" in output
    assert "No driver is loaded until then." in output
    assert (machine.node.loaded(), machine.has_state("running")) == ([], False)
    assert machine.read_actions()[-1] == f"stop {DAEMON}"


def test_check_mode_accepts_an_unknown_package_manager_and_missing_headers(machine, apply):
    (machine.folder / "modules" / "6.1.0-56-amd64" / "build").rmdir()
    variables = machine.write_installer("exit 0")
    code, _changes, output = apply("present", "--check", family="Gentoo", distribution="Gentoo", **variables)
    assert (code, machine.read_actions()) == (0, []), output
    assert "node: the installer of driver 580.1 would be fetched and run." in output


def test_repeated_first_installation_runs_in_the_state_directory_and_is_recorded(machine, apply):
    """The failed one has recorded its start and the packages. The scratch folder is not /tmp, where others can write, and which may be noexec."""
    started = ["driver-started-runfile", "packages-nvidia-driver-build"]
    machine.write_records(*started)
    text = f'stat --format "%a %n" "$TMPDIR" > {machine.folder}/scratch'
    code, _changes, output = apply("runfile_install", **machine.write_installer(text))
    assert (code, machine.node.loaded()) == (0, []), output
    mode, path = (machine.folder / "scratch").read_text().split()
    assert (mode, path.endswith("/driver-runfile")) == ("700", True)
    assert machine.list_records() == ["driver-runfile", *started]
    assert [path.name for path in (machine.folder / "state").iterdir()] == ["state"], "the installer is deleted"


@pytest.mark.thorough
def test_unmanaged_fabric_manager_starts_again_after_a_failed_replacement(machine, apply):
    """Nothing else would start it, since the role does not manage this service."""
    machine.write_records("driver-runfile")
    machine.start(FABRIC_MANAGER)
    machine.node.set(errors={"rmmod nvidia": BROKEN})
    machine.fail_start(FABRIC_MANAGER)
    code, _changes, output = apply("runfile_install", **machine.write_installer("exit 0"))
    assert (code != 0, machine.has_state("running", FABRIC_MANAGER)) == (True, False), output
    assert machine.list_records() == ["driver-runfile", f"driver-stopped-{FABRIC_MANAGER}"]
    machine.fail_start(FABRIC_MANAGER, fails=False)
    code, _changes, output = apply("services")
    assert (code, machine.has_state("running", FABRIC_MANAGER), machine.has_state("enabled", FABRIC_MANAGER)) == (
        0,
        True,
        False,
    ), output
    assert f"driver-stopped-{FABRIC_MANAGER}" not in machine.list_records()
