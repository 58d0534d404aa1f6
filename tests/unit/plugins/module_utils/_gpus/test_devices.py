# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of AMD and Intel in fake trees, which the vendors' device plugins were seen to accept or refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes import gpu_sysfs
from fakes.gpu_sysfs import AmdGpu, IntelCard, amd_gpus, amd_tree, intel_cards, intel_tree

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus.devices import build_queries, build_tests, read
from ansible_collections.gpu.kubernetes.plugins.module_utils._vendors import OTHERS

GIB = 1 << 30
AMD, XE, I915 = "amd.com/gpu", "gpu.intel.com/xe", "gpu.intel.com/i915"


def write_case(root: Path, name: str) -> dict[str, Any]:
    gpu_sysfs.replace_tree(root, name)
    return read(str(root))


@pytest.mark.parametrize(
    ("case", "expected", "vendors"),
    [
        ("none", {}, ["nvidia"]),
        ("amd", {AMD: 2}, ["amd"]),
        ("amd-cpx", {AMD: 4}, ["amd"]),
        ("amd-invalid-partition", {AMD: 4}, ["amd"]),
        # AMD's plugin leaves out further partitions without a NUMA node.
        ("amd-numa-unknown", {AMD: 2}, ["amd"]),
        ("amd-no-driver", {}, ["amd"]),
        ("amd-no-gpu", {}, ["nvidia"]),
        ("intel-i915", {I915: 1}, ["intel"]),
        ("intel-xe", {XE: 1}, ["intel"]),
        ("intel", {I915: 1, XE: 1}, ["intel"]),
        # The GPU itself is left out.
        ("intel-sriov", {I915: 2}, ["intel"]),
        ("intel-foreign", {I915: 1}, ["intel"]),
        ("intel-no-driver", {}, ["intel"]),
        ("mixed", {AMD: 2, I915: 1}, ["amd", "intel"]),
    ],
)
def test_expected_of_a_tree_is_what_the_plugins_offer(
    tmp_path: Path, case: str, expected: dict[str, int], vendors: list[str]
) -> None:
    facts = write_case(tmp_path, case)
    assert (facts["expected"], facts["vendors"], facts["error"]) == (expected, vendors, "")


@pytest.mark.parametrize(
    ("case", "vendor", "words"),
    [
        ("amd", "amd", ""),
        ("amd-numa-unknown", "amd", ""),
        ("amd-no-driver", "amd", "amdgpu is not loaded"),
        ("amd-no-module", "amd", "amdgpu is not loaded"),
        ("amd-no-kfd", "amd", "/sys/class/kfd is missing"),
        ("amd-numa-missing", "amd", "numa_node of GPU 0000:63:00.0 and GPU 0000:83:00.0 cannot be read"),
        ("amd-heterogeneous", "amd", "(cpx_nps4 and spx_nps1)"),
        ("intel", "intel", ""),
        ("intel-sriov", "intel", ""),
        ("intel-no-driver", "intel", "GPU 0000:03:00.0 has no driver, because i915 or xe is not loaded"),
        ("mixed", "intel", ""),
    ],
)
def test_problems_of_a_tree_name_the_cause(tmp_path: Path, case: str, vendor: str, words: str) -> None:
    problems = write_case(tmp_path, case)["problems"]
    assert set(problems) == {row.name for row in OTHERS}
    if words:
        assert words in problems[vendor][0]
        assert "; " in problems[vendor][0] or ", " in problems[vendor][0]
    else:
        assert problems == {"amd": [], "intel": []}


def test_a_driver_without_a_gpu_is_a_problem_of_that_gpu(tmp_path: Path) -> None:
    amd_tree(tmp_path, amd_gpus(2))
    (tmp_path / "sys/bus/pci/drivers/amdgpu/0000:63:00.0").unlink()
    (tmp_path / "sys/devices/pci0000:00/0000:63:00.0/driver").unlink()
    facts = read(str(tmp_path))
    assert facts["expected"] == {AMD: 1}
    assert facts["problems"]["amd"] == [
        "GPU 0000:63:00.0 has no driver although amdgpu is loaded; search the kernel log for its address"
    ]


