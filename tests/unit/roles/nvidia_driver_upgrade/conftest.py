# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory, and what a host is told of it."""

from __future__ import annotations

import pytest
from fakes.loopback_api import serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgraded import PLAN, RESULT


@pytest.fixture
def cluster():
    """One with nothing in it yet."""
    with serving(SmallCluster()) as server:
        yield server


@pytest.fixture
def given(cluster, tmp_path):
    """What a host is told of the cluster, and what no machine of a test is asked."""
    return {
        "gpu_kubeconfig": str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig")),
        "gpu_node_name": "w1",
        "nvidia_driver_upgrade_state_dir": str(tmp_path),
        "nvidia_driver_upgrade_result": RESULT,
        "nvidia_driver_plan": PLAN,
        "nvidia_driver_method": "preinstalled",
    }
