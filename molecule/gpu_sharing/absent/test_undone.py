# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After the way there and back nothing is left of either way of sharing, in the cluster and on the nodes."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client

testinfra_hosts = ["ansible://gpu_nodes"]


def test_the_node_has_nothing_of_it(host: Any, api: Any) -> None:
    assert (
        host.check_output("ls -d /dev/nano-gpu* /dev/elastic-gpu* /var/lib/nanogpu /var/lib/egpu 2>/dev/null; true")
        == ""
    )
    node = api.read_node(host.check_output("hostname"))
    assert not [key for key in node.metadata.labels if "gpu" in key]
    assert not [key for key in node.metadata.annotations if "gpu-kubernetes" in key]
    assert not node.spec.unschedulable


def test_no_object_is_left(api: Any, apps: Any) -> None:
    ours = "app.kubernetes.io/managed-by=gpu.kubernetes"
    assert api.list_pod_for_all_namespaces(label_selector=ours).items == []
    assert api.list_service_for_all_namespaces(label_selector=ours).items == []
    assert api.list_service_account_for_all_namespaces(label_selector=ours).items == []
    assert apps.list_daemon_set_for_all_namespaces(label_selector=ours).items == []
    assert apps.list_deployment_for_all_namespaces(label_selector=ours).items == []


@pytest.mark.parametrize("kind", ["cluster_role", "cluster_role_binding"])
def test_no_right_is_left(api: Any, kind: str) -> None:
    found = getattr(client.RbacAuthorizationV1Api(api.api_client), f"list_{kind}")().items
    assert found
    assert not [item.metadata.name for item in found if "gpu" in item.metadata.name]
