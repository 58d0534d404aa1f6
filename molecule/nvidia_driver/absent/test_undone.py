# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the machine is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
testinfra_hosts = ["ansible://gpu_nodes"]


def test_the_packages_are_those_from_before(host: Any) -> None:
    assert host.check_output("dpkg-query --show | diff /root/packages-before - && echo same") == "same"


def test_the_files_are_those_from_before(host: Any) -> None:
    now = "find /etc/apt /etc/modprobe.d /usr/lib /usr/bin -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum"
    assert host.check_output(f"{now} | diff /root/files-before - && echo same") == "same"


def test_nothing_is_remembered_or_held(host: Any) -> None:
    assert host.check_output("apt-mark showhold") == ""
    assert not host.file("/var/lib/gpu-kubernetes").exists


def test_no_kernel_module_is_left(host: Any) -> None:
    """Nor what works with one; where modules are loaded, they are those of the fake, which makes the devices too."""
    has_fake_kernel = host.file("/run/fake-kernel/modules").exists
    files = f"find /lib/modules {'/dev' if has_fake_kernel else ''} -name 'nvidia*'"
    assert host.run(f"{files}; cat /run/fake-kernel/modules; pgrep nvidia-persiste").stdout == ""


def test_no_service_is_enabled_that_was_not(host: Any) -> None:
    assert host.run("systemctl is-enabled nvidia-persistenced").stdout.strip() != "enabled"
    assert host.check_output("find /etc/systemd/system -type l -name 'nvidia-*'") == ""


def test_what_a_failed_first_installation_did_is_taken_back(host: Any, playbook: Any) -> None:
    name = host.backend.get_hostname()
    asked = {"nvidia_driver_version": "535.0.1", "runfile_version": "570.195.03", "runfile_checksum": "0" * 64}
    code, _recap, said = playbook(CONVERGE, "--limit", name, "-e", json.dumps(asked))
    assert code != 0, said
    assert host.file("/etc/modprobe.d/gpu-kubernetes-nvidia-driver.conf").exists
    code, recap, said = playbook(CONVERGE, "--limit", name, "-e", json.dumps({"nvidia_driver_state": "absent"}))
    assert (code, recap[name]["changed"] > 0) == (0, True), said
    test_the_files_are_those_from_before(host)
    test_the_packages_are_those_from_before(host)
    assert not host.file("/var/lib/gpu-kubernetes/state").exists
