# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observations of files of a machine in a folder, and of simulated GPUs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks import gather, gather_services
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.judge import judge
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.sources import Options
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import Change, ChangeLog, Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.formats import JSON
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import MISSING
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.runtime import build_rules

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

ABSENT = "/nonexistent/file"
NOWHERE = collect.Options(library=ABSENT, nvidia_smi=ABSENT, pci_path=ABSENT, module_version=ABSENT, kernel_log=ABSENT)
LINE = "4,{0},{0}000000,-;{1}"


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def select(root: Path, nvml: collect.Options = NOWHERE, **more: Any) -> Options:
    return Options(root=str(root), nvml=nvml, **more)


def load(observation: dict[str, Any]) -> dict[str, Any]:
    """Add the module and the library of a driver, which this machine does not have."""
    driver = {"module_version": "1.2", "installed_module_version": "1.2", "library_version": None}
    return {**observation, "nvml": {**observation["nvml"], "driver": driver}, "libraries": {"versions": ["1.2"]}}


def fails(observation: dict[str, Any]) -> list[str]:
    (host,) = judge([{"host": "h", "node": "h", **observation}])["hosts"]
    return [result["id"] for result in host["checks"] if result["verdict"] == "fail"]


def test_gather_reads_each_part(tmp_path: Path, nvml_builder: NvmlBuilder) -> None:
    nvml = NOWHERE._replace(library=nvml_builder.library("h200"), pci_path=nvml_builder.pci("h200"))
    observed = gather.gather(select(tmp_path, nvml, timeout=20.0))
    assert set(observed) == {"nvml", "errors", *gather.PARTS}
    assert {name for name, part in observed.items() if part is None} == set(observed["errors"])
    assert observed["nvml"]["source"] == "nvml"
    assert [device["pci_address"] for device in observed["pci"]] == [
        gpu["pci_address"] for gpu in observed["nvml"]["gpus"]
    ]
    json.dumps(observed)


def test_gather_with_hanging_driver_costs_its_limit(
    tmp_path: Path, nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "PARTS", {"pci": gather.read_bus, "container_cli": gather.read_container_cli})
    nvml = NOWHERE._replace(library=nvml_builder.library("hang"), pci_path=nvml_builder.pci("t4"))
    observed = gather.gather(select(tmp_path, nvml, timeout=5))
    # Once for the driver; nothing else queries it.
    assert "did not answer within 5 seconds" in observed["nvml"]["error"]
    assert observed["errors"] == {"container_cli": "not run, because the driver reports an error"}
    assert fails(load(observed)) == ["lib.answers"]


def test_gather_with_crashing_driver_names_the_signal(
    tmp_path: Path, nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "PARTS", {"pci": gather.read_bus})
    nvml = NOWHERE._replace(library=nvml_builder.library("crash"), pci_path=nvml_builder.pci("t4"))
    observed = gather.gather(select(tmp_path, nvml))
    assert "SIG" in observed["nvml"]["error"]
    assert fails(load(observed)) == ["lib.answers"]


def test_gather_of_part_that_hangs_or_fails_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(_options: Options) -> Any:
        time.sleep(600)

    def fail(_options: Options) -> Any:
        raise ValueError("\x1b[2J" + "x" * 10_000)

    monkeypatch.setattr(
        gather, "PARTS", {"log": hang, "cdi": fail, "packages": lambda _options: None, "blocked": lambda _options: []}
    )
    observed = gather.gather(select(tmp_path, timeout=5))
    assert (observed["blocked"], observed["packages"]) == ([], None)
    assert observed["errors"]["log"] == "it did not answer within 5 seconds"
    assert observed["errors"]["packages"].startswith("it was not found")
    assert observed["errors"]["cdi"].isprintable()
    assert len(observed["errors"]["cdi"]) < 1000


