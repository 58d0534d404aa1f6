# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observations of a host and a cluster, for the tests of the report."""

from __future__ import annotations

import json
from typing import Any

GIB = 1024**3


def gpu(index: int = 0, name: str = "Tesla T4", memory: int = 15 * GIB, **values: Any) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": name,
        "pci_address": f"0000:4{index}:00.0",
        "memory_total_bytes": memory,
        "mig_mode": None,
        "compute_capability": "7.5",
        "temperature_celsius": 31 + index,
        "memory_used_bytes": 1000 + index,
        "lost": False,
        **values,
    }


def host(name: str = "worker-1", gpus: list[dict[str, Any]] | None = None, **values: Any) -> dict[str, Any]:
    observation: dict[str, Any] = {
        "host": name,
        "node": name,
        "require_gpu": True,
        "devices": {},
        "nvml": {
            "source": "nvml",
            "driver_version": "570.124.06",
            "cuda_driver_version": "12.8",
            "gpus": [gpu()] if gpus is None else gpus,
            "error": None,
        },
        "runtime": {
            "ok": True,
            "cause": "",
            "remedy": "",
            "log": [],
            "runtime_name": "containerd",
            "runtime_version": "2.4.2+unknown",
            "default_runtime": "runc",
            "runtimes": {"runc": {}, "nvidia": {}},
            "waited_seconds": 0.1,
        },
        "toolkit": {"path": "/usr/bin/nvidia-container-runtime", "version": "1.17.8", "usable": True},
        "configuration": {"reasons": [], "restart_required": False},
        "kubelet": {"cgroup_driver": None},
        "runtime_name": "nvidia",
    }
    for key, value in values.items():
        observation[key] = {**observation[key], **value} if isinstance(value, dict) else value
    return observation


def cluster(**values: Any) -> dict[str, Any]:
    node = {
        "name": "worker-1",
        "expected": 1,
        "capacity": 1,
        "allocatable": 1,
        "ready": True,
        "schedulable": True,
        "ok": True,
        "reason": "",
    }
    result: dict[str, Any] = {
        "error": "",
        "resource_name": "nvidia.com/gpu",
        "nodes": [node],
        "plugin_images": ["nvcr.io/nvidia/k8s-device-plugin:v0.20.0"],
        "runtime_class": {"name": "nvidia", "found": True, "handler": "nvidia", "expected_handler": "nvidia"},
        "smoke": [{"node": "worker-1", "passed": True, "skipped": False, "reason": "", "log_tail": ["Test PASSED"]}],
        "smoke_error": "",
        "hosts": [],
        "limited": False,
    }
    if "node" in values:
        result["nodes"] = [{**node, **values.pop("node")}]
    return {**result, **values}


MISMATCH = {"source": "pci", "error": "Driver/library version mismatch; reboot."}


def from_file(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report as the next run reads it."""
    result: dict[str, Any] = json.loads(json.dumps(report))
    return result
