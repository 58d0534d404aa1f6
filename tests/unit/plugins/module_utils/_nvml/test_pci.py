# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI bus: GPUs among other devices, and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import pci
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.model import Gpu

if TYPE_CHECKING:
    from pathlib import Path

    from fakes.nvml.simulated import NvmlBuilder


@pytest.mark.parametrize(
    ("profile", "names"),
    [
        ("t4", ["Tesla T4"]),
        ("a100-40g", ["NVIDIA A100-SXM4-40GB"] * 8),
        ("h100-mig", ["NVIDIA H100 80GB HBM3"] * 2),
        ("h200", ["NVIDIA H200"] * 8),
        ("mixed", ["NVIDIA A100-PCIE-40GB", "Tesla T4"]),
        ("none", []),
    ],
)
def test_read_gpus_returns_names_of_nvml(nvml_builder: NvmlBuilder, profile: str, names: list[str]) -> None:
    assert [gpu.name for gpu in pci.read_gpus(nvml_builder.pci(profile))] == names


def test_read_numa_node_of_each_device(nvml_builder: NvmlBuilder, tmp_path: Path) -> None:
    addresses = [str(gpu.pci_address) for gpu in pci.read_gpus(nvml_builder.pci("a100-40g"))]
    assert [pci.read_numa_node(nvml_builder.pci("a100-40g"), address) for address in addresses] == [0] * 4 + [1] * 4
    for text in ("-1\n", "", "x\n"):
        (tmp_path / "0000:41:00.0").mkdir(exist_ok=True)
        (tmp_path / "0000:41:00.0" / "numa_node").write_text(text)
        assert pci.read_numa_node(str(tmp_path), "0000:41:00.0") is None
    assert pci.read_numa_node(str(tmp_path), "0000:42:00.0") is None


def device(folder: Path, address: str, vendor: str, kind: str, model: str = "0x20b0") -> None:
    target = folder / address
    target.mkdir()
    for name, value in (("vendor", vendor), ("class", kind), ("device", model)):
        (target / name).write_text(f"{value}\n", encoding="ascii")


def test_read_gpus_ignores_other_devices(tmp_path: Path) -> None:
    device(tmp_path, "10000:01:00.0", "0x10de", "0x030200", "0x20b0")
    device(tmp_path, "0000:41:00.0", "0x10DE", "0x030000", "0xffff")
    device(tmp_path, "0000:41:00.1", "0x10de", "0x040300")  # its audio function
    device(tmp_path, "0000:c4:00.0", "0x10de", "0x068000", "0x1af1")  # an NVSwitch
    device(tmp_path, "0000:01:00.0", "0x1002", "0x030000")  # another vendor's GPU
    (tmp_path / "0000:05:00.0").mkdir()  # a device that is removed
    device(tmp_path, "0000:41:00.4", "0x10de", "0x030200")  # a virtual function
    (tmp_path / "0000:41:00.4" / "physfn").symlink_to("../0000:41:00.0")
    assert pci.read_gpus(str(tmp_path)) == (
        Gpu(pci_address="0000:41:00.0", pci_device_id="ffff"),
        Gpu(pci_address="10000:01:00.0", pci_device_id="20b0", name="NVIDIA A100-SXM4-40GB"),
    )
    assert pci.count_switches(str(tmp_path)) == 1


def test_count_switches_by_device_id(tmp_path: Path) -> None:
    device(tmp_path, "0000:c4:00.0", "0x10de", "0x068000", "0x1AF1")
    device(tmp_path, "0000:c5:00.0", "0x10de", "0x068000", "0x22a3")
    device(tmp_path, "0000:c6:00.0", "0x10de", "0x068000", "0x1234")  # another bridge
    device(tmp_path, "0000:c7:00.0", "0x10de", "0x068000", "many")
    device(tmp_path, "0000:c8:00.0", "0x10de", "0x060400", "0x22a3")  # another class
    device(tmp_path, "0000:c9:00.0", "0x15b3", "0x068000", "0x22a3")  # another vendor
    (tmp_path / "0000:c6:00.0" / "device").unlink()
    assert pci.count_switches(str(tmp_path)) == 2
    assert pci.count_switches(str(tmp_path / "absent")) == 0


