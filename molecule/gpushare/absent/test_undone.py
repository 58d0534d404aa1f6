# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After the undo nothing of gpushare is left, and the scheduler is as it was."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

testinfra_hosts = ["ansible://kube_control_plane"]


def test_the_manifest_is_the_one_from_before(host: Any) -> None:
    compared = "cmp /root/kube-scheduler-before.yaml /etc/kubernetes/manifests/kube-scheduler.yaml && echo same"
    assert host.check_output(compared) == "same"
    assert not host.file("/etc/kubernetes/gpu-kubernetes-scheduler.yaml").exists


def test_the_nodes_know_nothing_of_it(api: Any) -> None:
    for node in api.list_node().items:
        assert "gpushare" not in node.metadata.labels
        assert not [key for key in node.metadata.annotations if "gpu-kubernetes" in key]
        assert "aliyun.com/gpu-count" not in {**node.status.capacity, **node.status.allocatable}
        # The kubelet keeps what a device plugin has offered until it starts anew.
        assert node.status.allocatable.get("aliyun.com/gpu-mem", "0") == "0"


@pytest.mark.parametrize("kind", ["cluster_role", "cluster_role_binding"])
def test_no_right_is_left(api: Any, kind: str) -> None:
    found = getattr(client.RbacAuthorizationV1Api(api.api_client), f"list_{kind}")().items
    assert found
    assert not [item.metadata.name for item in found if "gpushare" in item.metadata.name]


def test_no_object_is_left(api: Any, apps: Any) -> None:
    ours = "app.kubernetes.io/managed-by=gpu.kubernetes"
    assert api.list_pod_for_all_namespaces(label_selector=ours).items == []
    assert api.list_service_account_for_all_namespaces(label_selector=ours).items == []
    assert apps.list_daemon_set_for_all_namespaces(label_selector=ours).items == []
    assert client.NodeV1Api(api.api_client).list_runtime_class().items == []
