# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After the undo the cluster is as before: no object, no label, the first bytes of every file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

testinfra_hosts = ["ansible://gpu_nodes"]

SHIPPED = Path(__file__).resolve().parents[3] / "tests" / "lab" / "files" / "containerd" / "config-v3.toml"


def test_configuration_is_the_first_one(host: Any) -> None:
    def without_sandbox(text: str) -> list[str]:
        return [line for line in text.splitlines() if "sandbox = " not in line]

    now = host.file("/etc/containerd/config.toml").content_string
    assert without_sandbox(now) == without_sandbox(SHIPPED.read_text())


def test_cluster_offers_no_gpu(api: Any, apps: Any) -> None:
    assert [item.metadata.name for item in apps.list_daemon_set_for_all_namespaces().items] == ["kube-proxy"]
    for node in api.list_node().items:
        assert node.status.allocatable.get("nvidia.com/gpu", "0") == "0"
        assert not [key for key in node.metadata.labels if key.startswith("nvidia.com/")]
