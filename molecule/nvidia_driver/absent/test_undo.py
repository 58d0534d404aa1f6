# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the machine is as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
testinfra_hosts = ["ansible://gpu_nodes"]


def test_packages_equal_the_former_ones(host: Any) -> None:
    assert host.check_output("dpkg-query --show | diff /root/packages-before - && echo same") == "same"


def test_files_equal_the_former_ones(host: Any) -> None:
    now = "find /etc/apt /etc/modprobe.d /usr/lib /usr/bin -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum"
    assert host.check_output(f"{now} | diff /root/files-before - && echo same") == "same"


def test_no_record_and_no_hold_are_left(host: Any) -> None:
    assert host.check_output("apt-mark showhold") == ""
    assert not host.file("/var/lib/gpu-kubernetes").exists


def test_no_kernel_module_is_left(host: Any) -> None:
    """Devices and the daemon are gone, too. Only the fake kernel loads modules, and it creates the devices."""
    has_fake_kernel = host.file("/run/fake-kernel/modules").exists
    files = f"find /lib/modules {'/dev' if has_fake_kernel else ''} -name 'nvidia*'"
    assert host.run(f"{files}; cat /run/fake-kernel/modules; pgrep nvidia-persiste").stdout == ""


def test_no_further_service_is_enabled(host: Any) -> None:
    assert host.run("systemctl is-enabled nvidia-persistenced").stdout.strip() != "enabled"
    assert host.check_output("find /etc/systemd/system -type l -name 'nvidia-*'") == ""


def test_absent_undoes_failed_first_installations(
    playbook: Any, inventory: dict[str, Any], get_machine: Callable[[str], Any]
) -> None:
    """On both machines at once: apt has no such version, and there is no such installer."""
    names = list(inventory["all"]["children"]["gpu_nodes"]["hosts"])
    machines = [get_machine(name) for name in names]
    _code, recap, output = playbook(CONVERGE, "-e", json.dumps({"nvidia_driver_version": "535.0.1"}))
    assert [recap[name]["failed"] for name in names] == [1, 1], output
    for machine in machines:
        assert machine.file("/etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf").exists
    code, recap, output = playbook(CONVERGE, "-e", json.dumps({"nvidia_driver_state": "absent"}))
    assert (code, [recap[name]["changed"] > 0 for name in names]) == (0, [True, True]), output
    for machine in machines:
        test_files_equal_the_former_ones(machine)
        test_packages_equal_the_former_ones(machine)
        assert not machine.file("/var/lib/gpu-kubernetes/state").exists
