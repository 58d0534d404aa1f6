# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters hand facts to the logic and turn its errors into Ansible's."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import expected_gpus, gpu_labels

LABELS = gpu_labels.FilterModule().filters()["gpu_labels"]
COUNT = expected_gpus.FilterModule().filters()["expected_gpus"]
T4 = {"name": "Tesla T4", "memory_total_bytes": 16106127360, "lost": False, "mig_mode": None}


def test_labels_and_warnings() -> None:
    result = LABELS({"gpus": [T4]}, accelerator="t4", extra={"a": "b"})
    assert (result["labels"]["accelerator"], result["labels"]["a"], result["warnings"]) == ("t4", "b", [])


def test_count() -> None:
    assert COUNT({"gpus": [T4, T4]}) == 2


@pytest.mark.parametrize("call", [LABELS, COUNT])
@pytest.mark.parametrize("facts", [None, "text", []])
def test_no_facts(call: Any, facts: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="run nvml_facts"):
        call(facts)


def test_what_cannot_be_told() -> None:
    sliced = {**T4, "mig_mode": "enabled"}
    with pytest.raises(AnsibleFilterError, match="set k8s_device_plugin_expected_gpus"):
        COUNT({"gpus": [sliced]}, {"flags": {"migStrategy": "single"}})
