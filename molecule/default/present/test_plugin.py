# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocatable GPUs are the node's GPUs, and the device plugin runs on GPU nodes only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

testinfra_hosts = ["ansible://gpu_nodes"]


def test_allocatable_is_the_number_of_device_nodes(
    host: Any, api: Any, count_simulated_gpus: Callable[[], int]
) -> None:
    status = api.read_node(host.check_output("hostname")).status
    assert count_simulated_gpus() > 0
    assert status.allocatable["nvidia.com/gpu"] == status.capacity["nvidia.com/gpu"] == str(count_simulated_gpus())


def test_daemonset_runs_only_on_gpu_nodes(apps: Any) -> None:
    daemonset = apps.read_namespaced_daemon_set("nvidia-device-plugin-daemonset", "kube-system")
    assert daemonset.status.number_ready == daemonset.status.desired_number_scheduled == 2
    assert daemonset.spec.template.spec.runtime_class_name == "nvidia"
    assert daemonset.spec.template.spec.priority_class_name == "system-node-critical"


def test_plugin_image_is_a_fake(apps: Any) -> None:
    daemonset = apps.read_namespaced_daemon_set("nvidia-device-plugin-daemonset", "kube-system")
    assert "fake" in daemonset.spec.template.spec.containers[0].image
