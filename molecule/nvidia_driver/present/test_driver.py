# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian's own packages, in the requested version and held against upgrades."""

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
def run_here(playbook: Playbook, host: Any) -> Playbook:
    """Run a playbook on this machine only."""
    return lambda *words: playbook(*words, "--limit", host.backend.get_hostname())


def list_driver_packages(host: Any) -> dict[str, str]:
    """The packages with the driver's version, which is in the name of the library, and their upstream version."""
    version = read_driver_version(host)
    listed = host.check_output("dpkg-query --show --showformat '${Package} ${Version}\\n'").splitlines()
    found = dict(line.split() for line in listed)
    return {name: whole.partition("-")[0] for name, whole in found.items() if whole.startswith(f"{version}-")}


def read_driver_version(host: Any) -> str:
    [library] = host.check_output("ls /usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.*.*").splitlines()
    return library.partition(".so.")[2]


def read_holds(host: Any) -> set[str]:
    return set(host.check_output("apt-mark showhold").split())


def test_newest_driver_of_the_release_is_installed_and_held(host: Any) -> None:
    assert read_driver_version(host).startswith("535.")
    assert {"nvidia-smi", "libnvidia-ml1", "libcuda1"} < set(list_driver_packages(host))
    assert read_holds(host) == set(list_driver_packages(host))


def test_upgrade_keeps_a_held_driver(host: Any) -> None:
    """Even if another version has priority, as with this pin to an older one."""
    host.check_output(
        f"printf 'Package: src:nvidia-graphics-drivers\\nPin: version {OLDER}*\\nPin-Priority: 1001\\n' > /root/older"
    )
    upgrade = "apt-get -o Dir::Etc::Preferences=/root/older --simulate --allow-downgrades dist-upgrade"
    assert "Inst nvidia-smi" in host.check_output(f"{upgrade} --ignore-hold"), "the upgrade would do nothing anyway"
    assert not re.search(r"^(Inst|Remv) \S*(nvidia|cuda)", host.check_output(upgrade), re.MULTILINE)


def test_module_parameters_are_written_and_nouveau_is_not_blocked(host: Any) -> None:
    lines = host.file("/etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf").content_string.splitlines()
    assert lines[1:] == ["options nvidia NVreg_EnableStreamMemOPs=1"]


def test_older_version_and_back(host: Any, run_here: Playbook) -> None:
    """In between, the branch of the older version is requested: the pin changes, and no package."""
    newest, names = read_driver_version(host), set(list_driver_packages(host))
    assert newest != OLDER, "the release has only one version, so this tests nothing"
    variables = json.dumps({"nvidia_driver_version": OLDER})
    code, checked, output = run_here(CONVERGE, "--check", "-e", variables)
    assert code == 0, output
    assert read_driver_version(host) == newest
    code, applied, output = run_here(CONVERGE, "-e", variables)
    assert code == 0, output
    [before], [after] = checked.values(), applied.values()
    assert before["changed"] == after["changed"] == 2, "the pin and the packages"
    assert (read_driver_version(host), set(list_driver_packages(host)), read_holds(host)) == (OLDER, names, names)
    code, again, output = run_here(CONVERGE, "-e", variables, "--check")
    assert (code, [host["changed"] for host in again.values()]) == (0, [0]), output
    code, _recap, output = run_here(CONVERGE, "-e", '{"nvidia_driver_branch": "535"}')
    assert code == 0, output
    assert (read_driver_version(host), read_holds(host)) == (OLDER, names)
    assert "Pin: version 535.*\n" in host.file("/etc/apt/preferences.d/gpu-kubernetes-nvidia-driver").content_string
    code, _recap, output = run_here(CONVERGE, "-e", json.dumps({"nvidia_driver_version": newest}))
    assert code == 0, output
    assert (read_driver_version(host), read_holds(host)) == (newest, names)


@pytest.mark.parametrize(
    ("entry_point", "version", "sentence"),
    [
        ("plan", OLDER, ""),
        ("plan", "535.0.1", "apt has no version 535.0.1 of"),
        ("main", "535.0.1", "apt has no version 535.0.1 of"),
    ],
)
def test_plan_and_unknown_version_change_nothing(
    host: Any, run_here: Playbook, entry_point: str, version: str, sentence: str
) -> None:
    """The pin does not change either. In a run apt-get reports what a plan reads from its lists."""
    before = (read_driver_version(host), read_holds(host), host.check_output(FILES))
    variables = {"entry_point": entry_point, "nvidia_driver_version": version}
    code, _recap, output = run_here(CONVERGE, "-e", json.dumps(variables))
    assert (code != 0) is bool(sentence), output
    assert sentence in " ".join(output.split()) or (entry_point == "main" and "was not found" in output), output
    assert (read_driver_version(host), read_holds(host), host.check_output(FILES)) == before


def test_missing_kernel_headers_stop_the_installation(host: Any, run_here: Playbook) -> None:
    """The kernel of this machine is not Debian's, and no repository has its headers."""
    newest = read_driver_version(host)
    code, _recap, output = run_here(CONVERGE, "-e", '{"nvidia_driver_kernel_modules": "proprietary"}')
    assert code != 0
    kernel = host.check_output("uname -r")
    assert f"linux-headers-{kernel}" in " ".join(output.split())
    assert read_driver_version(host) == newest
    assert not host.package("nvidia-kernel-dkms").is_installed
