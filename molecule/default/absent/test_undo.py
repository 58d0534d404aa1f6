# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After the undo the cluster is as before: no object, no label, each file as shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubernetes import client

testinfra_hosts = ["ansible://gpu_nodes"]

SHIPPED = Path(__file__).resolve().parents[3] / "tests" / "lab" / "files" / "containerd" / "config-v3.toml"


def test_configuration_equals_the_shipped_one(host: Any) -> None:
    def without_sandbox(text: str) -> list[str]:
        return [line for line in text.splitlines() if "sandbox = " not in line]

    now = host.file("/etc/containerd/config.toml").content_string
    assert without_sandbox(now) == without_sandbox(SHIPPED.read_text())


def test_toolkit_and_its_repository_are_gone(host: Any) -> None:
    assert not host.package("nvidia-container-toolkit").is_installed
    assert (
        host.check_output(
            "find /etc/apt /etc/modules-load.d /etc/sysctl.d -name '*nvidia*' -o -name '*gpu-kubernetes*'"
        )
        == ""
    )


def test_managed_objects_are_removed(api: Any, apps: Any) -> None:
    assert [item.metadata.name for item in apps.list_daemon_set_for_all_namespaces().items] == ["kube-proxy"]
    assert client.NodeV1Api(apps.api_client).list_runtime_class().items == []
    config_maps = [item.metadata.name for item in api.list_namespaced_config_map("kube-system").items]
    assert "kube-proxy" in config_maps
    assert not [name for name in config_maps if "device-plugin" in name]
    managed = "app.kubernetes.io/managed-by=gpu.kubernetes"
    assert api.list_config_map_for_all_namespaces(label_selector=managed).items == []
    assert api.list_pod_for_all_namespaces(label_selector=managed).items == []
    assert api.list_namespace(label_selector=managed).items == []


def test_nodes_report_no_gpu_and_have_no_managed_label(api: Any) -> None:
    nodes = api.list_node().items
    assert len(nodes) == 3
    for node in nodes:
        assert node.status.allocatable.get("nvidia.com/gpu", "0") == "0"
        assert not [key for key in node.metadata.labels if key.startswith("nvidia.com/") or key == "accelerator"]
        assert not [key for key in node.metadata.annotations or {} if "gpu-kubernetes" in key]
