# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small fleet with problems, its allocation and its cost, for the tests of the page; names and log lines are hostile."""

from __future__ import annotations

import copy
from typing import Any

from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import (
    GIB,
    cluster,
    gpu,
    host,
)

HOSTILE = '<script>alert("x")</script>{{ 7 * 191 }}\x1b[31m\u202e'
A100 = "NVIDIA A100-SXM4-40GB"
IMAGE = "registry.example.com/fake-k8s-device-plugin:1"


def entry(name: str, expected: int, **values: Any) -> dict[str, Any]:
    """What the API server reports on a node whose GPUs are all allocatable."""
    return {
        "name": name,
        "expected": expected,
        "capacity": expected,
        "allocatable": expected,
        "gpu_resources": {"nvidia.com/gpu": expected},
        "ready": True,
        "schedulable": True,
        "ok": True,
        "reason": "",
        **values,
    }


def cards(number: int, prefix: str = "GPU", **values: Any) -> list[dict[str, Any]]:
    return [gpu(index, A100, 40 * GIB, uuid=f"{prefix}-{index}", **values) for index in range(number)]


def make_report(**values: Any) -> dict[str, Any]:
    """Whole GPUs on gpu1 and gpu2, of which one is lost; replicas on gpu3, an older driver and drift there; gpu4 cannot be examined."""
    broken = cards(4, "B")
    broken[2]["lost"] = True
    drift = {
        "reasons": ["add the runtime"],
        "diff": {"before": "a\n", "after": f"b {HOSTILE}\n", "before_header": "/etc/x"},
    }
    observations = [
        host("gpu1", cards(4, "A")),
        host("gpu2", broken, nvml={"error": "1 of 4 GPUs is lost; reboot."}),
        host("gpu3", cards(2, "C"), nvml={"driver_version": "535.1"}, configuration=drift),
    ]
    tests = [
        {"node": "gpu1", "passed": True, "skipped": False, "reason": "", "log_tail": []},
        {"node": "gpu2", "passed": False, "skipped": False, "reason": "it hangs", "log_tail": [HOSTILE, "end"]},
    ]
    entries = [
        entry("gpu1", 4),
        entry("gpu2", 4, allocatable=3, ok=False, reason="3 of 4 GPUs are allocatable; restart the device plugin"),
        entry("gpu3", 8, gpu_resources={"nvidia.com/gpu": 8}),
    ]
    given = cluster(nodes=entries, smoke=tests, hosts=["gpu4"], plugin_images=[IMAGE], left_out=["gpu9"])
    return build_report(observations, {**given, **values}, [f"A note on {HOSTILE}"])


def make_healthy(number: int) -> dict[str, Any]:
    """Nodes with eight whole GPUs each, and without a problem."""
    names = [f"gpu-node-{place:05}.example.com" for place in range(number)]
    tests = [{"node": name, "passed": True, "skipped": False, "reason": "", "log_tail": []} for name in names]
    entries = [entry(name, 8) for name in names]
    observations = [host(name, cards(8, f"GPU-4f5a2c1e-7d3b-4e0a-9b6f-{name}")) for name in names]
    return build_report(observations, cluster(nodes=entries, smoke=tests))


def pod(name: str, allocated: int, namespace: str = "team-a", **values: Any) -> dict[str, Any]:
    given = {"namespace": namespace, "name": name, "phase": "Running", "terminating": False, "gpus": [], "pending": 0}
    return {**given, "allocated": allocated, **values}


def resource(name: str, allocated: int, total: int, unit: str = "GPUs", **values: Any) -> dict[str, Any]:
    """A row of the allocation."""
    given = {"name": name, "address": "", "resource": "nvidia.com/gpu", "unit": unit, "gpu_count": 0, "gpus": []}
    return {**given, "pending": 0, "allocated": allocated, "total": total, "percent": 0, "pods": [], **values}


def make_allocation(**values: Any) -> dict[str, Any]:
    rows = [
        resource("gpu1", 3, 4, pods=[pod(HOSTILE, 2), pod("b", 1, "team-b")]),
        resource("gpu2", 0, 3),
        resource("gpu3", 2, 8, "replicas", pods=[pod("c", 2)]),
    ]
    return {"nodes": [], "unit": "", "findings": [], "resources": rows, "totals": [], **values}


def make_cost() -> dict[str, Any]:
    hours = {"allocated_hours": 12.5, "idle_hours": 3.0, "wasted_hours": 1.25}
    rows = [
        {"namespace": "team-a", "node": "gpu1", "product": A100, **hours, "cost": 25.0},
        {"namespace": "team-a", "node": "gpu2", "product": A100, **hours, "cost": 25.0},
        {"namespace": HOSTILE, "node": "gpu1", "product": A100, **hours, "cost": 99.0},
    ]
    return {"currency": "EUR", "rows": rows}


def make_earlier() -> dict[str, Any]:
    """The report before: gpu2 was whole, gpu3 had another driver, and gpu0 was there."""
    earlier = copy.deepcopy(make_report(smoke=[], hosts=[]))
    earlier["nodes"] = [{**earlier["nodes"][0], "host": "gpu0", "node": "gpu0"}, *earlier["nodes"]]
    earlier["nodes"][3]["driver"]["version"] = "530.1"
    earlier["problems"] = [problem for problem in earlier["problems"] if problem["code"] == "drift"]
    return earlier