def test_read_bus_finds_dead_device_and_missing_address(tmp_path: Path, nvml_builder: NvmlBuilder) -> None:
    bus = Path(nvml_builder.pci("mixed"))
    folders = sorted(path for path in bus.iterdir() if (path / "vendor").read_text().startswith("0x10de"))
    copy = tmp_path / "devices"
    for folder in folders:
        for file in folder.iterdir():
            write(copy, f"{folder.name}/{file.name}", file.read_text())
    first, second = (copy / folder.name for folder in folders[:2])
    (first / "config").write_bytes(b"\xff" * 64)
    (second / "config").write_bytes(b"\xde\x10" + b"\0" * 62)
    write(
        second,
        "resource",
        "0x00000000fb000000 0x00000000fbffffff 0x0000000000040200\n0x0 0x0000000fffffffff 0x000000000014220c\n",
    )
    write(second, "current_link_width", "8\n")
    write(second, "max_link_width", "16\n")
    rows = gather.read_bus(select(tmp_path, NOWHERE._replace(pci_path=str(copy))))
    assert [(row["alive"], row["bar1_missing"]) for row in rows] == [(False, False), (True, True)]
    assert (rows[1]["width"], rows[1]["width_max"]) == (8, 16)


def test_read_log_collects_xids_and_known_words(tmp_path: Path) -> None:
    lines = [
        LINE.format(1, "NVRM: Xid (PCI:0000:3b:00): 48, pid=7, DBE"),
        LINE.format(
            2,
            r"NVRM: The NVIDIA GPU 0000:b3:00.0\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\x0aNVRM: fallen off the bus",
        ),
        LINE.format(3, "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30"),
        LINE.format(4, "NVRM: RmInitAdapter failed! \x1b[2J" + "x" * 10_000),
        LINE.format(5, "INFO: task nvidia-smi:42 blocked for more than 120 seconds."),
        *(LINE.format(9, f"NVRM: probe routine failed for {number}") for number in range(99)),
    ]
    log = write(tmp_path, "kmsg", "\n".join(lines) + "\n")
    found = gather.read_log(select(tmp_path, NOWHERE._replace(kernel_log=str(log))))
    assert found is not None
    assert [(each["xid"], each["pci_address"]) for each in found["xids"]] == [(48, "0000:3b:00.0")]
    assert found["lines"]["fallen"][0].endswith("has NVRM: fallen off the bus")
    assert "SXid" in found["lines"]["sxid"][0]
    assert found["lines"]["hung"] == ["INFO: task nvidia-smi:42 blocked for more than 120 seconds."]
    assert len(found["lines"]["probe_failed"]) == gather.MAX_LINES
    assert all(line.isprintable() for each in found["lines"].values() for line in each)
    assert gather.read_log(select(tmp_path)) is None


def test_read_blocked_takes_what_waits_in_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "SECONDS_BETWEEN_SAMPLES", 0)
    for pid, state, stack in (
        (7, "D", "[<0>] os_acquire [nvidia]"),
        (8, "D", "[<0>] io_schedule"),
        (9, "S", "[<0>] x [nvidia]"),
    ):
        write(tmp_path, f"proc/{pid}/stat", f"{pid} (a) D (\x1b) {state} 1 1\n")
        write(tmp_path, f"proc/{pid}/stack", f"{stack}\n")
    rows = gather.read_blocked(select(tmp_path))
    assert [(row["pid"], row["command"]) for row in rows] == [("7", "a) D (\\x1b")]


