# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the machine is as it was."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://gpu_nodes"]


def test_the_packages_are_those_from_before(host: Any) -> None:
    assert host.check_output("dpkg-query --show | diff /root/packages-before - && echo same") == "same"


def test_the_files_are_those_from_before(host: Any) -> None:
    now = "find /etc/apt /etc/modprobe.d /usr/lib /usr/bin -type f -not -name '*.pyc' -print0 | sort -z | xargs -0 sha256sum"
    assert host.check_output(f"{now} | diff /root/files-before - && echo same") == "same"


def test_nothing_is_remembered_or_held(host: Any) -> None:
    assert host.check_output("apt-mark showhold") == ""
    assert not host.file("/var/lib/gpu-kubernetes").exists