def test_amd_gpu_has_the_facts_of_the_driver_and_of_kfd(tmp_path: Path) -> None:
    amd_tree(tmp_path, amd_gpus(1, style="SPX/NPS1"), version="6.14.14")
    facts = read(str(tmp_path))
    assert facts["devices"] == [
        {
            "vendor": "amd",
            "pci_address": "0000:63:00.0",
            "device_id": "74a1",
            "model": "AMD Instinct MI300X OAM",
            "memory_bytes": 192 * GIB,
            "numa_node": 0,
            "driver": "amdgpu",
            "card": "card0",
            "render": "renderD128",
            "resource": AMD,
            "partitions": 1,
            "partition_style": "spx_nps1",
            "integrated": False,
            "gfx": "gfx942",
            "compute_units": 304,
            "simd_count": 1216,
            "family": "AI",
        }
    ]
    assert facts["drivers"]["amdgpu"] == {"loaded": True, "version": "6.14.14", "kfd": True}
    assert facts["drivers"]["xe"] == {"loaded": False, "version": ""}


def test_partitioned_gpu_has_the_units_and_the_memory_of_all_its_partitions(tmp_path: Path) -> None:
    amd_tree(tmp_path, 1, "CPX/NPS4")
    (tmp_path / "sys/devices/pci0000:00/0000:63:00.0/mem_info_vram_total").unlink()
    device = read(str(tmp_path))["devices"][0]
    assert (device["partitions"], device["compute_units"], device["memory_bytes"]) == (2, 304, 192 * GIB)


def test_gfx_with_a_letter_and_the_name_of_the_table(tmp_path: Path) -> None:
    amd_tree(tmp_path, amd_gpus(1, device="740f"))
    (tmp_path / "sys/devices/pci0000:00/0000:63:00.0/product_name").unlink()
    device = read(str(tmp_path))["devices"][0]
    assert (device["gfx"], device["model"]) == ("gfx90a", "AMD Instinct MI210")


@pytest.mark.parametrize(("driver", "pieces"), [("i915", 1), ("xe", 1)])
def test_intel_gpu_has_its_memory_and_the_resource_of_its_driver(tmp_path: Path, driver: str, pieces: int) -> None:
    intel_tree(tmp_path, intel_cards(driver, device="56c0", memory=16 * GIB))
    device = read(str(tmp_path))["devices"][0]
    assert device["memory_bytes"] == 16 * GIB
    assert device["resource"] == f"gpu.intel.com/{driver}"
    assert device["model"] == "Intel Data Center GPU Flex 170"
    assert (device["partitions"], device["sriov_vfs"], device["numa_node"]) == (pieces, 0, -1)


@pytest.mark.parametrize(
    ("gpus", "naming", "expected"),
    [
        (amd_gpus(2, style="CPX/NPS4", partitions=2), "mixed", {"amd.com/cpx_nps4": 4}),
        (
            [AmdGpu("0000:63:00.0", style="CPX/NPS4", partitions=2), AmdGpu("0000:83:00.0", style="SPX/NPS1")],
            "mixed",
            {"amd.com/cpx_nps4": 2, "amd.com/spx_nps1": 1},
        ),
        (amd_gpus(2), "mixed", {AMD: 2}),
    ],
)
def test_mixed_naming_counts_by_style(
    tmp_path: Path, gpus: list[AmdGpu], naming: str, expected: dict[str, int]
) -> None:
    amd_tree(tmp_path, gpus)
    facts = read(str(tmp_path), naming=naming)
    assert (facts["expected"], facts["error"]) == (expected, "")


def test_shares_multiply_gpus_of_intel_alone(tmp_path: Path) -> None:
    gpu_sysfs.replace_tree(tmp_path, "mixed")
    assert read(str(tmp_path), shared_dev_num=3)["expected"] == {AMD: 2, I915: 3}


def add_pci(root: Path, address: str, vendor: str, device_class: str = "0x030000", driver: str = "") -> None:
    folder = root / "sys/bus/pci/devices" / address
    folder.mkdir(parents=True)
    (folder / "vendor").write_text(vendor)
    (folder / "class").write_text(device_class)
    if driver:
        (folder / "driver").symlink_to(f"../../drivers/{driver}")


