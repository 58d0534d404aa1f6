# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests/gpu/check.sh calls the same and different, of a GPU that is simulated and a log that is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
from gpu import compare

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect

if TYPE_CHECKING:
    from fakes.nvml.simulated import Workshop

TOLD = {
    "product_name": "Tesla T4",
    "product_brand": "NVIDIA",
    "persistence_mode": "Enabled",
    "compute_mode": "Default",
    "serial": "N/A",
    "mig_mode/current_mig": "N/A",
    "fb_memory_usage/total": "15360 MiB",
    "gpu_power_readings/requested_power_limit": "70.00 W",
    "temperature/gpu_temp": "38 C",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "16x",
    "ecc_mode/current_ecc": "Enabled",
}


@pytest.fixture
def facts(workshop: Workshop) -> Any:
    options = collect.Options(library=workshop.library("t4"), subset=collect.SUBSETS)
    return collect.gather(options).as_dict()


def log(driver: str = "570.124.06", **other: str) -> ElementTree.Element:
    root = ElementTree.Element("nvidia_smi_log")
    ElementTree.SubElement(root, "driver_version").text = driver
    gpu = ElementTree.SubElement(root, "gpu", id="00000000:00:1E.0")
    for place, text in {**TOLD, **other}.items():
        here = gpu
        for name in place.split("/"):
            found = here.find(name)
            here = ElementTree.SubElement(here, name) if found is None else found
        here.text = text
    return root


def test_the_same(facts: Any) -> None:
    different, same, unknown = compare.compare(facts, log())
    assert different == []
    assert same == len(TOLD) - 2, "what is N/A there is no match"
    assert same + unknown == len(compare.FIELDS)


def test_every_difference_is_named(facts: Any) -> None:
    other = {"product_name": "Tesla T5", "fb_memory_usage/total": "15361 MiB", "ecc_mode/current_ecc": "Disabled"}
    different, _same, _unknown = compare.compare(facts, log("1.2", **other))
    assert [line.split(":")[0] for line in different] == [
        "driver_version",
        "GPU 0 name",
        "GPU 0 memory_total_bytes",
        "GPU 0 ecc.mode",
    ]


def test_what_nvidia_smi_alone_knows_is_a_difference(facts: Any) -> None:
    different, _same, _unknown = compare.compare(facts, log(**{"remapped_rows/remapped_row_pending": "No"}))
    assert different == ["GPU 0 row_remapping.pending: nothing here, False there"]


def test_a_gpu_that_one_side_does_not_know(facts: Any) -> None:
    different, same, _unknown = compare.compare({**facts, "gpus": []}, log())
    assert different == ["GPU 0000:00:1e.0 is known to one side alone"]
    assert same == 0


def test_every_fact_that_is_compared_exists(facts: Any) -> None:
    gpu = facts["gpus"][0]
    for field in compare.FIELDS:
        first, *rest = field.fact.split(".")
        assert first in gpu, field
        assert not rest or gpu[first] is None or rest[0] in gpu[first], field
