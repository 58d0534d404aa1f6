# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guide on support names the limits and versions that the code has."""

from __future__ import annotations

import re

import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._refusals import sharing
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

GUIDE = (ROOT / "docs" / "docsite" / "rst" / "guide_support.rst").read_text(encoding="utf-8")
SECTION = GUIDE.partition("Time slicing, MPS and MIG\n---")[2].partition("\n---")[0]
WORDS = " ".join(SECTION.split())


def read_most_clients(capability: str) -> int:
    """The largest number of pods that MPS is not refused for, on a GPU of this compute capability."""
    gpu = {"index": 0, "name": "GPU", "mig_mode": "disabled", "compute_capability": capability}
    facts = {
        "method": "manifest",
        "source": "nvml",
        "leaving": False,
        "gpus": [gpu],
        "program": "/usr/bin/nvidia-cuda-mps-control",
        "handler": "nvidia",
        "nvidia": "nvidia",
    }
    return max(number for number in range(2, 100) if not list(sharing.check_mps({**facts, "replicas": number})))


def test_guide_has_a_column_for_each_strategy_of_nvidia_that_divides_gpus() -> None:
    columns = re.findall(r"^      - ``(\w+)``$", SECTION, re.MULTILINE)
    assert columns == [row.name for row in STRATEGIES.values() if row.by_nvidia and (row.sharing_section or row.mig)]


def test_guide_has_the_numbers_of_pods_for_mps() -> None:
    assert f"2 to {read_most_clients('8.0')}, or to {read_most_clients('7.0')} below compute capability 7.5" in WORDS
    for model, number in sharing.WORKING_CLIENTS.items():
        assert re.search(rf"\b{number} on an? {model}\b", WORDS)


def test_guide_has_the_version_of_the_device_plugin() -> None:
    path = ROOT / "roles" / "k8s_device_plugin" / "defaults" / "main.yml"
    tag = yaml.safe_load(path.read_text(encoding="utf-8"))["k8s_device_plugin_image_tag"]
    assert f"Written for {tag.rpartition('.')[0]}," in WORDS
