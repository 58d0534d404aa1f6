# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes have the labels of their simulated GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fakes.nvml import nvml_profile
from lab import gpus

testinfra_hosts = ["ansible://gpu_nodes"]


@pytest.fixture
def labels(host: Any, api: Any) -> dict[str, str]:
    """Labels of this machine's node."""
    return api.read_node(host.check_output("hostname")).metadata.labels


def test_count_is_the_number_of_device_nodes(labels: dict[str, str], count_simulated_gpus: Callable[[], int]) -> None:
    assert labels["nvidia.com/gpu.present"] == "true"
    assert labels["nvidia.com/gpu.count"] == str(count_simulated_gpus())


def test_product_and_memory_are_those_of_a_gpu_of_the_node(labels: dict[str, str]) -> None:
    known = {"NVIDIA-A100-SXM4-40GB": "40960", "Tesla-T4": "15360"}
    assert labels["nvidia.com/gpu.memory"] == known[labels["nvidia.com/gpu.product"]]
    assert labels["accelerator"]


def test_versions_are_those_of_the_simulated_driver(host: Any, settings: Any, labels: dict[str, str]) -> None:
    [node] = [node for node in settings.nodes if node.name == host.check_output("hostname")]
    driver = nvml_profile.sections(gpus.profile(node).read_text())[0]
    assert labels["nvidia.com/cuda.driver-version.full"] == driver["driver_version"]
    assert labels["nvidia.com/cuda.runtime-version.full"] == driver["cuda_version"]


def test_nodes_without_gpus_have_no_label(api: Any) -> None:
    control_planes = api.list_node(label_selector="node-role.kubernetes.io/control-plane").items
    assert control_planes
    for node in control_planes:
        assert not [key for key in node.metadata.labels if key.startswith("nvidia.com/") or key == "accelerator"]
