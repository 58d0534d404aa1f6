# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reader with compiled libraries: every profile, old and new drivers, lost GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import library, reader

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

    from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.model import Facts

MIB = 1024 * 1024
A100_ADDRESSES = [f"0000:{bus}:00.0" for bus in ("07", "0f", "47", "4e", "87", "90", "b7", "bd")]
HGX_ADDRESSES = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]


def read(path: str) -> Facts:
    return reader.read_gpus(library.Nvml(library.load_library(path)))


@pytest.mark.parametrize(
    ("profile", "name", "addresses", "total_mib", "capability", "mig_mode"),
    [
        ("t4", "Tesla T4", ["0000:00:1e.0"], 15360, "7.5", None),
        ("a100-40g", "NVIDIA A100-SXM4-40GB", A100_ADDRESSES, 40960, "8.0", "disabled"),
        ("h200", "NVIDIA H200", HGX_ADDRESSES, 143771, "9.0", "disabled"),
    ],
)
def test_read_gpus_of_uniform_nodes(
    nvml_builder: NvmlBuilder,
    profile: str,
    name: str,
    addresses: list[str],
    total_mib: int,
    capability: str,
    mig_mode: str,
) -> None:
    facts = read(nvml_builder.library(profile))
    assert (facts.source, facts.error) == ("nvml", None)
    assert (facts.driver_version, facts.cuda_driver_version, facts.nvml_version) == (
        "570.124.06",
        "12.8",
        "12.570.124.06",
    )
    assert [gpu.pci_address for gpu in facts.gpus] == addresses
    assert [gpu.index for gpu in facts.gpus] == list(range(len(addresses)))
    assert [gpu.minor_number for gpu in facts.gpus] == list(range(len(addresses)))
    assert len({gpu.uuid for gpu in facts.gpus}) == len(addresses)
    for gpu in facts.gpus:
        assert (gpu.name, gpu.memory_total_bytes, gpu.compute_capability) == (name, total_mib * MIB, capability)
        assert (gpu.mig_mode, gpu.mig_devices, gpu.lost) == (mig_mode, (), False)


def test_read_gpus_of_busy_gpu_returns_all_values(nvml_builder: NvmlBuilder) -> None:
    gpu = read(nvml_builder.library("mixed", seed="node-1")).gpus[0]
    assert gpu.uuid is not None
    assert gpu.uuid.startswith("GPU-")
    expected: dict[str, Any] = {
        "index": 0,
        "uuid": gpu.uuid,
        "name": "NVIDIA A100-PCIE-40GB",
        "pci_address": "0000:3b:00.0",
        "pci_device_id": "20f1",
        "pci_class": None,
        "minor_number": 1,
        "memory_total_bytes": 40960 * MIB,
        "memory_used_bytes": 10240 * MIB,
        "memory_free_bytes": (40960 - 10240 - 578) * MIB,
        "mig_mode": "disabled",
        "mig_mode_pending": "disabled",
        "mig_devices": [],
        "compute_capability": "8.0",
        "temperature_celsius": 31,
        "power_draw_watts": 54.21,
        "utilization_gpu_percent": 47,
        "utilization_memory_percent": 21,
        "lost": False,
    }
    assert gpu.as_dict() == expected


def test_read_gpus_of_mixed_node_distinguishes_index_and_minor_number(nvml_builder: NvmlBuilder) -> None:
    facts = read(nvml_builder.library("mixed"))
    assert [(gpu.index, gpu.minor_number, gpu.name) for gpu in facts.gpus] == [
        (0, 1, "NVIDIA A100-PCIE-40GB"),
        (1, 0, "Tesla T4"),
    ]


def test_read_gpus_with_mig_returns_partitions(nvml_builder: NvmlBuilder) -> None:
    split, whole = read(nvml_builder.library("h100-mig")).gpus
    assert (split.mig_mode, whole.mig_mode, whole.mig_devices) == ("enabled", "disabled", ())
    assert [(part.index, part.gpu_instance_id, part.compute_instance_id) for part in split.mig_devices] == [
        (0, 2, 0),
        (1, 3, 0),
        (2, 9, 0),
        (3, 10, 0),
    ]
    assert [part.name for part in split.mig_devices] == [
        f"NVIDIA H100 80GB HBM3 MIG {profile}" for profile in ("3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb")
    ]
    assert [part.memory_total_bytes for part in split.mig_devices] == [n * MIB for n in (40448, 20096, 9984, 9984)]
    assert len({part.uuid for part in split.mig_devices}) == 4
    assert split.utilization_gpu_percent is None
    assert whole.utilization_gpu_percent == 0


def test_read_gpus_of_driver_without_gpus_is_empty(nvml_builder: NvmlBuilder) -> None:
    facts = read(nvml_builder.library("none"))
    assert (facts.source, facts.gpus, facts.driver_version) == ("nvml", (), "570.124.06")


