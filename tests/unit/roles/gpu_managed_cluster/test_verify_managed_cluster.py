# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook verify_managed_cluster on a fake API server, and that others connect to no host of a managed cluster."""

from __future__ import annotations

import pytest
from fakes import small_cluster
from fakes.loopback_api import serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

INVENTORY = "[gpu_nodes]\nunreachable.invalid\n"
GPU = "nvidia.com/gpu"


def make_node(name, allocatable):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "nodeInfo": {"kubeletVersion": "v1.34.1-eks-113cf36", "osImage": "Amazon Linux 2023"},
            "capacity": {GPU: "8"},
            "allocatable": {GPU: str(allocatable)},
        },
    }


KINDS = {"apiregistration.k8s.io/v1": {"apiservices": ("APIService", False)}}


@pytest.fixture
def verify(run, tmp_path, monkeypatch):
    """Run the playbook on a cluster with these nodes: exit code and output."""
    monkeypatch.setattr(small_cluster, "KINDS", {**small_cluster.KINDS, **KINDS})

    def play(*nodes):
        with serve_in_thread(small_cluster.SmallCluster(*nodes)) as server:
            return run(
                INVENTORY,
                ROOT / "playbooks" / "verify_managed_cluster.yml",
                "--tags",
                "verify",
                gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
                gpu_managed_cluster_smoke_test=False,
            )

    return play


def test_owners_are_printed_and_no_host_is_connected_to(verify):
    code, output = verify(make_node("a", 8))
    assert code == 0, output
    text = " ".join(output.split())
    assert "EKS (1 nodes): driver and toolkit are owned by the image of the nodes, the device plugin by you." in text
    assert "EKS: no DaemonSet mounts /var/lib/kubelet/device-plugins" in text
    assert "unreachable.invalid" not in output


def test_unhealthy_gpus_fail_the_run(verify):
    code, output = verify(make_node("a", 8), make_node("b", 7))
    assert code != 0
    assert "Node b: 1 of 8 nvidia.com/gpu are unhealthy." in " ".join(output.split())


def test_playbooks_for_hosts_refuse_a_managed_cluster(run):
    code, output = run(INVENTORY, ROOT / "playbooks" / "label_gpu_nodes.yml", gpu_cluster_scope="cluster")
    assert code != 0
    assert (
        "gpu_cluster_scope is cluster, so that no host is connected to; run gpu.kubernetes.prepare_managed_cluster or"
        in " ".join(output.split())
    )
    assert "UNREACHABLE" not in output
