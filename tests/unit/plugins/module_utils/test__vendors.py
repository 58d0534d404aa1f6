# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of GPU vendors, and that no other code names those that are not served."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._vendors import OTHERS, SERVED, vendor_of

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


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("nvidia.com/gpu", "nvidia"),
        ("aliyun.com/gpu-mem", "nvidia"),
        ("amd.com/gpu", "amd"),
        ("amd.com/cpx_nps4", "amd"),
        ("gpu.intel.com/xe", "intel"),
        ("intel.com/gpu", "nvidia"),
    ],
)
def test_vendor_of_a_resource_is_that_of_its_domain(resource: str, name: str) -> None:
    assert vendor_of(resource).name == name


def test_other_vendors_have_all_that_their_device_plugins_need() -> None:
    for row in OTHERS:
        assert row.resource.startswith(f"{row.domain}/")
        # Labels of the PCI class do not match all GPUs of a vendor.
        assert row.present_label == f"gpu-kubernetes/{row.name}.present"
        assert row.test
        assert (ROOT / "roles" / row.driver_role / "tasks" / "preflight.yml").is_file()
        assert row.plugin_labels
        assert all(row.operator_resource)
        assert re.search(row.gpu_plugin_images, row.plugin_images, re.IGNORECASE) or row.name == "intel"


def test_no_other_code_names_another_vendor() -> None:
    names = re.compile(r"\b(amd|amdgpu|rocm|intel)\b", re.IGNORECASE)
    utils = ROOT / "plugins" / "module_utils"
    paths = [*utils.rglob("*.py"), *(ROOT / "roles").rglob("*.yml"), *(ROOT / "playbooks").rglob("*.yml")]
    found = {path.relative_to(ROOT).as_posix() for path in paths if names.search(path.read_text(encoding="utf-8"))}
    # The linter reads what users write for any vendor; GPUs, device plugins, drivers and labels of the vendors are there.
    owners = (
        *("plugins/module_utils/_lint/", "plugins/module_utils/_gpus/", "plugins/module_utils/_kubernetes/labels/"),
        *("roles/k8s_device_plugin/", "roles/amdgpu_driver/", "roles/intel_gpu_driver/"),
        *("roles/gpu_node_labels/", "roles/gpu_feature_discovery/", "roles/gpu_exporter/vars/main/daemon_set.yml"),
        # The fingerprint of a vendor's key, by the name of its file.
        "roles/_platform/platforms/common.yml",
    )
    found = {name for name in found if not name.startswith(owners) and not name.endswith("/argument_specs.yml")}
    # Kernel drivers' files with the memory of a GPU, the vendors' exporters and the series of these, a row each.
    rows = (
        "_vendors",
        "_nvml/pci",
        "_exporters/catalogue",
        "_exporters/xpumd",
        "_monitoring/series",
        "_checks/vendors",
    )
    assert found == {f"plugins/module_utils/{name}.py" for name in rows}


def test_no_playbook_names_a_vendor_in_an_expression() -> None:
    names = re.compile("['\"](" + "|".join(row.name for row in VENDORS) + ")['\"]")
    assert names.search("when: \"'nvidia' in vendors\"")
    playbooks = (ROOT / "playbooks").rglob("*.yml")
    assert [path.name for path in playbooks if names.search(path.read_text(encoding="utf-8"))] == []
