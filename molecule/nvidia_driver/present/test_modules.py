# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel modules, on a fake for a kernel's side of them: loaded again where that is possible, and taken from nobody who uses them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

testinfra_hosts = ["ansible://*-worker-3"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
FIRST, SECOND = "580.159.03", "595.71.05"
OTHER_PARAMETERS = {"nvidia_driver_module_parameters": {"NVreg_EnablePCIeGen3": 1}}
IN_USE = "train (pid {}) uses the GPUs"
MARK = "/root/fake-installer-ran"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOOK = r"""
cd /usr/lib/x86_64-linux-gnu && ls | sed -n 's/^libnvidia-ml.so.\([0-9]*\.\)/\1/p'
cat /sys/module/nvidia/version
sed -n 's/^NVRM version: NVIDIA UNIX //p' /proc/driver/nvidia/version
echo $(sort /proc/driver/nvidia/params)
echo $(ls /sys/module)
stat --format %i /sys/module/nvidia
systemctl show --property MainPID --value nvidia-persistenced
"""
# As an administrator would who tries other parameters: what the role wrote is as before, and what is loaded is not.
LOAD_OTHERWISE = r"""
systemctl stop nvidia-persistenced
for name in nvidia_drm nvidia_modeset nvidia_uvm nvidia; do rmmod $name || exit; done
sed --in-place s/StreamMemOPs=1/StreamMemOPs=0/ /etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf
for name in nvidia nvidia_uvm nvidia_drm; do modprobe $name || exit; done
sed --in-place s/StreamMemOPs=0/StreamMemOPs=1/ /etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf
systemctl start nvidia-persistenced
"""
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


class Driver(NamedTuple):
    """What there is; ``loading`` is another one after each loading, and ``daemon`` after each start."""

    library: str
    version: str
    kind: str
    parameters: str
    modules: str
    loading: str
    daemon: str

    def without_numbers(self) -> Driver:
        """What is the same after modules and daemon went and came back."""
        return self._replace(loading="", daemon="")


def look(host: Any) -> Driver:
    return Driver(*host.check_output(LOOK).splitlines())


def run(playbook: Playbook, host: Any, *words: str, **variables: object) -> tuple[int, int, str]:
    """Apply the role: exit code, how many tasks changed something, what was said in one line."""
    name = host.backend.get_hostname()
    code, recap, said = playbook(CONVERGE, "--limit", name, "-e", json.dumps(variables), *words)
    return code, recap.get(name, {}).get("changed", 0), " ".join(said.split())


def swapped(host: Any, before: Driver) -> Driver:
    """What there is, after modules and daemon have gone and come back."""
    after = look(host)
    assert after.loading != before.loading
    assert after.daemon not in (before.daemon, "0")
    return after


@pytest.fixture
def somebody(host: Any) -> Iterator[str]:
    """A process that has GPUs open and is no service of the driver's own: its number."""
    host.check_output("cp /usr/bin/nvidia-persistenced /root/train")
    host.check_output("systemd-run --quiet --unit train --service-type forking /root/train")
    yield host.check_output("systemctl show --property MainPID --value train")
    host.check_output("systemctl stop train && rm /root/train")


@pytest.fixture
def secure_boot(host: Any) -> Iterator[Callable[[str], None]]:
    """A firmware that lets only signed modules in, and what a fake for mokutil says of the key."""
    host.check_output(f"mount -t tmpfs fake-firmware /sys/firmware && mkdir -p {Path(SECURE_BOOT).parent}")
    host.check_output(f"printf '\\006\\000\\000\\000\\001' > {SECURE_BOOT}")
    program = "/usr/local/sbin/mokutil"
    host.check_output(f"touch {program} && chmod 755 {program}")
    yield lambda words: host.check_output(f"printf '#!/bin/sh\\necho \"$2 {words}\"\\n' > {program}")
    host.check_output(f"umount /sys/firmware && rm --force {program}")


@pytest.fixture
def nouveau(host: Any) -> Iterator[None]:
    """Loaded in spite of what the role wrote, as by a boot before it did."""
    host.check_output("modprobe --ignore-install nouveau")
    yield
    host.check_output("rmmod nouveau")


def test_what_was_installed_is_loaded_and_stays_so(host: Any) -> None:
    driver = look(host)
    assert (driver.library, driver.version) == (FIRST, FIRST)
    assert driver.kind.startswith("Open Kernel Module")
    assert driver.parameters == "EnablePCIeGen3: 0 EnableStreamMemOPs: 1"
    assert driver.modules == "nvidia nvidia_drm nvidia_modeset nvidia_uvm"
    daemon = host.service("nvidia-persistenced")
    assert daemon.is_running
    assert daemon.is_enabled
    assert host.file("/var/lib/gpu-kubernetes/state/driver-enabled-nvidia-persistenced.json").exists


def test_nouveau_is_kept_out(host: Any) -> None:
    assert host.run("modprobe nouveau").failed
    assert "nouveau" not in look(host).modules


def test_another_version_of_another_flavor_and_back(host: Any, playbook: Playbook) -> None:
    """With the persistence daemon, which has to go meanwhile."""
    before = look(host)
    wanted = {"runfile_version": SECOND, "nvidia_driver_kernel_modules": "proprietary"}
    code, told, said = run(playbook, host, "--check", **wanted)
    assert (code, told > 0, look(host)) == (0, True, before), said
    code, done, said = run(playbook, host, **wanted)
    assert (code, done > 0) == (0, True), said
    after = swapped(host, before)
    assert (after.library, after.version) == (SECOND, SECOND)
    assert after.kind.startswith("x86_64 Kernel Module")
    assert (after.parameters, after.modules) == (before.parameters, before.modules)
    for words in (["--check"], []):
        code, again, said = run(playbook, host, *words, **wanted)
        assert (code, again, look(host)) == (0, 0, after), said
    code, _done, said = run(playbook, host)
    assert code == 0, said
    assert swapped(host, after).without_numbers() == before.without_numbers()


def test_other_parameters_and_back(host: Any, playbook: Playbook) -> None:
    before = look(host)
    code, told, said = run(playbook, host, "--check", **OTHER_PARAMETERS)
    assert (code, told > 0, look(host)) == (0, True, before), said
    code, _done, said = run(playbook, host, **OTHER_PARAMETERS)
    assert code == 0, said
    after = swapped(host, before)
    changed = before._replace(parameters="EnablePCIeGen3: 1 EnableStreamMemOPs: 0")
    assert after.without_numbers() == changed.without_numbers()
    code, _done, said = run(playbook, host)
    assert code == 0, said
    assert swapped(host, after).without_numbers() == before.without_numbers()


def test_a_parameter_that_is_asked_for_no_more_and_back(host: Any, playbook: Playbook) -> None:
    """By that alone: another parameter would have the modules loaded again anyway."""
    before = look(host)
    code, _done, said = run(playbook, host, nvidia_driver_module_parameters={})
    assert code == 0, said
    after = swapped(host, before)
    assert (
        after.without_numbers()
        == before._replace(parameters="EnablePCIeGen3: 0 EnableStreamMemOPs: 0").without_numbers()
    )
    code, again, said = run(playbook, host, nvidia_driver_module_parameters={})
    assert (code, again, look(host)) == (0, 0, after), said
    code, _done, said = run(playbook, host)
    assert code == 0, said
    assert swapped(host, after).without_numbers() == before.without_numbers()


def test_a_reload_alone_is_foreseen(host: Any, playbook: Playbook) -> None:
    wanted = look(host)
    host.check_output(LOAD_OTHERWISE)
    before = look(host)
    assert before.parameters == "EnablePCIeGen3: 0 EnableStreamMemOPs: 0"
    code, told, said = run(playbook, host, "--check")
    assert (code, told > 0, look(host)) == (0, True, before), said
    code, done, said = run(playbook, host)
    assert (code, done > 0) == (0, True), said
    assert swapped(host, before).without_numbers() == wanted.without_numbers()


def test_without_an_installer_the_former_driver_works_on(host: Any, playbook: Playbook) -> None:
    host.check_output(f"rm -f {MARK}")
    before = look(host)
    code, _done, said = run(playbook, host, runfile_version=SECOND, runfile_checksum="0" * 64)
    assert code != 0
    assert "did not match" in said
    assert look(host) == before
    assert not host.file(MARK).exists


def test_an_installer_that_gives_up_leaves_the_former_driver_at_work(host: Any, playbook: Playbook) -> None:
    before = look(host)
    code, _done, said = run(playbook, host, runfile_options=["--no-such-option"])
    assert code != 0
    assert "unrecognized option: --no-such-option Fix that and run again." in said
    after = swapped(host, before)
    assert after.without_numbers() == before.without_numbers()
    code, _done, said = run(playbook, host)
    assert code == 0, said
    assert swapped(host, after).without_numbers() == before.without_numbers()


def test_somebody_who_uses_the_gpus_keeps_them(host: Any, playbook: Playbook, somebody: str) -> None:
    before = look(host)
    code, done, said = run(playbook, host, runfile_version=SECOND)
    assert code != 0
    assert f"the driver cannot be unloaded, because nvidia-persiste (pid {before.daemon}) uses the GPUs" in said
    assert IN_USE.format(somebody) in said
    assert "replace it with the playbook upgrade_nvidia_driver" in said
    assert (done, look(host)) == (0, before)


def test_what_somebody_keeps_from_being_loaded_again_is_there_after_a_reboot(
    host: Any, playbook: Playbook, somebody: str
) -> None:
    before = look(host)
    code, _done, said = run(playbook, host, nvidia_driver_reboot="report", **OTHER_PARAMETERS)
    assert code == 0, said
    assert "REBOOT REQUIRED" in said
    assert "the loaded kernel module has NVreg_EnablePCIeGen3 = 0, and 1 is requested" in said
    assert IN_USE.format(somebody) in said
    assert look(host) == before
    assert "NVreg_EnablePCIeGen3=1" in host.file("/etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf").content_string
    code, _done, said = run(playbook, host)
    assert (code, look(host)) == (0, before), said


def test_modules_that_the_firmware_would_refuse_are_not_begun_with(
    host: Any, playbook: Playbook, secure_boot: Callable[[str], None]
) -> None:
    before = look(host)
    secure_boot("is not enrolled")
    code, done, said = run(playbook, host, runfile_version=SECOND)
    assert code != 0
    key = "/var/lib/dkms/mok.pub"
    assert f"Secure Boot is on, and the kernel would reject a driver that DKMS signs with {key}" in said
    assert f"({key} is not enrolled); enrol it (mokutil --import {key}, then confirm it at the console" in said
    assert (done, look(host)) == (0, before)


@pytest.mark.usefixtures("secure_boot")
def test_a_mokutil_that_is_missing_is_named(host: Any, playbook: Playbook) -> None:
    host.check_output("rm /usr/local/sbin/mokutil")
    assert not host.exists("mokutil")
    before = look(host)
    code, done, said = run(playbook, host, runfile_version=SECOND)
    assert code != 0
    assert "mokutil is not installed, so that it is unknown whether the firmware trusts /var/lib/dkms/mok.pub" in said
    assert (done, look(host)) == (0, before)


@pytest.mark.usefixtures("nouveau")
def test_the_installer_does_not_run_beside_nouveau(
    host: Any, playbook: Playbook, secure_boot: Callable[[str], None]
) -> None:
    """With a key that the firmware knows, so that it is not Secure Boot that is in the way."""
    host.check_output(f"rm -f {MARK}")
    before = look(host)
    secure_boot("is already enrolled")
    code, done, said = run(playbook, host, runfile_version=SECOND)
    assert code != 0
    assert "the installer cannot run, because nouveau is loaded" in said
    assert (done, look(host)) == (0, before)
    assert not host.file(MARK).exists
