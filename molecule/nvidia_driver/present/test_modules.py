# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's installer, a fake, and kernel modules on a fake kernel: loaded again where possible, and never unloaded while a process uses them.

The role tests have the refusals before an installer runs: a process that uses the GPUs, nouveau, Secure Boot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

testinfra_hosts = ["ansible://*-worker-2"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
FIRST, SECOND = "580.159.03", "595.71.05"
OTHER_PARAMETERS = {"nvidia_driver_module_parameters": {"NVreg_EnablePCIeGen3": 1}}
IN_USE = "train (pid {}) uses the GPUs"
MARK = "/root/fake-installer-ran"
READ_STATE = r"""
cd /usr/lib/x86_64-linux-gnu && ls | sed -n 's/^libnvidia-ml.so.\([0-9]*\.\)/\1/p'
cat /sys/module/nvidia/version
sed -n 's/^NVRM version: NVIDIA UNIX //p' /proc/driver/nvidia/version
echo $(sort /proc/driver/nvidia/params)
echo $(ls /sys/module)
stat --format %i /sys/module/nvidia
systemctl show --property MainPID --value nvidia-persistenced
"""
# As an administrator who tries other parameters: the role's file is as before, the loaded module is not.
LOAD_OTHER_PARAMETERS = r"""
systemctl stop nvidia-persistenced
for name in nvidia_drm nvidia_modeset nvidia_uvm nvidia; do rmmod $name || exit; done
sed --in-place s/StreamMemOPs=1/StreamMemOPs=0/ /etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf
for name in nvidia nvidia_uvm nvidia_drm; do modprobe $name || exit; done
sed --in-place s/StreamMemOPs=0/StreamMemOPs=1/ /etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf
systemctl start nvidia-persistenced
"""
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


class Driver(NamedTuple):
    """The state of the driver; ``loading`` changes with each loading, ``daemon`` with each start."""

    library: str
    version: str
    kind: str
    parameters: str
    modules: str
    loading: str
    daemon: str

    def without_numbers(self) -> Driver:
        """What does not change by a reload of modules and daemon."""
        return self._replace(loading="", daemon="")


def read_driver(host: Any) -> Driver:
    return Driver(*host.check_output(READ_STATE).splitlines())


def run(playbook: Playbook, host: Any, *words: str, **variables: object) -> tuple[int, int, str]:
    """Apply the role: exit code, count of changes, output in one line."""
    name = host.backend.get_hostname()
    code, recap, output = playbook(CONVERGE, "--limit", name, "-e", json.dumps(variables), *words)
    return code, recap.get(name, {}).get("changed", 0), " ".join(output.split())


def read_reloaded_driver(host: Any, before: Driver) -> Driver:
    """The state of the driver after modules and daemon were loaded again."""
    after = read_driver(host)
    assert after.loading != before.loading
    assert after.daemon not in (before.daemon, "0")
    return after


def find_leftovers(host: Any) -> str:
    """Files of an installer, which are deleted after each run."""
    return host.check_output(
        "find /tmp /root/.ansible /var/lib/gpu-kubernetes -name driver-runfile -o -name installer.run"
    )


@pytest.fixture
def gpu_process(host: Any) -> Iterator[str]:
    """A process that has GPUs open and is not a service of the driver: its number."""
    host.check_output("cp /usr/bin/nvidia-persistenced /root/train")
    host.check_output("systemd-run --quiet --unit train --service-type forking /root/train")
    yield host.check_output("systemctl show --property MainPID --value train")
    host.check_output("systemctl stop train && rm /root/train")


def test_installed_driver_is_loaded_and_its_daemon_enabled(host: Any) -> None:
    driver = read_driver(host)
    assert (driver.library, driver.version) == (FIRST, FIRST)
    assert driver.kind.startswith("Open Kernel Module")
    assert driver.parameters == "EnablePCIeGen3: 0 EnableStreamMemOPs: 1"
    assert driver.modules == "nvidia nvidia_drm nvidia_modeset nvidia_uvm"
    daemon = host.service("nvidia-persistenced")
    assert daemon.is_running
    assert daemon.is_enabled
    assert host.file("/var/lib/gpu-kubernetes/state/driver-enabled-nvidia-persistenced.json").exists


def test_installer_ran_with_the_requested_options(host: Any) -> None:
    kernel = host.check_output("uname -r")
    options = "--silent --no-x-check --no-install-compat32-libs --dkms --kernel-module-type=open"
    log = host.file("/var/log/nvidia-installer.log").content_string
    assert log == f"fake for nvidia-installer {FIRST}: --kernel-name={kernel} {options}\n"
    assert find_leftovers(host) == ""


def test_nouveau_cannot_be_loaded(host: Any) -> None:
    assert host.run("modprobe nouveau").failed
    assert "nouveau" not in read_driver(host).modules


def test_other_version_and_flavor_after_two_failures_and_back(host: Any, playbook: Playbook) -> None:
    """The first installer fails before it changes anything, the second one is killed halfway. The persistence daemon stops meanwhile."""
    before = read_driver(host)
    variables = {"runfile_version": SECOND, "nvidia_driver_kernel_modules": "proprietary"}
    code, predicted, output = run(playbook, host, "--check", **variables)
    assert (code, predicted > 0, read_driver(host)) == (0, True, before), output

    code, _changes, output = run(playbook, host, **variables, runfile_options=["--no-such-option"])
    assert code != 0
    assert "the installer ended with status 1 and wrote last: fake for nvidia-installer" in output
    assert "unrecognized option: --no-such-option Fix that and run again." in output
    restored = read_reloaded_driver(host, before)
    assert restored.without_numbers() == before.without_numbers()
    assert find_leftovers(host) == ""

    host.check_output("touch /root/fake-installer-is-killed")
    code, _changes, output = run(playbook, host, **variables)
    assert code != 0
    assert "No driver is loaded until then." in output
    assert not host.file("/usr/bin/nvidia-uninstall").exists
    code, changes, output = run(playbook, host, **variables)
    assert (code, changes > 0) == (0, True), output
    after = read_reloaded_driver(host, restored)
    assert (after.library, after.version) == (SECOND, SECOND)
    assert after.kind.startswith("x86_64 Kernel Module")
    assert (after.parameters, after.modules) == (before.parameters, before.modules)
    assert host.file("/usr/bin/nvidia-uninstall").exists
    for words in (["--check"], []):
        code, again, output = run(playbook, host, *words, **variables)
        assert (code, again, read_driver(host)) == (0, 0, after), output

    code, _changes, output = run(playbook, host)
    assert code == 0, output
    assert read_reloaded_driver(host, after).without_numbers() == before.without_numbers()
    assert find_leftovers(host) == ""


def test_removed_parameter_and_back(host: Any, playbook: Playbook) -> None:
    """Nothing else changes: another parameter would require a reload anyway."""
    before = read_driver(host)
    code, predicted, output = run(playbook, host, "--check", nvidia_driver_module_parameters={})
    assert (code, predicted > 0, read_driver(host)) == (0, True, before), output
    code, _changes, output = run(playbook, host, nvidia_driver_module_parameters={})
    assert code == 0, output
    after = read_reloaded_driver(host, before)
    assert (
        after.without_numbers()
        == before._replace(parameters="EnablePCIeGen3: 0 EnableStreamMemOPs: 0").without_numbers()
    )
    code, again, output = run(playbook, host, nvidia_driver_module_parameters={})
    assert (code, again, read_driver(host)) == (0, 0, after), output
    code, _changes, output = run(playbook, host)
    assert code == 0, output
    assert read_reloaded_driver(host, after).without_numbers() == before.without_numbers()


def test_check_mode_predicts_a_reload(host: Any, playbook: Playbook) -> None:
    expected = read_driver(host)
    host.check_output(LOAD_OTHER_PARAMETERS)
    before = read_driver(host)
    assert before.parameters == "EnablePCIeGen3: 0 EnableStreamMemOPs: 0"
    code, predicted, output = run(playbook, host, "--check")
    assert (code, predicted > 0, read_driver(host)) == (0, True, before), output
    code, changes, output = run(playbook, host)
    assert (code, changes > 0) == (0, True), output
    assert read_reloaded_driver(host, before).without_numbers() == expected.without_numbers()


def test_wrong_checksum_keeps_the_former_driver(host: Any, playbook: Playbook) -> None:
    host.check_output(f"rm -f {MARK}")
    before = read_driver(host)
    code, _changes, output = run(playbook, host, runfile_version=SECOND, runfile_checksum="0" * 64)
    assert code != 0
    assert "did not match" in output
    assert read_driver(host) == before
    assert not host.file(MARK).exists
    assert find_leftovers(host) == ""


def test_driver_in_use_gets_new_parameters_at_the_next_boot(host: Any, playbook: Playbook, gpu_process: str) -> None:
    before = read_driver(host)
    code, _changes, output = run(playbook, host, nvidia_driver_reboot="report", **OTHER_PARAMETERS)
    assert code == 0, output
    assert "REBOOT REQUIRED" in output
    assert "the loaded kernel module has NVreg_EnablePCIeGen3 = 0, and 1 is requested" in output
    assert IN_USE.format(gpu_process) in output
    assert read_driver(host) == before
    assert "NVreg_EnablePCIeGen3=1" in host.file("/etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf").content_string
    code, _changes, output = run(playbook, host)
    assert (code, read_driver(host)) == (0, before), output
