# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a GPU that is simulated, and the nvidia-smi that tells the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect
from ansible_collections.gpu.kubernetes.tests.unit.gpu.smi_samples import Smi

if TYPE_CHECKING:
    from fakes.nvml.simulated import Workshop


def process(pid: int, kind: str, mebibytes: int, instance: int | None = None) -> dict[str, Any]:
    """A process as facts have it."""
    told = {"pid": pid, "name": "python3", "type": kind, "used_memory_bytes": mebibytes << 20}
    return {**told, "gpu_instance_id": instance, "compute_instance_id": None if instance is None else 0}


@pytest.fixture
def facts(workshop: Workshop) -> Any:
    """Of a simulated H100, with two partitions, two links, processes, neighbours and values that are not all 0."""
    options = collect.Options(library=workshop.library("h100-mig"), subset=collect.SUBSETS)
    facts = collect.gather_facts(options).as_dict()
    facts["driver"]["module_version"] = facts["driver_version"]
    gpu = facts["gpus"][0]
    gpu["mig_mode_pending"] = gpu["ecc"]["mode_pending"] = "disabled"
    gpu["ecc"].update(corrected_volatile=1, corrected_aggregate=20, uncorrected_volatile=3, uncorrected_aggregate=40)
    gpu["clocks"]["event_reasons"] = ["sw_power_cap", "display_clock_setting"]
    gpu["mig_devices"], gpu["gpu_instances"], gpu["nvlinks"] = (
        gpu["mig_devices"][:2],
        gpu["gpu_instances"][:3],
        gpu["nvlinks"][:2],
    )
    gpu["nvlinks"][1].update(active=False, remote=None, remote_pci_address=None)
    gpu.update(numa_node=1, memory_numa_node=2, cpu_affinity="16-31,48-63")
    gpu["peers"] = [{"index": 1, "level": "PXB"}, {"index": 2, "level": "SYS"}]
    gpu["processes"] = [
        process(4242, "compute", 10240, 1),
        process(4242, "compute", 2048, 2),
        process(977, "compute", 61),
        process(977, "graphics", 61),
    ]
    return {**facts, "gpus": [gpu]}


@pytest.fixture
def smi(facts: Any) -> Smi:
    return Smi(facts["gpus"][0])
