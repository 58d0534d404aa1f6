# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the machine is as it was."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://*-worker-1"]


def test_nothing_is_left(host: Any) -> None:
    left = host.check_output("find /usr/local /etc /var/lib/gpu-kubernetes -name '*cuda*' 2>/dev/null; true")
    assert left == ""
    assert not host.file("/var/lib/gpu-kubernetes").exists
    assert host.check_output("dpkg-query --list 'cuda-*' 2>/dev/null; true") == ""
    assert host.run("update-alternatives --query cuda").rc != 0
    assert host.check_output("ls /var/log/nvidia/.uninstallManifests") == ""


def test_login_shells_have_their_former_paths(host: Any) -> None:
    assert host.check_output("bash --login -c 'echo $PATH:${LD_LIBRARY_PATH-}'").count("cuda") == 0
