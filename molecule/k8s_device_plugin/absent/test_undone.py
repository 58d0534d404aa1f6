# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent nothing of the plugin is in the cluster, and no node offers a GPU."""

from __future__ import annotations

from typing import Any

from kubernetes import client


def test_objects_are_gone(apps: Any) -> None:
    names = [item.metadata.name for item in apps.list_namespaced_daemon_set("kube-system").items]
    assert names == ["kube-proxy"]
    assert client.NodeV1Api(apps.api_client).list_runtime_class().items == []


def test_configuration_is_gone(api: Any) -> None:
    names = [item.metadata.name for item in api.list_namespaced_config_map("kube-system").items]
    assert "kube-proxy" in names
    assert not [name for name in names if "device-plugin" in name]
