# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exporters are recognized by their images, with their owners and pods."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.catalogue import DAEMON_SET, EXPORTERS
from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.cluster import (
    OPERATOR_LABEL,
    describe_nodes,
    find_daemon_sets,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._vendors import OTHERS, SERVED

DCGM = "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless"


def daemon_set(image: str, name: str = "x", namespace: str = "n", port: int = 0, **metadata: Any) -> dict[str, Any]:
    ports = [{"name": "metrics", "containerPort": port}] if port else []
    containers = [{"image": "registry/sidecar:1"}, {"image": image, "ports": ports}]
    return {
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {"spec": {"containers": containers}}},
    }


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (daemon_set(DCGM), ("dcgm_exporter", "", False, 9400)),
        (
            daemon_set(DCGM, labels={"app": "nvidia-dcgm-exporter"}),
            ("dcgm_exporter", "NVIDIA's GPU Operator", False, 9400),
        ),
        (
            daemon_set(DCGM, ownerReferences=[{"kind": "ClusterPolicy"}], port=9401),
            ("dcgm_exporter", "NVIDIA's GPU Operator", False, 9401),
        ),
        (daemon_set(DCGM, namespace="nvsentinel"), ("dcgm_exporter", "NVSentinel", False, 9400)),
        (
            daemon_set("ghcr.io/utkuozdemir/nvidia_gpu_exporter@sha256:0"),
            ("nvidia_gpu_exporter", "", False, 9835),
        ),
        (
            daemon_set(DCGM, labels={"app.kubernetes.io/managed-by": "gpu.kubernetes"}),
            ("dcgm_exporter", "", True, 9400),
        ),
        (daemon_set("docker.io/rocm/device-metrics-exporter:v1.5.1"), ("amd_device_metrics_exporter", "", False, 5000)),
        (daemon_set("mirror/intel/XPUMD:2.0.0"), ("intel_xpumd", "", False, 8080)),
        (daemon_set("nvcr.io/nvidia/k8s-device-plugin:v0.20.1"), None),
        ({"metadata": {}, "spec": None}, None),
    ],
)
def test_daemon_set_is_recognized(item: dict[str, Any], expected: Any) -> None:
    found = [(each.exporter.name, each.owner, each.managed, each.port) for each in find_daemon_sets([item])]
    assert found == ([expected] if expected else [])


def test_exporters_are_of_vendors_of_the_catalogue() -> None:
    assert {row.vendor for row in EXPORTERS} == {row.name for row in (SERVED, *OTHERS)}
    # Services of hosts are those of NVIDIA alone.
    assert all(row.vendor == SERVED.name or set(row.methods) <= {DAEMON_SET} for row in EXPORTERS)


def node(name: str, **labels: str) -> dict[str, Any]:
    addresses = [{"type": "Hostname", "address": name}, {"type": "InternalIP", "address": f"10.0.0.{name[1:]}"}]
    return {"metadata": {"name": name, "labels": labels}, "status": {"addresses": addresses}}


def pod(on: str, address: str = "") -> dict[str, Any]:
    return {"spec": {"nodeName": on}, "status": {"podIP": address}}


def test_nodes_have_the_exporters_of_their_pods() -> None:
    (operated,) = find_daemon_sets([daemon_set(DCGM, labels={"app": "nvidia-dcgm-exporter"})])
    # On w3, the operator has paused its pod, and on w4 it deploys none.
    paused, off = {OPERATOR_LABEL: "paused-for-driver-upgrade"}, {OPERATOR_LABEL: "false"}
    nodes = [node("w1"), node("w2"), node("w3", **paused), node("w4", **off), {"metadata": {"name": "w5"}}]
    found = describe_nodes(nodes, [(operated, [pod("w1", "10.244.1.7"), pod("w2"), pod("w5", "fd00::1"), pod("gone")])])
    addresses = {name: [each["address"] for each in row["exporters"]] for name, row in found.items()}
    assert addresses == {"w1": ["10.244.1.7:9400"], "w2": [""], "w3": [""], "w4": [], "w5": ["[fd00::1]:9400"]}
    assert (found["w1"]["address"], found["w5"]["address"]) == ("10.0.0.1", "")