def test_read_gpus_with_lost_gpu_returns_its_address(nvml_builder: NvmlBuilder) -> None:
    facts = read(nvml_builder.library("lost-gpu"))
    assert [gpu.lost for gpu in facts.gpus] == [False, False, True, False]
    lost = facts.gpus[2]
    assert (lost.index, lost.pci_address, lost.minor_number) == (2, "0000:47:00.0", 2)
    assert (lost.uuid, lost.name, lost.memory_total_bytes, lost.temperature_celsius) == (None, None, None, None)
    assert all(gpu.memory_total_bytes == 40960 * MIB for gpu in facts.gpus if not gpu.lost)


@pytest.mark.parametrize(
    ("profile", "code", "text"),
    [
        ("version-mismatch", library.VERSION_MISMATCH, "Driver/library version mismatch"),
        ("no-driver", library.DRIVER_NOT_LOADED, "Driver Not Loaded"),
    ],
)
def test_read_gpus_without_start_raises_nvml_error(
    nvml_builder: NvmlBuilder, profile: str, code: int, text: str
) -> None:
    with pytest.raises(library.NvmlError, match=text) as caught:
        read(nvml_builder.library(profile))
    assert (caught.value.code, caught.value.library_version) == (code, "12.570.124.06")


@pytest.mark.parametrize(
    ("code", "text", "lost"), [(4, "Insufficient Permissions", False), (999, "Unknown Error", True)]
)
def test_read_gpus_with_unopened_gpu_counts_and_names_it(
    nvml_builder: NvmlBuilder, code: int, text: str, lost: bool
) -> None:
    source = f"""
    int nvmlInit_v2(void) {{ return 0; }}
    int nvmlDeviceGetCount_v2(unsigned *count) {{ *count = 2; return 0; }}
    int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {{ *handle = handle; return index ? {code} : 0; }}
    const char *nvmlErrorString(int code) {{ return code == {code} ? "{text}" : "?"; }}
    """
    facts = read(nvml_builder.library_from_c(f"unopened-{code}", source))
    assert [(gpu.index, gpu.lost, gpu.name) for gpu in facts.gpus] == [(0, False, None), (1, lost, None)]
    assert facts.error == f"GPU 1 cannot be opened ({text}, code {code}); look for the cause in the kernel log."


def test_read_gpus_of_oldest_driver_uses_older_functions(nvml_builder: NvmlBuilder) -> None:
    newer = ["nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetPciInfo_v2"]
    newer += ["nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMigMode"]
    newer += ["nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"]
    facts = read(nvml_builder.older_library("first-days", "mixed", newer))
    assert facts.cuda_driver_version is None
    gpu = facts.gpus[0]
    assert (gpu.pci_address, gpu.mig_mode, gpu.name) == ("0000:3b:00.0", None, "NVIDIA A100-PCIE-40GB")
    # The older structure counts what the driver reserves as used.
    assert gpu.memory_used_bytes == (10240 + 578) * MIB
    assert gpu.memory_free_bytes == (40960 - 10240 - 578) * MIB


def test_read_gpus_of_future_driver_uses_newer_functions(nvml_builder: NvmlBuilder) -> None:
    deprecated = [
        "nvmlSystemGetCudaDriverVersion",
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetMemoryInfo",
        "nvmlInit",
        "nvmlDeviceGetPciInfo",
    ]
    facts = read(nvml_builder.older_library("to-come", "t4", deprecated))
    assert facts.cuda_driver_version == "12.8"
    gpu = facts.gpus[0]
    assert (gpu.temperature_celsius, gpu.memory_total_bytes) == (36, 15360 * MIB)


def test_load_library_of_other_file_raises(nvml_builder: NvmlBuilder) -> None:
    with pytest.raises(library.LibraryMissing, match=r"absent\.so cannot be loaded$"):
        library.load_library(str(nvml_builder.folder / "absent.so"))
    broken = nvml_builder.folder / "broken.so"
    broken.write_bytes(b"not an ELF file")
    with pytest.raises(library.LibraryMissing, match=r"broken\.so cannot be loaded \(.*\)"):
        library.load_library(str(broken))
    with pytest.raises(library.NvmlError, match="NVML error 13"):
        read(nvml_builder.library_from_c("empty", "int unrelated = 1;"))


def test_load_library_searches_folders_in_order(nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "SONAME", "libnvidia-ml-of-this-test.so.1")
    folder = nvml_builder.folder / "search"
    folder.mkdir()
    (folder / "libnvidia-ml-of-this-test.so.1").symlink_to(nvml_builder.library("t4", seed="search"))
    facts = reader.read_gpus(library.Nvml(library.load_library(None, ["/nonexistent", str(folder)])))
    assert facts.gpus[0].name == "Tesla T4"
    with pytest.raises(library.LibraryMissing, match=r"^libnvidia-ml-of-this-test\.so\.1 cannot be loaded$"):
        library.load_library(None, ["/nonexistent"])
