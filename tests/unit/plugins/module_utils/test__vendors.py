# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of GPU vendors, and that no other code names those that are not served."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._vendors import OTHERS, SERVED

ROOT = Path(__file__).resolve().parents[4]
VENDORS = (SERVED, *OTHERS)


@pytest.mark.parametrize(
    ("image", "vendor"),
    [
        ("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "nvidia"),
        ("rocm/k8s-device-plugin:1.31.0", "amd"),
        ("docker.io/amd/gpu-device-plugin:2", "amd"),
        ("intel/intel-gpu-plugin:0.34.0", "intel"),
        ("registry.example.com/exporter:1", ""),
    ],
)
def test_plugin_images_of_each_vendor_match(image: str, vendor: str) -> None:
    # A name of another vendor goes first: AMD's plugin has a part of NVIDIA's name.
    found = [row.name for row in (*OTHERS, SERVED) if re.search(row.plugin_images, image, re.IGNORECASE)]
    assert (found or [""])[0] == vendor


def test_pci_vendors_are_unique_and_have_classes() -> None:
    assert len({row.pci_vendor for row in VENDORS}) == len(VENDORS)
    for row in VENDORS:
        assert re.fullmatch("0x[0-9a-f]{4}", row.pci_vendor)
        assert row.pci_classes


def test_no_other_code_names_another_vendor() -> None:
    names = re.compile(r"\b(amd|amdgpu|rocm|intel)\b", re.IGNORECASE)
    utils = ROOT / "plugins" / "module_utils"
    paths = [*utils.rglob("*.py"), *(ROOT / "roles").rglob("*.yml"), *(ROOT / "playbooks").rglob("*.yml")]
    found = {path.relative_to(ROOT).as_posix() for path in paths if names.search(path.read_text(encoding="utf-8"))}
    # The linter reads what users write for any vendor, and _gpus what each vendor's driver shows.
    found = {
        name for name in found if not name.startswith(("plugins/module_utils/_lint/", "plugins/module_utils/_gpus/"))
    }
    # The pods of the vendors' exporters, a row each.
    found -= {"roles/gpu_exporter/vars/main/daemon_set.yml", "roles/gpu_exporter/meta/argument_specs.yml"}
    # Kernel drivers' files with the memory of a GPU, the vendors' exporters and the series of these, a row each.
    rows = ("_vendors", "_nvml/pci", "_exporters/catalogue", "_monitoring/series")
    assert found == {f"plugins/module_utils/{name}.py" for name in rows}
