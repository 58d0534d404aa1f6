# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A proof of shared GPUs on a cluster in memory, for the tests of what passes, what fails and what is left."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from fakes.gpushare_cluster import FakeGpushare, request_of, shared_node
from fakes.kubernetes_api import FakeClock, FakeCluster

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.proving import (
    run_sharing_test,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.sharing import NAME, Sharing
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke import Smoke, labels_for
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoking import Pace

SMOKE = Smoke(image="reg/sample:1", expected_output="Test PASSED", timeout=60)
SHARING = Sharing(SMOKE)
NOW = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)


def pace() -> Pace:
    clock = FakeClock()
    return Pace(2, clock, clock.sleep, lambda: NOW)


def prove(cluster: FakeCluster, sharing: Sharing = SHARING, nodes: Any = ("w1",)) -> Any:
    """Return the result of the only node, or of all; nothing of the test is left in the cluster."""
    results = run_sharing_test(cluster, sharing, nodes, pace()).results
    assert not [item for item in cluster.store_pods if item["metadata"].get("labels") == labels_for(NAME)]
    return results[0] if len(results) == 1 else results


def asked(cluster: FakeCluster) -> list[int]:
    return [request_of(item) for item in cluster.created]


def says(cluster: FakeGpushare, message: str, amount: int = 0) -> None:
    """Have kube-scheduler refuse the pod of an amount, or all."""
    cluster.refusal = lambda made: message if request_of(made) == amount or not amount else ""


def does(cluster: FakeGpushare, amount: int, *path: str, to: Any) -> None:
    """Give a part of the pod of an amount another value once it is placed."""

    def change(made: dict[str, Any]) -> None:
        if request_of(made) == amount:
            place = made
            for name in path[:-1]:
                place = place.setdefault(name, {})
            place[path[-1]] = to

    cluster.on_placed = change


FAILED = {
    "phase": "Failed",
    "containerStatuses": [
        {
            "name": "smoke-test",
            "state": {
                "terminated": {
                    "exitCode": 128,
                    "reason": "StartError",
                    "message": "nvidia-container-cli: device error: no-gpu-has-3GiB-to-run: unknown device",
                }
            },
        }
    ],
}


def two_gpus() -> FakeGpushare:
    return FakeGpushare([shared_node("w1", gpus=2)])
