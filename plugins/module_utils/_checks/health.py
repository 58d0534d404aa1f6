# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks that read nothing but the facts of nvml_facts, for other reports than the doctor's."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from .judge import Result, judge
from .registry import select_checks

#: Without the slowdown by heat or power, which changes with the load: gpu_verify's report changes only with the cluster.
HEALTH = ("hw.pci_link", "hw.ecc", "hw.remap", "hw.recovery", "hw.fabric", "hw.mig_pending", "kernel.xid")

#: What is worth knowing before a change. Without what the change itself is for: a module that is not built or loaded, a library that does not answer.
PREFLIGHT = (*HEALTH, "hw.throttle", "kernel.mismatch", "lib.serves")


def find_health(nvml: Mapping[str, Any], checks: Sequence[str] = HEALTH) -> list[Result]:
    """Return what fails or warns of the GPUs in the facts ``nvml``, as the causes of the doctor's report. Topics that are missing find nothing."""
    observation = {"host": "", "node": "", "nvml": nvml, "log": {"xids": nvml.get("xid_errors"), "lines": {}}}
    causes: list[Result] = judge([observation], checks=select_checks(checks))["causes"]
    return causes
