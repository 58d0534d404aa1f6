# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Amounts of GPU resources by name."""

from __future__ import annotations

from fakes.kubernetes_api import GPU, FakeClock, FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.extended_resources import (
    count_gpu_resources,
    remove_resources,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing


def scheduled_pod(**limits: str) -> dict:
    """A scheduled pod that has one init container with these limits."""
    given = {name.replace("__", "/").replace("_", "-"): value for name, value in limits.items()}
    return {"spec": {"nodeName": "w1", "initContainers": [{"resources": {"limits": given}}]}}


def test_count_gpu_resources_by_name() -> None:
    status = {
        "capacity": {"cpu": "8", "nvidia.com/gpu.shared": "8", "aliyun.com/gpu-count": "2"},
        "allocatable": {"cpu": "8", "nvidia.com/gpu.shared": "4", "nvidia.com/mig-1g.5gb": "3"},
    }
    # The node no longer reports the second resource.
    pods = [
        scheduled_pod(**{"nvidia.com__gpu.shared": "2"}),
        scheduled_pod(nano_gpu__gpu_percent="30"),
        scheduled_pod(cpu="1"),
    ]
    assert count_gpu_resources({"status": status}, pods) == {
        "gpu_resources": {
            "aliyun.com/gpu-count": 0,
            "nano-gpu/gpu-percent": 0,
            "nvidia.com/gpu.shared": 4,
            "nvidia.com/mig-1g.5gb": 3,
        },
        "gpu_capacity": {
            "aliyun.com/gpu-count": 2,
            "nano-gpu/gpu-percent": 0,
            "nvidia.com/gpu.shared": 8,
            "nvidia.com/mig-1g.5gb": 0,
        },
        "gpu_allocated": {
            "aliyun.com/gpu-count": 0,
            "nano-gpu/gpu-percent": 30,
            "nvidia.com/gpu.shared": 2,
            "nvidia.com/mig-1g.5gb": 0,
        },
    }
    others = {"amd.com/gpu": "2", "amd.com/nic": "4", "gpu.intel.com/xe": "1", "gpu.intel.com/xe_monitoring": "1"}
    found = count_gpu_resources({"status": {"allocatable": others}}, [scheduled_pod(amd_com__gpu="1")])
    assert found["gpu_resources"] == {"amd.com/gpu": 2, "gpu.intel.com/xe": 1}
    assert count_gpu_resources({}, []) == {"gpu_resources": {}, "gpu_capacity": {}, "gpu_allocated": {}}


def test_remove_resources_with_busy_server_retries() -> None:
    cluster, clock = FakeCluster([node("w1", 2), node("w2")]), FakeClock()

    def refuse(call: str) -> None:
        if call.startswith("patch") and clock() < 5:
            raise ApiError("busy", 503)

    cluster.on_call = refuse
    assert remove_resources(cluster, [GPU], timing=Timing(clock, clock.sleep)) == {"w1": {GPU: "2"}}
    assert cluster.store_nodes["w1"]["status"]["capacity"] == {}
    assert cluster.calls.count("patch status w1") == 4
