# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The vGPU licence of a fake machine with the daemon of NVIDIA's guest driver."""

from __future__ import annotations

import os

import pytest
from fakes.driver_machine import LICENSE_DAEMON

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

SECRET = "eyJhbGciOiJSUzI1NiJ9.c2VjcmV0"
LICENSE = {"nvidia_driver_vgpu_license_token": SECRET}
VERBOSE = ("-vvv", "--diff")
STOP, START = f"stop {LICENSE_DAEMON}", f"start {LICENSE_DAEMON}"
RESTART = [STOP, START]
NAME = "client_configuration_token_gpu-kubernetes.tok"
OWN = "# ours\nServerAddress=dls.example.com\n  FeatureType = 0  # unlicensed\nEnableUI=FALSE\n"
OTHER = "client_configuration_token_01.tok"


def read_files(folder):
    """The content of each file below the folder, and the names of its folders."""
    return {str(path.relative_to(folder)): path.read_text() if path.is_file() else None for path in folder.rglob("*")}


def test_license_of_unmanaged_driver_is_written_once_and_removed(machine, apply):
    folder = machine.install_license_daemon()
    conf, token = folder / "gridd.conf", folder / "ClientConfigToken" / NAME
    conf.write_text(OWN)
    conf.chmod(0o640)
    token.parent.mkdir(mode=0o700)
    (token.parent / OTHER).write_text("other")
    before = read_files(folder)

    code, changes, output = apply("main", "--check", *VERBOSE, **LICENSE)
    assert (code, changes > 0, SECRET in output) == (0, True, False), output
    assert (read_files(folder), machine.read_actions(), machine.list_records()) == (before, [], [])

    # The run ends before the daemon has started; the next one resumes.
    machine.fail_start(LICENSE_DAEMON)
    code, _changes, output = apply("main", *VERBOSE, **LICENSE)
    assert (code != 0, SECRET in output, machine.read_actions()) == (True, False, RESTART), output
    expected = OWN.replace("  FeatureType = 0  # unlicensed", "FeatureType=1")
    assert read_files(folder) == {**before, f"ClientConfigToken/{NAME}": SECRET, "gridd.conf": expected}
    modes = [path.stat().st_mode & 0o777 for path in (token, token.parent, conf)]
    assert modes == [0o600, 0o700, 0o640], "existing modes stay"
    assert not [path for path in machine.folder.glob("state/**/*") if path.is_file() and SECRET in path.read_text()]

    machine.fail_start(LICENSE_DAEMON, fails=False)
    code, changes, output = apply("main", **LICENSE)
    assert (code, changes, machine.read_actions()) == (0, 1, [START]), output

    code, changes, output = apply("main", *VERBOSE, nvidia_driver_state="absent")
    assert (code, changes > 0, SECRET in output) == (0, True, False), output
    assert machine.read_actions() == [f"restart {LICENSE_DAEMON}"]
    assert (read_files(folder), (machine.folder / "state").exists()) == (before, False)


def test_license_is_removed_with_the_driver(machine, apply):
    folder = machine.install_license_daemon()
    conf, token = folder / "gridd.conf", folder / "ClientConfigToken" / NAME
    machine.write_records("packages-nvidia-driver")
    code, _changes, output = apply("license", nvidia_driver_vgpu_feature_type=4, **LICENSE)
    assert (code, conf.read_text(), machine.read_actions()) == (0, "FeatureType=4\n", RESTART), output
    modes = [path.stat().st_mode & 0o777 for path in (token, token.parent, conf)]
    assert modes == [0o600, 0o755, 0o644]
    code, _changes, output = apply("main", nvidia_driver_state="absent")
    assert (code, read_files(folder), (machine.folder / "state").exists()) == (0, {}, False), output
    assert START not in machine.read_actions(), "the daemon of a removed driver is not started"


def test_daemon_starts_again_if_its_files_cannot_be_written(machine, apply):
    folder = machine.install_license_daemon()
    (folder / "ClientConfigToken").symlink_to("nowhere")
    code, _changes, output = apply("main", **LICENSE)
    assert (code != 0, machine.read_actions()) == (True, RESTART), output


def test_license_without_the_daemon_is_refused(machine, apply):
    code, changes, output = apply("main", **LICENSE)
    assert (code != 0, changes, machine.read_actions()) == (True, 0, []), output
    assert "node: nvidia_driver_vgpu_license_token is set, and the driver has no nvidia-gridd" in output


def test_vgpu_unlock_and_license_for_another_driver_are_refused(machine, apply):
    machine.write_records("packages-nvidia-driver")
    machine.set_driver_facts(vgpu_unlock="/etc/systemd/system/nvidia-vgpud.service")
    code, changes, output = apply("check", **LICENSE)
    assert (code != 0, changes) == (True, 0), output
    assert "node: /etc/systemd/system/nvidia-vgpud.service uses vgpu_unlock, which circumvents" in output
    assert "nvidia_driver_vgpu_license_token is set, and the driver has no nvidia-gridd" in output
