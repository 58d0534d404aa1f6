# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fake exporter speaks the names, labels and units that the real one has on a real GPU."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.nvml.simulated import NvmlBuilder

from ..wait import until
from .exporter import PROGRAM, build_program, write_archive

# Series of the real exporter that the recorded machine does not have, from upstream's documentation.
DOCUMENTED = {
    "nvidia_smi_fabric_state": "gauge uuid",
    "nvidia_smi_xid_errors_total": "counter uuid,xid",
    "nvidia_smi_xid_last_timestamp_seconds": "gauge uuid,xid",
}
MIB = 1024 * 1024
# Series of a real GPU for which the simulated NVML has no function.
NOT_SIMULATED = {
    "nvidia_smi_ecc_errors_uncorrected_aggregate_sram_threshold_exceeded",
    "nvidia_smi_gpu_recovery_action",
    "nvidia_smi_temperature_gpu_tlimit",
}
#: The program of a release with the backend NVML, where it is at hand.
REAL = os.environ.get("GPU_EXPORTER_PROGRAM", "")
Sample = dict[str, list[tuple[dict[str, str], float]]]


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NvmlBuilder]:
    folder = tmp_path_factory.mktemp("nvml")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NVML_STATE", str(folder / "state"))
        environment.setenv("NVML_INFOROM", str(folder / "inforom"))
        yield NvmlBuilder(folder)


@pytest.fixture
def scrape(tmp_path: Path, builder: NvmlBuilder) -> Iterator[Callable[..., str]]:
    """Return scrape(profile, *arguments, faults) -> the text of the metrics."""
    program, faults = tmp_path / PROGRAM, tmp_path / "faults.json"
    program.write_bytes(build_program(sys.executable))
    processes = []

    def start(profile: str, *arguments: str, **found: Any) -> str:
        faults.write_text(json.dumps(found))
        environment = {**os.environ, "NVML_LIBRARY": builder.library(profile), "FAKE_EXPORTER_FAULTS": str(faults)}
        option = "-a" if "-f" in arguments else "--web.listen-address"
        command = [sys.executable, str(program), option, "127.0.0.1:0", *arguments]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout
        line = process.stdout.readline()
        assert "(fake)" in line
        with urllib.request.urlopen(f"http://127.0.0.1:{line.rpartition(':')[2].strip()}/metrics") as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            return str(answer.read().decode())

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def parse(text: str) -> Sample:
    """The series by name."""
    found: Sample = {}
    for line in text.splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if match:
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match.group(2) or ""))
            found.setdefault(match.group(1), []).append((labels, float(match.group(3))))
    return found


def read_recorded(backend: str) -> dict[str, str]:
    """Kind and labels of each series that the real exporter has with the backend."""
    lines = (Path(__file__).parent / "gpu-exporter" / "series.txt").read_text().splitlines()
    rows = [line.split(" ") for line in lines if not line.startswith("#")]
    return {row[2]: " ".join([row[1], *row[3:]]) for row in rows if row[0] in ("both", backend)}


@pytest.mark.parametrize(
    ("backend", "own"), [("nvml", "nvidia_smi_nvml_return_code"), ("exec", "nvidia_smi_command_exit_code")]
)
def test_series_are_those_of_the_real_exporter(scrape: Any, backend: str, own: str) -> None:
    text = scrape("h200", f"--collect.backend={backend}", **{"0": {"xids": [79]}})
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    sample = parse(text)
    forms = {name: f"{kinds[name]} {','.join(sorted(rows[0][0]))}".strip() for name, rows in sample.items()}
    recorded = {**read_recorded(backend), **DOCUMENTED}
    assert {name: form for name, form in forms.items() if recorded.get(name) != form} == {}
    assert own in sample
    assert ("nvidia_smi_xid_errors_total" in sample) is (backend == "nvml")
    assert len(sample["nvidia_smi_gpu_info"]) == 8


