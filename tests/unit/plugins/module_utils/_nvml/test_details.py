# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details by NVML, and of libraries that do not report them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect, details, library, reader
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.collect import Options
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.device import Device

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

ABSENT = "/nonexistent/file"
MIB = 1024 * 1024
OF_THE_BUS = "numa_node"


def gpus(path: str, *topics: str) -> list[dict[str, Any]]:
    facts = reader.read_gpus(library.Nvml(library.load_library(path)), topics or tuple(details.TOPICS))
    return [gpu.as_dict() for gpu in facts.gpus]


def test_read_topics_of_complete_gpu_returns_all_values(nvml_builder: NvmlBuilder) -> None:
    gpu = gpus(nvml_builder.library("h100-mig"))[1]
    assert {
        key: gpu[key]
        for keys in details.KEYS.values()
        for key in keys
        if key not in ("nvlinks", "serial", "processes", OF_THE_BUS)
    } == {
        "brand": "nvidia",
        "architecture": "hopper",
        "board_part_number": "900-00000-0000-000",
        "vbios_version": "96.00.74.00.01",
        "persistence_mode": "enabled",
        "compute_mode": "default",
        "virtualization_mode": "none",
        "vgpu_license": None,
        "bar1": {"total_bytes": 81559 * MIB, "used_bytes": MIB, "free_bytes": 81558 * MIB},
        "gpu_instances": [],
        "ecc": {
            "mode": "enabled",
            "mode_pending": "enabled",
            "corrected_volatile": 0,
            "corrected_aggregate": 0,
            "uncorrected_volatile": 0,
            "uncorrected_aggregate": 0,
        },
        "retired_pages": {"single_bit": None, "double_bit": None, "pending": False},
        "row_remapping": {"corrected": None, "uncorrected": None, "pending": None, "failed": None},
        "recovery_action": None,
        "power": {
            "limit_watts": 700.0,
            "limit_enforced_watts": 700.0,
            "limit_default_watts": 700.0,
            "limit_min_watts": None,
            "limit_max_watts": None,
        },
        "clocks": {
            "graphics_mhz": 1980,
            "graphics_max_mhz": 1980,
            "sm_mhz": 1980,
            "sm_max_mhz": 1980,
            "memory_mhz": 2619,
            "memory_max_mhz": 2619,
            "video_mhz": 1980,
            "video_max_mhz": 1980,
            "event_reasons": ["gpu_idle"],
        },
        "pcie": {"generation": 5, "generation_max": 5, "width": 16, "width_max": 16, "replays": 0},
        "memory_numa_node": 0,
        "cpu_affinity": "0-1",
        "fabric": {"state": "completed", "status": 0, "clique_id": 0, "cluster_uuid": None},
        "peers": [{"index": 0, "level": "NODE"}],
    }
    assert gpu["serial"]
    assert len(gpu["nvlinks"]) == 18
    assert gpu["nvlinks"][7] == {
        "link": 7,
        "active": True,
        "version": "4.0",
        "remote": "switch",
        "remote_pci_address": "0000:c5:00.0",
    }


def test_read_gpu_instances_without_compute_instance_lists_them(nvml_builder: NvmlBuilder) -> None:
    text = (nvml_builder.bare.parents[1] / "profiles" / "h100-mig.profile").read_text(encoding="utf-8")
    text = text.replace("3g.40gb, 2g.20gb, 1g.10gb, 1g.10gb", "3g.40gb, -2g.20gb, 1g.10gb, -1g.10gb")
    split, whole = gpus(nvml_builder.library_of("half-made", text), "hardware")
    assert [device["gpu_instance_id"] for device in split["mig_devices"]] == [2, 9]
    assert whole["gpu_instances"] == []
    assert [instance["id"] for instance in split["gpu_instances"]] == [2, 3, 9, 10]
    assert split["gpu_instances"][1] == {
        "id": 3,
        "profile_id": 14,
        "slices": 2,
        "memory_total_bytes": 20096 * MIB,
        "placement_start": 0,
        "placement_size": 2,
    }
    unknown = nvml_builder.older_library("no-instances", "h100-mig", ["nvmlDeviceGetGpuInstances"])
    assert [gpu["gpu_instances"] for gpu in gpus(unknown, "hardware")] == [None, []]


