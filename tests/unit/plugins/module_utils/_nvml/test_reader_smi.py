# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi: its output on working, old and broken nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import reader
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.model import Gpu

if TYPE_CHECKING:
    from pathlib import Path

A100 = "0, GPU-1, NVIDIA A100-SXM4-40GB, 00000000:07:00.0, 570.124.06, 40960, 5, 40376, Disabled, 8.0, 31, 54.21, 3, 1"
T4 = "1, GPU-2, Tesla T4, 00000000:AF:00.0, 570.124.06, 15360, 0, 14911, [N/A], 7.5, 36, [Not Supported], [N/A], ERR!"
LOST = "2, GPU-3, NVIDIA A100-SXM4-40GB, 00000000:47:00.0, 570.124.06" + ", [GPU is lost]" * 9
MIB = 1024 * 1024


def fields() -> list[str]:
    return list(reader.SMI_FIELDS)


def test_parse_output_of_each_row() -> None:
    facts = reader.parse_smi_output(fields(), 0, f"{A100}\n{T4}\n")
    assert (facts.source, facts.driver_version, facts.error) == ("nvidia_smi", "570.124.06", None)
    assert facts.gpus[0] == Gpu(
        index=0,
        uuid="GPU-1",
        name="NVIDIA A100-SXM4-40GB",
        pci_address="0000:07:00.0",
        memory_total_bytes=40960 * MIB,
        memory_used_bytes=5 * MIB,
        memory_free_bytes=40376 * MIB,
        mig_mode="disabled",
        compute_capability="8.0",
        temperature_celsius=31,
        power_draw_watts=54.21,
        utilization_gpu_percent=3,
        utilization_memory_percent=1,
    )
    second = facts.gpus[1]
    assert (second.pci_address, second.mig_mode, second.power_draw_watts) == ("0000:af:00.0", None, None)
    assert (second.utilization_gpu_percent, second.utilization_memory_percent) == (None, None)


@pytest.mark.parametrize(
    ("output", "address"),
    [
        (LOST, "0000:47:00.0"),
        ("Unable to determine the device handle for GPU 0000:47:00.0: GPU is lost.  Reboot the system", "0000:47:00.0"),
        ("Unable to determine the device handle for GPU2: 0000:47:00.0: GPU is lost", "0000:47:00.0"),
    ],
)
def test_parse_output_with_lost_gpu_returns_its_address(output: str, address: str) -> None:
    facts = reader.parse_smi_output(fields(), 15, f"{A100}\n{output}\n")
    assert [(gpu.lost, gpu.pci_address) for gpu in facts.gpus] == [(False, "0000:07:00.0"), (True, address)]
    assert facts.gpus[1].memory_total_bytes is None


def test_parse_output_without_gpus_is_empty() -> None:
    assert reader.parse_smi_output(fields(), 6, "No devices were found\n").gpus == ()


@pytest.mark.parametrize(
    ("status", "output", "message"),
    [
        (18, "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124", "Failed to"),
        (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "couldn't communicate"),
        (1, "", "exit status 1"),
        (0, "something else", "something else"),
    ],
)
def test_parse_output_with_failure_raises_its_message(status: int, output: str, message: str) -> None:
    with pytest.raises(reader.SmiError, match=message):
        reader.parse_smi_output(fields(), status, output)


def program(folder: Path, body: str) -> str:
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
    path.chmod(0o755)
    return str(path)


def test_read_gpus_requests_all_fields(tmp_path: Path) -> None:
    path = program(tmp_path, f'echo "$@" > {tmp_path}/requested; echo "{A100}"')
    assert reader.find_smi(path) == path
    assert reader.read_gpus_of_smi(path).gpus[0].uuid == "GPU-1"
    requested = (tmp_path / "requested").read_text(encoding="ascii").split()
    assert requested == [f"--query-gpu={','.join(reader.SMI_FIELDS)}", "--format=csv,noheader,nounits"]


def test_read_gpus_of_older_driver_omits_unknown_fields(tmp_path: Path) -> None:
    row = "0, GPU-1, Tesla T4, 00000000:07:00.0, 450.80.02, 15109, 0, 15109, 36, 13.87, 0, 0"
    path = program(
        tmp_path,
        'case "$1" in\n'
        "*compute_cap*) echo 'Field \"compute_cap\" is not a valid field to query.'; exit 2;;\n"
        "*mig.mode*) echo 'Field \"mig.mode.current\" is not a valid field to query.'; exit 2;;\n"
        f'*) echo "{row}";;\nesac',
    )
    facts = reader.read_gpus_of_smi(path)
    gpu = facts.gpus[0]
    assert (facts.driver_version, gpu.compute_capability, gpu.mig_mode) == ("450.80.02", None, None)
    assert (gpu.memory_total_bytes, gpu.temperature_celsius) == (15109 * MIB, 36)


def test_read_gpus_with_broken_program_raises(tmp_path: Path) -> None:
    with pytest.raises(reader.SmiError, match="No such file"):
        reader.read_gpus_of_smi(str(tmp_path / "absent"))
    assert reader.find_smi(str(tmp_path / "absent")) is None


def test_find_program_searches_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert reader.find_smi(None) == path