def test_read_gpus_without_bus_is_empty(tmp_path: Path) -> None:
    assert pci.read_gpus(str(tmp_path / "absent")) == ()


IDS = """\
# a comment
1002  Advanced Micro Devices, Inc. [AMD/ATI]
\t1434  Other
\t740f  Aldebaran/MI200 [Instinct MI210]
\t\t1002 0c34  a board
10de  NVIDIA Corporation
\t56c0  Nobody
8086  Intel Corporation
\t56c0  ATS-M [Data Center GPU Flex 170]

C 03  Display controller
\t740f  A class
"""


def test_read_other_gpus_of_each_vendor(tmp_path: Path) -> None:
    ids = tmp_path / "pci.ids"
    ids.write_text(IDS)
    root = tmp_path / "devices"
    root.mkdir()
    device(root, "10000:01:00.0", "0x8086", "0x038000", "0x56c0")
    device(root, "0000:c1:00.0", "0x1002", "0x038000", "0x740F")
    (root / "0000:c1:00.0" / "mem_info_vram_total").write_text("68702699520\n", encoding="ascii")
    device(root, "0000:c2:00.0", "0x1002", "0x120000", "0x740f")
    (root / "0000:c2:00.0" / "product_name").write_text("AMD Instinct MI210\n", encoding="ascii")
    device(root, "0000:00:02.0", "0x8086", "0x030000", "0xffff")
    (root / "0000:00:02.0" / "mem_info_vram_total").write_text("many\n", encoding="ascii")
    device(root, "0000:3b:00.0", "0x10de", "0x030200", "0x1eb8")
    device(root, "0000:00:1f.0", "0x8086", "0x060100", "0x56c0")
    device(root, "0000:00:0b.0", "0x8086", "0x120000", "0x7d1d")  # an NPU
    assert [tuple(gpu.values()) for gpu in pci.read_other_gpus(str(root), ["/nonexistent", str(ids)])] == [
        ("intel", None, "0000:00:02.0", None),
        ("amd", "Aldebaran/MI200 [Instinct MI210]", "0000:c1:00.0", 68702699520),
        ("amd", "AMD Instinct MI210", "0000:c2:00.0", None),
        ("intel", "ATS-M [Data Center GPU Flex 170]", "10000:01:00.0", None),
    ]
    assert [gpu.pci_address for gpu in pci.read_gpus(str(root))] == ["0000:3b:00.0"]
    assert pci.read_other_gpus(str(root), [])[1]["name"] is None
    assert pci.read_other_gpus("/nonexistent") == []


#: What a kernel driver shows of a GPU's memory, and how much that is.
MEMORY: dict[str, tuple[dict[str, str], int | None]] = {
    "xe": ({f"tile{tile}/physical_vram_size_bytes": "64424509440" for tile in (0, 1)}, 2 * 64424509440),
    "i915-of-intel": ({"drm/card1/lmem_total_bytes": "17179869184"}, 17179869184),
    "i915-of-linux": ({"drm/card1/dev": "226:1"}, None),
    "half-a-tile": ({"tile0/physical_vram_size_bytes": "64424509440", "tile1/physical_vram_size_bytes": ""}, None),
}


@pytest.mark.parametrize("name", MEMORY)
def test_read_other_gpus_memory_of_intel(tmp_path: Path, name: str) -> None:
    shown, memory = MEMORY[name]
    device(tmp_path, "0000:4d:00.0", "0x8086", "0x038000", "0x0bd5")
    for path, text in shown.items():
        file = tmp_path / "0000:4d:00.0" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n", encoding="ascii")
    assert [gpu["memory_total_bytes"] for gpu in pci.read_other_gpus(str(tmp_path))] == [memory]
