# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the machine is as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

testinfra_hosts = ["ansible://gpu_nodes"]


def test_configuration_equals_the_shipped_one(host: Any) -> None:
    shipped = (Path(__file__).parents[1] / "files" / "daemon.json").read_bytes()
    assert host.file("/etc/docker/daemon.json").content == shipped


def test_docker_runs_without_the_nvidia_runtime(host: Any) -> None:
    info = json.loads(host.check_output("docker info --format '{{json .}}'"))
    assert "nvidia" not in info["Runtimes"]
    assert info["DefaultRuntime"] == "runc"


def test_toolkit_and_its_repository_are_gone(host: Any) -> None:
    assert not host.package("nvidia-container-toolkit").is_installed
    assert host.check_output("find /etc/apt -type f -name '*nvidia*'") == ""