def test_read_libraries_finds_each_version(tmp_path: Path) -> None:
    folder = "usr/lib/x86_64-linux-gnu"
    write(tmp_path, f"{folder}/libnvidia-ml.so.580.65.06", "")
    (tmp_path / folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so.580.65.06")
    assert gather.read_libraries(select(tmp_path)) == {"versions": ["580.65.06"]}
    write(tmp_path, "usr/lib64/libnvidia-ml.so.570.124.06", "")
    assert gather.read_libraries(select(tmp_path)) == {"versions": ["570.124.06", "580.65.06"]}


def test_read_toolkit_finds_root_without_driver(tmp_path: Path) -> None:
    write(
        tmp_path,
        "etc/nvidia-container-runtime/config.toml",
        f'[nvidia-container-cli]\nroot = "{tmp_path}/driver"\n[nvidia-container-runtime]\nmode = "cdi"\n',
    )
    found = gather.read_toolkit(select(tmp_path))
    assert (found["root"], found["mode"]) == ({"path": f"{tmp_path}/driver", "has_library": False}, "cdi")
    write(tmp_path, "driver/usr/lib64/libnvidia-ml.so.1", "")
    assert gather.read_toolkit(select(tmp_path))["root"]["has_library"] is True
    write(tmp_path, "etc/nvidia-container-runtime/config.toml", "not = = toml")
    assert gather.read_toolkit(select(tmp_path))["root"]["path"] is None


@pytest.mark.parametrize(
    ("files", "config", "root"),
    [
        (["usr/lib64", "run/nvidia/driver/usr/lib64"], "", "."),
        (["run/nvidia/driver/usr/lib/x86_64-linux-gnu"], "", "run/nvidia/driver"),
        (["usr/lib64"], '[nvidia-container-cli]\nroot = "/opt/driver"\n', "/opt/driver"),
        (["usr/lib64"], '[nvidia-container-cli]\nroot = "/"\n', "."),
        (["home/kubernetes/bin/nvidia/lib64"], "", None),
        ([], "", None),
    ],
)
def test_read_container_cli_is_run_with_the_root_of_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str], config: str, root: str | None
) -> None:
    program = write(tmp_path, "bin/nvidia-container-cli", '#!/bin/sh\necho "$@" >&2\nexit 1\n')  # a fake
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for folder in files:
        write(tmp_path, f"{folder}/libnvidia-ml.so.1", "")
    write(tmp_path, "etc/nvidia-container-runtime/config.toml", config)
    found = gather.read_container_cli(select(tmp_path))
    if root is None:
        assert found is None
    else:
        assert found is not None
        command, _space, last = found["error"].partition(" ")
        assert (Path(command.partition("=")[2]).resolve(), last) == ((tmp_path / root).resolve(), "info")


@pytest.mark.parametrize(("name", "running"), [("nv-fabricmanage", True), ("nvidia-smi", False)])
def test_read_fabric_manager_finds_its_process(tmp_path: Path, name: str, running: bool) -> None:
    assert gather.read_fabric_manager(select(tmp_path)) == {}
    write(tmp_path, "proc/7/comm", f"{name}\n")
    for attribute, value in (("vendor", "0x10de"), ("class", "0x068000"), ("device", "0x22a3")):
        write(tmp_path, f"pci/0000:c1:00.0/{attribute}", f"{value}\n")
    nvml = NOWHERE._replace(pci_path=str(tmp_path / "pci"))
    assert gather.read_fabric_manager(select(tmp_path, nvml))["running"] is running


def test_read_kubelet_reads_its_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["/usr/bin/kubelet", "--root-dir=/data/kubelet", "--hostname-override", "node-7"]
    monkeypatch.setattr(gather_services.kubelet, "list_processes", lambda: [words])
    found = gather.read_kubelet(select(tmp_path))
    assert (found["plugin_folder"], found["node_name"]) == ("/var/lib/kubelet/device-plugins", "node-7")


