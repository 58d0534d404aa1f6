# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory, and variables of its host."""

from __future__ import annotations

import pytest
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgrade_objects import PLAN, RESULT


@pytest.fixture
def cluster():
    """An empty cluster."""
    with serve_in_thread(SmallCluster()) as server:
        yield server


@pytest.fixture
def host_variables(cluster, tmp_path):
    """Variables of a host of the cluster, with facts that tests do not collect."""
    return {
        "gpu_kubeconfig": str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig")),
        "gpu_node_name": "w1",
        "nvidia_driver_upgrade_state_dir": str(tmp_path),
        "nvidia_driver_upgrade_result": RESULT,
        "nvidia_driver_plan": PLAN,
        "nvidia_driver_method": "preinstalled",
    }
