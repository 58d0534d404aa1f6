# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nvidia runtime works and nothing else changed, as containerd, the package manager and the files show."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any

import pytest

testinfra_hosts = ["ansible://gpu_nodes"]

CRI = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime", 4: "io.containerd.cri.v1.runtime"}
SAMPLE = "lab.local/fake/cuda-sample:vectoradd"


@pytest.fixture
def effective_config(host: Any) -> dict[str, Any]:
    """containerd's effective configuration: its CRI runtime section."""
    tree = tomllib.loads(host.check_output("containerd config dump 2>/dev/null"))
    return tree["plugins"][CRI[tree["version"]]]["containerd"]


def test_toolkit_is_installed_from_the_signed_repository(host: Any) -> None:
    assert host.package("nvidia-container-toolkit").is_installed
    assert "file:/srv/lab/apt" in host.check_output("apt-cache policy nvidia-container-toolkit")


def test_nvidia_runtime_is_effective_and_runc_stays_default(effective_config: dict[str, Any]) -> None:
    runtimes = effective_config["runtimes"]
    assert effective_config["default_runtime_name"] == "runc"
    assert runtimes["nvidia"]["runtime_type"] == "io.containerd.runc.v2"
    assert runtimes["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"
    assert runtimes["nvidia"]["options"]["SystemdCgroup"] is True, "inherited from runc"
    assert "BinaryName" not in runtimes["runc"]["options"] or runtimes["runc"]["options"]["BinaryName"] == ""


def test_comments_and_settings_of_the_site_are_kept(host: Any) -> None:
    text = host.file("/etc/containerd/config.toml").content_string
    for comment in (
        "the odd spacing are here on purpose",
        "# mirrors of the site live there",
        "# nodes of the lab may not lower an oom score",
        "# as the kubelet",
    ):
        assert comment in text
    before = re.sub(r"\n[^\n]*nvidia[^\n]*", "", text)
    assert "restrict_oom_score_adj = true" in before


def test_drop_in_leaves_only_its_import_in_the_main_file(host: Any) -> None:
    files = host.check_output("find /etc/containerd -name '*.toml'").split()
    text = host.file("/etc/containerd/config.toml").content_string
    if os.environ.get("SCENARIO_DROP_IN"):
        assert sorted(files) == [os.environ["SCENARIO_DROP_IN"], "/etc/containerd/config.toml"]
        assert tomllib.loads(text)["imports"] == [os.environ["SCENARIO_DROP_IN"]]
    else:
        assert files == ["/etc/containerd/config.toml"]
    mentions = [line for line in text.splitlines() if "nvidia" in line]
    assert len(mentions) == 1 if len(files) == 2 else len(mentions) > 1


def test_kernel_settings_are_live_and_persisted(host: Any) -> None:
    for key in ("net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"):
        assert host.sysctl(key) == 1
        assert host.run(f"grep -rqF '{key}' /etc/sysctl.d").rc == 0
    persisted = host.check_output("cat /etc/modules-load.d/*.conf")
    assert {"overlay", "br_netfilter"} <= set(persisted.split())


def test_services_run_and_nothing_is_pending(host: Any) -> None:
    assert host.service("containerd").is_running
    assert not host.file("/var/lib/gpu-kubernetes/pending/containerd.restart").exists
    leftovers = host.check_output("find /etc/containerd -name '.*gpu-kubernetes*' -o -name '*.bak'")
    assert leftovers == ""


def test_container_under_the_nvidia_runtime_has_only_its_gpu(host: Any) -> None:
    """ctr bypasses CRI: this tests the OCI runtime itself with the simulated GPUs."""
    run = "ctr -n k8s.io run --rm --runtime io.containerd.runc.v2 --runc-binary /usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=0"
    output = host.check_output(f"{run} {SAMPLE} molecule-sample")
    assert "Test PASSED" in output
    assert re.findall(r"device node (/dev/nvidia\d+)", output) == ["/dev/nvidia0"]


def test_backup_is_outside_the_folders_of_daemons(host: Any) -> None:
    folder = host.file("/var/lib/gpu-kubernetes/backups")
    assert folder.is_directory
    assert folder.mode == 0o700
    assert host.check_output("find /var/lib/gpu-kubernetes/backups -type f") != ""


def test_running_daemon_serves_cri(host: Any) -> None:
    """Of the running daemon, not of the file."""
    states = [
        line.split()[-1]
        for line in host.check_output("ctr plugins ls").splitlines()
        if ".cri" in line or " cri " in line
    ]
    assert set(states) == {"ok"}
