# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that preflight and the report of gpu_verify have in common with the doctor."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.health import HEALTH, PREFLIGHT, find_health
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.judge import judge
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._checks.healthy import build, put

#: What preflight leaves out of what the facts of nvml_facts show, and why.
LEFT_OUT = {
    "kernel.module_built": "the run installs the driver",
    "kernel.module_loaded": "the same",
    "lib.answers": "gpu_preflight refuses it with the error of nvml_facts",
    "lib.persistence": "a remark, and no cause",
    "hw.nvlink": "links are the topology, which preflight does not gather",
}


def observe(**changes: Any) -> dict[str, Any]:
    """The facts of a healthy host, with changes by path."""
    host, _cluster = build()
    for path, value in changes.items():
        put(host, path, value)
    return {**host["nvml"], "xid_errors": []}


def test_preflight_has_each_check_that_the_facts_of_gpus_suffice_for() -> None:
    nvml = observe()
    observation = {"host": "", "node": "", "nvml": nvml, "log": {"xids": nvml["xid_errors"], "lines": {}}}
    [host] = judge([observation])["hosts"]
    decided = {*host["passed"], *(each["id"] for each in host["checks"] if each["verdict"] != "unknown")}
    # These search lines of the kernel log, which the facts do not have.
    decided -= {"kernel.secure_boot", "kernel.flavour", "kernel.legacy", "kernel.probe_failed"}
    decided -= {"kernel.fallen", "kernel.sxid"}
    assert decided == {*PREFLIGHT, *LEFT_OUT}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("nvml/gpus/0/pcie/width", 8, "hw.pci_link"),
        ("nvml/gpus/0/clocks/event_reasons", ["hw_thermal_slowdown"], "hw.throttle"),
        ("nvml/driver/installed_module_version", "570.1", "kernel.mismatch"),
        ("nvml/gpus/1/lost", True, "lib.serves"),
        ("nvml/gpus/0/recovery_action", "reset", "hw.recovery"),
    ],
)
def test_preflight_finds_the_fault(path: str, value: Any, expected: str) -> None:
    nvml = observe(**{path: value})
    assert [cause["id"] for cause in find_health(nvml, PREFLIGHT)] == [expected]
    assert [cause["id"] for cause in find_health(nvml)] == ([expected] if expected in HEALTH else [])


def test_missing_topics_find_nothing() -> None:
    assert find_health({"source": "pci", "error": "no driver", "gpus": []}, PREFLIGHT) == []
