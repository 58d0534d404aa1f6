# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent a machine is as it was."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

testinfra_hosts = ["ansible://gpu_nodes"]

SHIPPED = Path(__file__).resolve().parents[3] / "tests" / "lab" / "files" / "containerd"


def test_configuration_equals_the_shipped_one(host: Any) -> None:
    now = host.file("/etc/containerd/config.toml").content
    shipped = [
        path.read_bytes().replace(b"@SANDBOX@", b"lab.local/pause:none") for path in sorted(SHIPPED.glob("*.toml"))
    ]
    assert host.check_output("find /etc/containerd -name '*.toml'") == "/etc/containerd/config.toml"
    assert hashlib.sha256(now).hexdigest() in {hashlib.sha256(text).hexdigest() for text in shipped}


def test_containerd_runs_without_the_nvidia_runtime(host: Any) -> None:
    assert host.service("containerd").is_running
    assert "nvidia" not in str(tomllib.loads(host.check_output("containerd config dump 2>/dev/null"))["plugins"])


def test_managed_files_are_removed(host: Any) -> None:
    files = host.check_output(
        "find /etc/modules-load.d /etc/sysctl.d /etc/apt -type f -name '*nvidia*' -o -type f -name '*gpu-kubernetes*'"
    )
    assert files == ""
    assert not host.file("/var/lib/gpu-kubernetes/pending/containerd.restart").exists


def test_toolkit_is_removed(host: Any) -> None:
    assert not host.package("nvidia-container-toolkit").is_installed
    assert "file:/srv/lab/apt" not in host.check_output("apt-cache policy nvidia-container-toolkit")
