# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the machine that had Debian's toolkit is as it was."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://*-worker-2"]


def test_packages_equal_the_former_ones(host: Any) -> None:
    assert host.check_output("dpkg-query --show | diff /root/packages-before - && echo same") == "same"


def test_files_of_apt_and_login_shells_equal_the_former_ones(host: Any) -> None:
    assert (
        host.check_output("find /etc/apt /etc/profile.d -type f | sort | diff /root/files-before - && echo same")
        == "same"
    )
    assert not host.file("/var/lib/gpu-kubernetes").exists