@pytest.mark.parametrize(
    ("keys", "mode", "expected"),
    [
        ("license = none", "none", None),
        (
            "license = obtained\nvirtualization = vgpu",
            "vgpu",
            {"product": "NVIDIA Virtual Compute Server", "licensed": True, "expires": "2026-11-28T10:16:57Z"},
        ),
        (
            "license = missing\nvirtualization = vgpu",
            "vgpu",
            {"product": "NVIDIA Virtual Compute Server", "licensed": False, "expires": None},
        ),
        (
            "license = obtained\nvirtualization = passthrough",
            "passthrough",
            {"product": "NVIDIA Virtual Compute Server", "licensed": True, "expires": "2026-11-28T10:16:57Z"},
        ),
    ],
)
def test_read_license_of_guest_driver(
    nvml_builder: NvmlBuilder, keys: str, mode: str, expected: dict[str, Any] | None
) -> None:
    text = (nvml_builder.bare.parents[1] / "profiles" / "t4.profile").read_text(encoding="utf-8")
    (gpu,) = gpus(nvml_builder.library_of("license", f"{text}{keys}\n"), "hardware")
    assert (gpu["virtualization_mode"], gpu["vgpu_license"]) == (mode, expected)


def test_read_license_of_older_driver_returns_none(nvml_builder: NvmlBuilder) -> None:
    path = nvml_builder.older_library("no-license", "t4", ["nvmlDeviceGetGridLicensableFeatures_v4"])
    assert gpus(path, "hardware")[0]["vgpu_license"] is None


def test_read_topics_of_simple_gpu_returns_none(nvml_builder: NvmlBuilder) -> None:
    (gpu,) = gpus(nvml_builder.library("t4"))
    assert (gpu["brand"], gpu["architecture"]) == ("nvidia", "turing")
    assert (gpu["nvlinks"], gpu["fabric"], gpu["peers"]) == ([], None, [])


