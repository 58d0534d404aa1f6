# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short constructors of nodes and pods under gpushare."""

from __future__ import annotations

from typing import Any

GPU_MEM, GPU_COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"


def share_node(name: str, gpu_mem: Any = 16, gpu_count: Any = 1, **more: Any) -> dict[str, Any]:
    """Make a node; None leaves an amount out. ``capacity`` and ``allocatable`` are more amounts, ``address`` its internal one."""
    amounts = {GPU_MEM: gpu_mem, GPU_COUNT: gpu_count}
    given = {key: str(value) for key, value in amounts.items() if value is not None}
    address = more.get("address", "10.0.0.1")
    addresses = [{"type": "Hostname", "address": name}]
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "capacity": {"cpu": "8", **given, **more.get("capacity", {})},
            "allocatable": {"cpu": "8", **given, **more.get("allocatable", {})},
            "addresses": [*addresses, *([{"type": "InternalIP", "address": address}] if address else [])],
        },
    }


def share_pod(name: str, on: str = "w1", amounts: Any = (3,), index: Any = 0, **more: Any) -> dict[str, Any]:
    """Make a pod with a container for each amount; ``index`` None leaves the annotation out.

    ``annotations``, ``phase``, ``namespace``, ``deleted``, and ``init``, which is a list of init containers, may be given.
    """
    annotations = {} if index is None else {"ALIYUN_COM_GPU_MEM_IDX": str(index)}
    annotations.update(more.get("annotations", {}))
    containers = [
        {"name": f"c{number}", **({"resources": {"limits": {GPU_MEM: str(amount)}}} if amount is not None else {})}
        for number, amount in enumerate(amounts)
    ]
    metadata = {"name": name, "namespace": more.get("namespace", "default"), "uid": f"uid-{name}"}
    if annotations:
        metadata["annotations"] = annotations
    if more.get("deleted"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: dict[str, Any] = {"containers": containers, "initContainers": more.get("init", [])}
    if on:
        spec["nodeName"] = on
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": more.get("phase", "Running")}}