@pytest.fixture
def scrape_real(tmp_path: Path, builder: NvmlBuilder) -> Iterator[str]:
    """The metrics of the real nvidia_gpu_exporter 2 with the simulated NVML of an H200."""
    (tmp_path / "libnvidia-ml.so.1").symlink_to(builder.library("h200"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    command = [REAL, f"--web.listen-address={address}", "--collect.backend=nvml"]
    process = subprocess.Popen(command, env=environment)

    def read() -> str:
        assert process.poll() is None, "the exporter has ended"
        try:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    try:
        yield until(read, seconds=30)
    finally:
        process.kill()
        process.communicate()


if REAL:

    def test_real_exporter_has_each_series_of_the_fake(scrape: Any, scrape_real: str) -> None:
        real, fake = parse(scrape_real), parse(scrape("h200"))
        common = set(fake) - NOT_SIMULATED
        forms = [
            {name: sorted(rows[0][0]) for name, rows in sample.items() if name in common} for sample in (real, fake)
        ]
        assert forms[0] == forms[1]
        assert len(real["nvidia_smi_gpu_info"]) == 8


def test_values_have_the_units_of_the_real_exporter(scrape: Any) -> None:
    sample = parse(scrape("h200", **{"*": {"utilization_gpu": 95, "event_reasons": 0x40}, "7": {"lost": True}}))
    labels, value = sample["nvidia_smi_memory_total_bytes"][0]
    # As recorded: the UUID has no prefix, and the memory of an H200 is the same.
    assert (value, re.fullmatch(r"[0-9a-f-]{36}", labels["uuid"]) is not None) == (150754820096, True)
    assert sample["nvidia_smi_utilization_gpu_ratio"][0][1] == 0.95
    assert sample["nvidia_smi_clocks_current_sm_clock_hz"][0][1] == 1.98e9
    assert sample["nvidia_smi_power_draw_watts"][0][1] == 71.53
    assert sample["nvidia_smi_clocks_event_reasons_hw_thermal_slowdown"][0][1] == 1
    assert sample["nvidia_smi_clocks_event_reasons_gpu_idle"][0][1] == 0
    assert (len(sample["nvidia_smi_gpu_info"]), sample["nvidia_smi_last_collect_success"][0][1]) == (7, 1)


def test_driver_that_fails_is_reported(scrape: Any) -> None:
    for sample in (parse(scrape("no-driver")), parse(scrape("h200", fails=True))):
        assert "nvidia_smi_gpu_info" not in sample
        assert sample["nvidia_smi_last_collect_success"] == [({}, 0.0)]
        assert sample["nvidia_smi_nvml_return_code"][0][1] != 0
        assert "nvidia_smi_last_collect_success_timestamp_seconds" not in sample


@pytest.mark.parametrize(
    ("version", "fields", "host", "expected"),
    [
        (
            "4.8.2",
            ["DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_SM_CLOCK"],
            "Hostname",
            [47, 10240, 1410],
        ),
        (
            "4.9.0",
            [
                "DCGM_FI_SYSTEM_DRIVER_VERSION",
                "DCGM_FI_DEV_GPU_UTIL_RATIO",
                "DCGM_FI_DEV_FB_USED_BYTES",
                "DCGM_FI_DEV_SM_CLOCK_HERTZ",
            ],
            "hostname",
            [0.47, 10240 * MIB, 1.41e9],
        ),
    ],
)
def test_dcgm_exporter_has_the_names_and_units_of_its_generation(
    scrape: Any, tmp_path: Path, version: str, fields: list[str], host: str, expected: list[float]
) -> None:
    csv = tmp_path / "collectors.csv"
    csv.write_text("# comment\n" + "".join(f"{name}, gauge, x\n" for name in [*fields, "DCGM_EXP_XID_ERRORS_COUNT"]))
    sample = parse(scrape("mixed", "-f", str(csv), "--fake-version", version, **{"1": {"xids": [94]}}))
    assert [sample[name][0][1] for name in fields[1:]] == expected
    labels = sample[fields[1]][0][0]
    assert set(labels) == {"gpu", "UUID", "pci_bus_id", "device", "modelName", host, fields[0]}
    assert labels["UUID"].startswith("GPU-")
    ((xid, _value),) = sample["DCGM_EXP_XID_ERRORS_COUNT"]
    assert (xid["gpu"], xid["xid"]) == ("1", "94")


def test_program_without_the_library_ends(tmp_path: Path) -> None:
    program = tmp_path / PROGRAM
    program.write_bytes(build_program(sys.executable))
    environment = {**os.environ, "NVML_LIBRARY": str(tmp_path / "none")}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "(fake)" in done.stderr) == (1, True)


def test_archive_has_the_program(tmp_path: Path) -> None:
    first, second = (write_archive(tmp_path / name) for name in ("a.tar.gz", "b.tar.gz"))
    assert len(first) == len(second) == 64
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert [(member.name, member.mode) for member in archive] == [("LICENSE", 0o644), (PROGRAM, 0o755)]