def test_read_links_with_missing_link_continues(nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Device.read_numbers

    def without_two(self: Device, name: str, *arguments: Any, **options: Any) -> tuple[int | None, ...]:
        absent = name == "nvmlDeviceGetNvLinkState" and arguments[0].value == 2
        return (None,) if absent else numbers(self, name, *arguments, **options)

    monkeypatch.setattr(Device, "read_numbers", without_two)
    links = gpus(nvml_builder.library("h100-mig"), "topology")[1]["nvlinks"]
    assert [link["link"] for link in links] == [0, 1, *range(3, 18)]


@pytest.mark.parametrize(
    ("number", "capability", "version"),
    [
        (4, (8, 0), "3.0"),
        (5, (8, 0), "3.0"),  # as the kernel modules number it
        (5, (8, 6), "3.1"),
        (6, (9, 0), "4.0"),
        (7, (9, 0), "4.0"),
        (7, (10, 0), "5.0"),
        (8, (10, 0), "5.0"),
        (7, (None, None), "5.0"),
        (2, (9, 0), "2.0"),
        (0, (9, 0), None),
        (None, (9, 0), None),
    ],
)
def test_find_link_version_by_number_and_capability(
    number: int | None, capability: tuple[int | None, ...], version: str | None
) -> None:
    assert details.find_link_version(number, capability) == version


def test_gather_facts_returns_requested_topics_only(nvml_builder: NvmlBuilder) -> None:
    plain = set(gpus(nvml_builder.library("t4"), "pcie")[0]) - {"pcie"}
    assert not plain & {key for keys in details.KEYS.values() for key in keys}


@pytest.mark.parametrize("topic", details.TOPICS)
def test_keys_equal_those_of_the_readers(nvml_builder: NvmlBuilder, topic: str) -> None:
    gpu = gpus(nvml_builder.library("h100-mig"), topic)[0]
    assert set(details.KEYS[topic]) - {OF_THE_BUS} <= set(gpu)
    assert set(details.TOPICS) == set(details.KEYS)


def test_read_topics_of_old_library_returns_none(nvml_builder: NvmlBuilder) -> None:
    newer = [
        "nvmlDeviceGetNumaNodeId",
        "nvmlDeviceGetArchitecture",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetNvLinkRemoteDeviceType",
        "nvmlDeviceGetRemappedRows",
    ]
    gpu = gpus(nvml_builder.older_library("older", "h100-mig", newer))[1]
    assert (gpu["memory_numa_node"], gpu["architecture"]) == (None, None)
    assert gpu["clocks"]["event_reasons"] == ["gpu_idle"], "by its older name"
    assert gpu["fabric"]["state"] == "completed", "by its older name"
    assert gpu["nvlinks"][0]["remote"] is None


def test_read_topology_with_lost_gpu_leaves_it_out(nvml_builder: NvmlBuilder) -> None:
    facts = collect.gather_facts(Options(library=nvml_builder.library("lost-gpu"), subset=tuple(details.TOPICS)))
    assert [gpu.lost for gpu in facts.gpus] == [False, False, True, False]
    lost = facts.gpus[2].as_dict()
    assert all(lost[key] is None for keys in details.KEYS.values() for key in keys)
    assert [peer["index"] for peer in facts.gpus[0].as_dict()["peers"]] == [1, 3]


def test_read_health_with_retired_pages_counts_them(nvml_builder: NvmlBuilder) -> None:
    """For an empty buffer, the library returns the number and that the buffer is too small."""
    source = """
    int nvmlInit_v2(void) { return 0; }
    int nvmlShutdown(void) { return 0; }
    int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
    int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = device; return 0; }
    int nvmlDeviceGetRetiredPages(void *device, int cause, unsigned *count, unsigned long long *pages)
    { *count = cause == 0 ? 3 : 0; return pages == 0 && cause == 0 ? 7 : 0; }
    int nvmlDeviceGetRemappedRows(void *device, unsigned *c, unsigned *u, unsigned *pending, unsigned *failed)
    { *c = 4; *u = 1; *pending = 1; *failed = 0; return 0; }
    """
    (gpu,) = gpus(nvml_builder.library_from_c("pages", source), "health")
    assert gpu["retired_pages"] == {"single_bit": 3, "double_bit": 0, "pending": None}
    assert gpu["row_remapping"] == {"corrected": 4, "uncorrected": 1, "pending": True, "failed": False}


def test_read_processes_returns_each_kind(nvml_builder: NvmlBuilder) -> None:
    busy, idle = gpus(nvml_builder.library("mixed"), "processes")
    (process,) = busy["processes"]
    assert process["type"] == "compute"
    assert process["used_memory_bytes"] == 10240 * MIB
    assert (process["gpu_instance_id"], process["compute_instance_id"]) == (None, None), "the GPU is not partitioned"
    assert idle["processes"] == []


def test_read_processes_of_old_driver_uses_older_function(nvml_builder: NvmlBuilder) -> None:
    newer = [
        f"nvmlDeviceGet{kind}RunningProcesses_v{n}" for kind in ("Compute", "Graphics", "MPSCompute") for n in (2, 3)
    ]
    busy, _idle = gpus(nvml_builder.older_library("processes", "mixed", newer), "processes")
    assert [(each["used_memory_bytes"], each["gpu_instance_id"]) for each in busy["processes"]] == [(10240 * MIB, None)]


def test_read_processes_without_function_returns_none(nvml_builder: NvmlBuilder) -> None:
    source = """
    int nvmlInit_v2(void) { return 0; }
    int nvmlShutdown(void) { return 0; }
    int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
    int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = device; return 0; }
    """
    (gpu,) = gpus(nvml_builder.library_from_c("silent", source), "processes")
    assert gpu["processes"] is None


@pytest.mark.parametrize("profile", ["hang", "crash", "none", "no-driver"])
def test_gather_facts_of_poor_source_has_none_values(nvml_builder: NvmlBuilder, profile: str) -> None:
    options = Options(
        library=nvml_builder.library(profile),
        nvidia_smi=ABSENT,
        pci_path=nvml_builder.pci("t4"),
        timeout=0.5,
        subset=("power",),
    )
    for gpu in collect.gather_facts(options).gpus:
        assert gpu.as_dict()["power"] is None


def test_gather_facts_returns_plain_types(nvml_builder: NvmlBuilder) -> None:
    facts = collect.gather_facts(Options(library=nvml_builder.library("h100-mig"), subset=collect.SUBSETS))
    assert json.loads(json.dumps(facts.as_dict())) == facts.as_dict()


@pytest.mark.parametrize(
    ("requested", "expected"),
    [
        (["all"], collect.DEFAULT_SUBSETS),
        (["min"], ()),
        (["!all"], ()),
        (["!all", "pcie"], ("pcie",)),
        (["power", "pcie"], ("power", "pcie")),
        (["all", "!topology"], tuple(name for name in collect.DEFAULT_SUBSETS if name != "topology")),
        (["!topology"], tuple(name for name in collect.DEFAULT_SUBSETS if name != "topology")),
        (["min", "driver"], ("driver",)),
        ([], collect.DEFAULT_SUBSETS),
        (["all", "xid", "processes"], collect.SUBSETS),
        (["xid"], ("xid",)),
    ],
)
def test_parse_subset_of_each_kind(requested: list[str], expected: tuple[str, ...]) -> None:
    assert collect.parse_subset(requested) == expected


def test_parse_subset_with_unknown_name_raises() -> None:
    with pytest.raises(ValueError, match="bogus"):
        collect.parse_subset(["all", "!bogus"])


@pytest.mark.parametrize(("numbers", "text"), [([], ""), ([0], "0"), ([0, 1, 2], "0-2"), ([0, 2, 3, 70], "0,2-3,70")])
def test_format_ranges_joins_neighbours(numbers: list[int], text: str) -> None:
    assert details.format_ranges(numbers) == text
