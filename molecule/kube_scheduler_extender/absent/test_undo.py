# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the scheduler is as it was."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://kube_control_plane"]


def test_manifest_equals_the_former_one(host: Any) -> None:
    command = "cmp /root/kube-scheduler-before.yaml /etc/kubernetes/manifests/kube-scheduler.yaml && echo same"
    assert host.check_output(command) == "same"


def test_nothing_is_left(host: Any) -> None:
    assert not host.file("/etc/kubernetes/gpu-kubernetes-scheduler.yaml").exists
    assert host.check_output("find /var/lib/gpu-kubernetes -type f -not -path '*/backups/*'; true") == ""


def test_kubeadm_configuration_equals_the_former_one(host: Any) -> None:
    get = "kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system get configmap kubeadm-config"
    now = host.check_output(f"{get} -o jsonpath={{.data.ClusterConfiguration}}")
    assert now == host.file("/root/kubeadm-before.yaml").content_string.rstrip("\n")
