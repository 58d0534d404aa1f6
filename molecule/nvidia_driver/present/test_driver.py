# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's own packages, in the version that was asked for, and none that an upgrade could split."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

testinfra_hosts = ["ansible://*-worker-1"]

FILES = "find /etc/apt /etc/modprobe.d /etc/modules-load.d /etc/systemd/system -type f | sort | xargs sha256sum"
CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
OLDER = "535.261.03"
Playbook = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


@pytest.fixture
def here(playbook: Playbook, host: Any) -> Playbook:
    """The same for this machine alone."""
    return lambda *words: playbook(*words, "--limit", host.backend.get_hostname())


def parts(host: Any) -> dict[str, str]:
    """The packages that have the driver's version, which is told by the library's file, with their upstream version."""
    version = driver(host)
    listed = host.check_output("dpkg-query --show --showformat '${Package} ${Version}\\n'").splitlines()
    found = dict(line.split() for line in listed)
    return {name: whole.partition("-")[0] for name, whole in found.items() if whole.startswith(f"{version}-")}


def driver(host: Any) -> str:
    [library] = host.check_output("ls /usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.*.*").splitlines()
    return library.partition(".so.")[2]


def held(host: Any) -> set[str]:
    return set(host.check_output("apt-mark showhold").split())


def test_the_newest_driver_of_the_release_is_there_and_on_hold(host: Any) -> None:
    assert driver(host).startswith("535.")
    assert {"nvidia-smi", "libnvidia-ml1", "libcuda1"} < set(parts(host))
    assert held(host) == set(parts(host))


def test_upgrades_leave_it_alone(host: Any) -> None:
    """Even where all repositories want another version, as a pin to an older one makes them do here."""
    host.check_output(
        f"printf 'Package: src:nvidia-graphics-drivers\\nPin: version {OLDER}*\\nPin-Priority: 1001\\n' > /root/older"
    )
    upgrade = "apt-get -o Dir::Etc::Preferences=/root/older --simulate --allow-downgrades dist-upgrade"
    assert "Inst nvidia-smi" in host.check_output(f"{upgrade} --ignore-hold"), "the upgrade would do nothing anyway"
    assert not re.search(r"^(Inst|Remv) \S*(nvidia|cuda)", host.check_output(upgrade), re.MULTILINE)


def test_parameters_are_there_for_the_next_boot_and_nouveau_is_the_hosts_affair(host: Any) -> None:
    lines = host.file("/etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf").content_string.splitlines()
    assert lines[1:] == ["options nvidia NVreg_EnableStreamMemOPs=1"]


def test_an_older_version_and_back(host: Any, here: Playbook) -> None:
    newest, names = driver(host), set(parts(host))
    assert newest != OLDER, "the release has only one version, so that this shows nothing"
    wanted = json.dumps({"nvidia_driver_version": OLDER})
    code, checked, said = here(CONVERGE, "--check", "-e", wanted)
    assert code == 0, said
    assert driver(host) == newest
    code, done, said = here(CONVERGE, "-e", wanted)
    assert code == 0, said
    [before], [after] = checked.values(), done.values()
    assert before["changed"] == after["changed"] == 2, "the pin and the packages"
    assert (driver(host), set(parts(host)), held(host)) == (OLDER, names, names)
    for words in (["--check"], []):
        code, again, said = here(CONVERGE, "-e", wanted, *words)
        assert (code, [host["changed"] for host in again.values()]) == (0, [0]), said
    code, _recap, said = here(CONVERGE, "-e", json.dumps({"nvidia_driver_version": newest}))
    assert code == 0, said
    assert (driver(host), held(host)) == (newest, names)


def test_a_plan_asks_for_the_packages_and_changes_nothing(host: Any, here: Playbook) -> None:
    newest, names = driver(host), held(host)
    pin = host.file("/etc/apt/preferences.d/gpu-kubernetes-nvidia-driver")
    before = pin.content_string if pin.exists else ""
    for version, found in ((OLDER, True), ("535.0.1", False)):
        code, _recap, said = here(CONVERGE, "-e", json.dumps({"entry_point": "plan", "nvidia_driver_version": version}))
        assert (code == 0) is found, said
        assert found or f"apt has no version {version} of" in " ".join(said.split())
        assert (driver(host), held(host), pin.content_string if pin.exists else "") == (newest, names, before)


def test_a_branch_that_is_there_already_changes_no_package(host: Any, here: Playbook) -> None:
    newest = driver(host)
    code, _recap, said = here(CONVERGE, "-e", '{"nvidia_driver_branch": "535"}')
    assert code == 0, said
    assert driver(host) == newest
    assert "Pin: version 535.*\n" in host.file("/etc/apt/preferences.d/gpu-kubernetes-nvidia-driver").content_string


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"nvidia_driver_version": "535.0.1"}, "apt has no version 535.0.1 of"),
        ({"nvidia_driver_branch": "390"}, "Driver 390 does not know NVIDIA A100-SXM4-40GB yet; use 450 or newer."),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    host: Any, here: Playbook, wrong: dict[str, object], sentence: str
) -> None:
    """The pin neither. Only the run itself is told by apt-get what the check has from its lists."""
    newest, names, files = driver(host), held(host), host.check_output(FILES)
    for words in (["--check"], []):
        code, _recap, said = here(CONVERGE, "-e", json.dumps(wrong), *words)
        assert code != 0, words
        assert sentence in " ".join(said.split()) or (words == [] and "was not found" in said), said
        assert (driver(host), held(host), host.check_output(FILES)) == (newest, names, files)


def test_without_headers_of_the_running_kernel_there_is_no_driver(host: Any, here: Playbook) -> None:
    """The kernel of this machine is none of Debian's, and its headers are nowhere to be had."""
    newest = driver(host)
    code, _recap, said = here(CONVERGE, "-e", '{"nvidia_driver_kernel_modules": "proprietary"}')
    assert code != 0
    kernel = host.check_output("uname -r")
    assert f"linux-headers-{kernel}" in " ".join(said.split())
    assert driver(host) == newest
    assert not host.package("nvidia-kernel-dkms").is_installed