@pytest.mark.parametrize(
    ("others", "vendors"),
    [
        # As on a host whose only card is gone.
        ([], ["nvidia"]),
        ([("0000:41:00.0", "0x10de", "0x030200", "nvidia")], ["nvidia"]),
        ([("0000:41:00.0", "0x1002", "0x120000", "")], ["amd"]),
        (
            [("0000:41:00.0", "0x10de", "0x030200", "nvidia"), ("0000:43:00.0", "0x1002", "0x120000", "amdgpu")],
            ["amd", "nvidia"],
        ),
        # The GPU of a virtual machine.
        ([("0000:41:00.0", "0x1002", "0x120000", "vfio-pci")], ["nvidia"]),
        # The display of a board, whose module is not loaded.
        ([("0000:41:00.0", "0x10de", "0x030200", "nvidia"), ("0000:0d:00.0", "0x1002", "0x030000", "")], ["nvidia"]),
    ],
)
def test_gpu_in_the_processor_and_a_display_without_a_driver_do_not_count(
    tmp_path: Path, others: list[tuple[str, str, str, str]], vendors: list[str]
) -> None:
    add_pci(tmp_path, "0000:00:02.0", "0x8086")
    for other in others:
        add_pci(tmp_path, *other)
    assert read(str(tmp_path))["vendors"] == vendors


def test_render_group_is_that_of_the_device_node_or_of_the_name(tmp_path: Path) -> None:
    assert read(str(tmp_path))["render_gid"] is None
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/group").write_text("video:x:44:\nrender:x:993:user\n")
    assert read(str(tmp_path))["render_gid"] == 993
    intel_tree(tmp_path, intel_cards("xe"))
    assert read(str(tmp_path))["render_gid"] == (tmp_path / "dev/dri/renderD128").stat().st_gid


def test_plugins_of_a_mixed_host_have_pods_expected_units_and_a_test(tmp_path: Path) -> None:
    gpu_sysfs.replace_tree(tmp_path, "mixed")
    facts = read(str(tmp_path))
    rows = {
        query["plugin"]["resource_name"]: (query["plugin"]["pods"]["metadata"], query["expected"])
        for query in build_queries(facts, "gpu")
    }
    assert rows == {
        AMD: ({"namespace": "gpu", "labels": {"name": "amdgpu-dp-ds"}}, {AMD: 2}),
        I915: ({"namespace": "gpu", "labels": {"app": "intel-gpu-plugin"}}, {I915: 1}),
    }
    first, second = build_tests({**facts, "render_gid": 993}, {"intel": "example.com/clinfo:1"}, "mirror.example.com")
    assert first["image"].startswith("mirror.example.com/rocm/")
    assert (first["resource_name"], first["command"], first["groups"]) == (AMD, ["rocminfo"], [993])
    assert (second["image"], second["resource_name"]) == ("example.com/clinfo:1", I915)
    assert build_tests({}, {}, "") == build_queries({}, "") == []
    assert build_tests({**facts, "render_gid": None}, {}, "")[0]["groups"] == []


def test_gpu_in_the_processor_is_not_the_one_that_is_tested(tmp_path: Path) -> None:
    intel_tree(tmp_path, [IntelCard("0000:00:02.0", "i915"), IntelCard("0000:03:00.0", "xe", "e20b")])
    facts = read(str(tmp_path))
    assert facts["expected"] == {I915: 1, XE: 1}
    assert [test["resource_name"] for test in build_tests(facts, {}, "")] == [XE]


@pytest.mark.parametrize(
    ("declared", "vendors", "served"),
    [(["nvidia", "intel"], ["intel", "nvidia"], True), (["amd"], ["amd"], False), ([], ["nvidia"], True)],
)
def test_declared_vendors_replace_those_that_were_found(
    tmp_path: Path, declared: list[str], vendors: list[str], served: bool
) -> None:
    gpu_sysfs.replace_tree(tmp_path, "mixed")
    facts = read(str(tmp_path), vendors=declared)
    assert (facts["vendors"], facts["served"]) == (vendors, served)
    assert [plugin["vendor"] for plugin in facts["plugins"]] == [name for name in vendors if name != "nvidia"]


def test_plugin_of_a_host_without_the_driver_is_expected_to_offer_nothing(tmp_path: Path) -> None:
    gpu_sysfs.replace_tree(tmp_path, "amd-no-driver")
    assert build_queries(read(str(tmp_path)), "gpu")[0]["expected"] == {AMD: 0}