def test_read_cdi_finds_missing_files_and_versions(tmp_path: Path) -> None:
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"
    text = f"containerEdits:\n  mounts:\n  - hostPath: {library}\n    containerPath: {library}\n  deviceNodes:\n  - path: /dev/nvidia9\n"
    write(tmp_path, "etc/cdi/nvidia.yaml", text)
    (found,) = gather.read_cdi(select(tmp_path))
    assert found == {"path": "/etc/cdi/nvidia.yaml", "missing": [library], "versions": ["580.65.06"]}
    write(tmp_path, library[1:], "")
    assert gather.read_cdi(select(tmp_path))[0]["missing"] == []
    write(tmp_path, "var/run/cdi/nvidia.json", json.dumps({"mounts": [{"hostPath": "/missing"}]}))
    assert gather.read_cdi(select(tmp_path))[1]["missing"] == ["/missing"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            json.dumps({"Data": {"PodDeviceEntries": [{"PodUID": "b"}, {"PodUID": "a"}]}}),
            {"pods": ["a", "b"], "error": ""},
        ),
        (json.dumps({"Data": {"PodDeviceEntries": None}}), {"pods": [], "error": ""}),
        ("{", None),
        ("[]", None),
    ],
)
def test_read_kubelet_reads_the_checkpoint(tmp_path: Path, text: str, expected: dict[str, Any] | None) -> None:
    write(tmp_path, "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", text)
    write(tmp_path, "var/lib/kubelet/device-plugins/kubelet.sock", "")
    found = gather.read_kubelet(select(tmp_path))
    assert found["sockets"] == ["kubelet.sock"]
    if expected:
        assert found["checkpoint"] == expected
    else:
        assert found["checkpoint"]["error"]


def test_read_devices_reads_majors_and_files(tmp_path: Path) -> None:
    write(tmp_path, "proc/devices", "Character devices:\n195 nvidia\n508 nvidia-uvm\n  1 mem\n")
    write(tmp_path, "dev/nvidia0", "")
    found = gather.read_devices(select(tmp_path))
    assert found["majors"] == {"nvidia": 195, "nvidia-uvm": 508}
    assert [file["name"] for file in found["files"]] == ["nvidia0"]


def test_find_newer_files_compares_with_the_start_of_the_process(tmp_path: Path) -> None:
    file = write(tmp_path, "etc/containerd/config.toml", "")
    write(tmp_path, "proc/stat", "cpu 1 2\nbtime 1000\n")
    for ticks, expected in ((100, ["/etc/containerd/config.toml"]), (10**15, [])):
        write(tmp_path, "proc/7/stat", f"7 (containerd) S {' '.join(['0'] * 18)} {ticks} 0\n")
        assert gather_services._find_newer_files(str(tmp_path), "7", "containerd") == expected
    assert file.exists()
    assert gather_services._find_newer_files(str(tmp_path), "8", "containerd") == []
    # Docker may have read it again.
    write(tmp_path, "etc/docker/daemon.json", "{}")
    write(tmp_path, "proc/7/stat", f"7 (dockerd) S {' '.join(['0'] * 18)} 100 0\n")
    assert gather_services._find_newer_files(str(tmp_path), "7", "docker") == []


def test_packages_of_the_driver_belong_to_its_version() -> None:
    names = ["nvidia-driver", "libcuda1", "nvidia-container-toolkit", "linux-modules-nvidia-580", "nvidia-persistenced"]
    assert list(filter(gather._is_driver_package, names)) == ["nvidia-driver", "libcuda1"]


def test_read_drift_compares_files_with_their_records(tmp_path: Path) -> None:
    assert gather.read_drift(select(tmp_path)) == []
    path = "/etc/docker/daemon.json"
    paths = StatePaths(str(tmp_path / "var/lib/gpu-kubernetes"))
    record = Record(None, b"", entries={"nvidia": (Change(("default-runtime",), "default", MISSING, "nvidia"),)})
    ChangeLog(path, paths.record(path), JSON, build_rules("path")).write("sha", {"sha": record}, keep=False)
    assert gather.read_drift(select(tmp_path)) == [{"path": path, "settings": ["default-runtime"], "error": ""}]
    write(tmp_path, path[1:], '{"default-runtime": "nvidia", "debug": true}')
    assert gather.read_drift(select(tmp_path)) == []


def test_read_drift_of_unreadable_records_is_not_a_pass(tmp_path: Path) -> None:
    """A file in place of their folder, since tests run as root."""
    write(tmp_path, "var/lib/gpu-kubernetes/state/settings", "")
    assert gather.read_drift(select(tmp_path)) is None
