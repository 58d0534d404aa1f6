# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs, and the findings on a situation."""

from __future__ import annotations

from typing import Any, Mapping, Tuple

from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.check import check_compatibility

K80 = {"name": "Tesla K80", "pci_device_id": "102d"}
P40 = {"name": "Tesla P40", "pci_device_id": "1b38", "compute_capability": "6.1"}
V100 = {"name": "Tesla V100-PCIE-32GB", "pci_device_id": "1db6"}
T4 = {"name": "Tesla T4", "pci_device_id": "1eb8", "compute_capability": "7.5"}
GA102 = {"name": "NVIDIA GeForce RTX 3090", "pci_device_id": "2204", "compute_capability": "8.6"}
GB10 = {"name": "NVIDIA GB10", "pci_device_id": "2e12", "compute_capability": "12.1"}
A100 = {"name": "NVIDIA A100-SXM4-40GB", "pci_device_id": "20b0"}
GH200 = {"name": "NVIDIA GH200 480GB", "pci_device_id": "2342"}
B200 = {"name": "NVIDIA B200", "pci_device_id": "2901", "compute_capability": "10.0"}
B300 = {"name": "NVIDIA B300", "pci_device_id": "3182", "compute_capability": "10.3"}
NEW = {"name": None, "pci_device_id": "4abc"}
ODD = {"name": "Odd", "pci_device_id": "1300"}
TODAY = "2026-05"

#: Level, topic, and words of the message.
Finding = Tuple[str, str, str]


def check_situation(situation: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    requested = dict(situation)
    return check_compatibility(requested, tables, requested.pop("today", TODAY))


def check_findings(tables: Mapping[str, Any], situation: Mapping[str, Any], expected: list[Finding]) -> None:
    """Compare the findings with the expected ones, in the order in which they are reported."""
    found = check_situation(situation, tables)["findings"]
    if "today" in situation:  # not about the security of an old driver
        found = [finding for finding in found if finding["topic"] != "driver_security"]
    assert [(finding["level"], finding["topic"]) for finding in found] == [case[:2] for case in expected], found
    for finding, (_level, _topic, words) in zip(found, expected):
        assert words in finding["message"]
        assert finding["message"].endswith(".")
        assert (
            finding["source"] or "othing is known" in finding["message"] or "No driver supports" in finding["message"]
        )
