# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels are on the nodes of the API, right for the simulated GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

testinfra_hosts = ["ansible://gpu_nodes"]


@pytest.fixture
def labels(host: Any, api: Any) -> dict[str, str]:
    """Labels of this machine's node."""
    return api.read_node(host.check_output("hostname")).metadata.labels


def test_count_is_the_number_of_device_nodes(labels: dict[str, str], simulated_gpus: Callable[[], int]) -> None:
    assert labels["nvidia.com/gpu.present"] == "true"
    assert labels["nvidia.com/gpu.count"] == str(simulated_gpus())


def test_product_and_memory_are_of_a_gpu_that_is_there(labels: dict[str, str]) -> None:
    known = {"NVIDIA-A100-SXM4-40GB": "40960", "Tesla-T4": "15360"}
    assert labels["nvidia.com/gpu.memory"] == known[labels["nvidia.com/gpu.product"]]
    assert labels["accelerator"]


def test_other_nodes_have_none(api: Any) -> None:
    control_planes = api.list_node(label_selector="node-role.kubernetes.io/control-plane").items
    assert control_planes
    for node in control_planes:
        assert not [key for key in node.metadata.labels if key.startswith("nvidia.com/") or key == "accelerator"]
