# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the smoke test of pods that share GPUs, on a cluster in memory."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from fakes.kubernetes_api import FakeClock, FakeCluster
from fakes.sharing_cluster import MEMORY, FakeSharing

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.pod import SmokeTest
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.runner import run_smoke_test

TEST = SmokeTest(image="reg/sample:1", expected_output="Test PASSED", timeout=60, shared=[MEMORY])
NOW = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)
# Of a GPU with 16 units: two pods that share it, and one that no GPU is large enough for.
SMALL, LARGE, TOO_MUCH = 3, 4, 17


def make_timing(clock: FakeClock | None = None) -> Timing:
    clock = clock or FakeClock()
    return Timing(clock, clock.sleep, lambda: NOW)


def run(cluster: FakeCluster, test: SmokeTest = TEST, nodes: Any = ("w1",), clock: FakeClock | None = None) -> Any:
    """Return the result of the only node, or of all nodes; no pod of the test is left in the cluster."""
    results = run_smoke_test(cluster, test, nodes, make_timing(clock)).results
    assert not [item for item in cluster.store_pods if item["metadata"].get("generateName")]
    return results[0] if len(results) == 1 else results


def requests(cluster: FakeSharing) -> list[int]:
    return sorted(map(cluster.request_of, cluster.created))
