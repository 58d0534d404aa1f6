# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults as files of a machine in a folder and as simulated GPUs: observed and judged, each is one cause. The programs are fakes.

The container runtime is left out, since it is found by the processes of the real machine.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Optional

import pytest
from fakes.nvml import nvml_profile

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks import gather, gather_services
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.judge import judge
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.sources import Options
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

    Files = Mapping[str, Optional[str]]

HEALTHY, LOST, SILENT = "a100-80g", "lost-gpu", "no-driver"
VERSION = "570.124.06"
BUS, LIBRARIES, PLUGINS = "sys/bus/pci/devices", "usr/lib/x86_64-linux-gnu", "var/lib/kubelet/device-plugins"
MODULE, CLI, TOOLKIT = "sys/module/nvidia/version", "bin/nvidia-container-cli", "etc/nvidia-container-runtime"
FILES: Files = {
    MODULE: VERSION,
    "proc/devices": "Character devices:\n195 nvidia\n",
    "dev/nvidiactl": "",
    "dev/nvidia-uvm": "",
    "kmsg": "6,1,1,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n",
    f"{LIBRARIES}/libnvidia-ml.so.{VERSION}": "",
    f"{LIBRARIES}/libnvidia-ml.so.1": "",
    f"{LIBRARIES}/libcuda.so.{VERSION}": "",
    f"{TOOLKIT}/config.toml": '[nvidia-container-runtime]\nmode = "cdi"\n',
    "etc/cdi/nvidia.yaml": f"  - hostPath: /{LIBRARIES}/libcuda.so.{VERSION}\n",
    f"{PLUGINS}/kubelet.sock": "",
    f"{PLUGINS}/kubelet_internal_checkpoint": '{"Data": {"PodDeviceEntries": []}}',
    "bin/modinfo": f"#!/bin/sh\necho {VERSION}\n",
    "bin/nvidia-container-runtime": "#!/bin/sh\necho version 1.17.8\n",
    "bin/nvidia-ctk": "#!/bin/sh\necho version 1.17.8\n",
    CLI: "#!/bin/sh\n",
    "bin/systemctl": "#!/bin/sh\necho LoadState=loaded\n",
}
UNLOADED: Files = {MODULE: None}
UNBUILT: Files = {**UNLOADED, "bin/modinfo": "#!/bin/sh\nexit 1\n"}
DEAD = "0000:47:00.0"


def log(*messages: str) -> Files:
    return {"kmsg": "".join(f"4,{number},1,-;{text}\n" for number, text in enumerate(messages))}


#: The check, the profile of the GPUs, and the files that differ; without a text, the file is missing.
FAULTS: list[tuple[str, str, Files]] = [
    ("hw.pci_count", "", UNBUILT),
    ("hw.pci_alive", LOST, {f"{BUS}/{DEAD}/config": "\xff" * 64, **log("NVRM: GPU has fallen off the bus.")}),
    ("hw.bar", LOST, {f"{BUS}/{DEAD}/resource": "0x00fb 0x00ff 0x0200\n0x0 0x0fff 0x220c\n"}),
    (
        "hw.fabric",
        HEALTHY,
        {
            f"{BUS}/0000:c1:00.0/{name}": text
            for name, text in zip(("vendor", "class", "device"), ("0x10de", "0x068000", "0x22a3"))
        },
    ),
    ("kernel.conflict", SILENT, {**UNBUILT, "sys/module/nouveau/version": ""}),
    ("kernel.secure_boot", SILENT, {**UNLOADED, **log("Loading of module with unavailable key is rejected")}),
    ("kernel.module_built", SILENT, UNBUILT),
    ("kernel.module_loaded", SILENT, UNLOADED),
    ("kernel.mismatch", "version-mismatch", {MODULE: "560.35.03", "bin/modinfo": "#!/bin/sh\necho 560.35.03\n"}),
    ("kernel.flavour", LOST, log("NVRM: GPU is not supported by open nvidia.ko", "NVRM: No NVIDIA devices probed.")),
    ("kernel.legacy", LOST, log("NVRM: through the NVIDIA 470.xx Legacy drivers", "NVRM: No NVIDIA devices probed.")),
    ("kernel.probe_failed", LOST, log(f"NVRM: GPU {DEAD}: RmInitAdapter failed! (0x22:0x56:762)")),
    ("kernel.xid", LOST, log("NVRM: Xid (PCI:0000:47:00): 79, pid=7, GPU has fallen off the bus.")),
    ("kernel.fallen", LOST, log(f"NVRM: GPU {DEAD} has fallen off the bus and is not responding to commands.")),
    ("kernel.sxid", HEALTHY, log("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30")),
    (
        "kernel.dstate",
        HEALTHY,
        {
            "proc/42/stat": "42 (python) D 1 1\n",
            "proc/42/stack": "[<0>] os_acquire_rwlock_write [nvidia]\n",
            **log("INFO: task python:42 blocked for more than 120 seconds."),
        },
    ),
    ("kernel.nodes", HEALTHY, {"dev/nvidia1": None}),
    ("lib.present", HEALTHY, {path: None for path in FILES if "libnvidia-ml" in path}),
    ("lib.twice", HEALTHY, {"usr/lib64/libnvidia-ml.so.560.35.03": ""}),
    ("lib.answers", "crash", {}),
    ("lib.serves", LOST, {}),
    ("tk.binary", HEALTHY, {"bin/nvidia-container-runtime": "#!/bin/sh\nexit 1\n"}),
    ("tk.root", HEALTHY, {f"{TOOLKIT}/config.toml": '[nvidia-container-cli]\nroot = "/run/nvidia/driver"\n'}),
    ("tk.cdi", HEALTHY, {f"{LIBRARIES}/libcuda.so.{VERSION}": None}),
    ("tk.rpc", HEALTHY, {CLI: "#!/bin/sh\necho driver rpc error: timed out >&2\nexit 1\n"}),
    ("kl.socket", HEALTHY, {f"{PLUGINS}/kubelet.sock": None}),
    ("kl.checkpoint", HEALTHY, {f"{PLUGINS}/kubelet_internal_checkpoint": "{"}),
]


def build_machine(root: Path, bus: str, profile: str, files: Files) -> None:
    """Write a machine with the GPUs of a profile, none without one, and with these files in the place of healthy ones."""
    gpus = nvml_profile.read(nvml_profile.profile_path(profile)) if profile else []
    shutil.copytree(bus, root / BUS)
    devices = {f"dev/nvidia{gpu.minor}": "" for gpu in gpus}
    for path, text in {**FILES, **devices, **files}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            file.write_bytes(text.encode("latin-1"))
            file.chmod(0o755)


@pytest.fixture
def examine(tmp_path: Path, nvml_builder: NvmlBuilder, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Observe and judge a machine; return the ids of what fails or warns, and the report."""
    monkeypatch.setattr(gather, "SECONDS_BETWEEN_SAMPLES", 0)
    monkeypatch.setattr(gather, "PARTS", {name: read for name, read in gather.PARTS.items() if name != "runtime"})
    monkeypatch.setattr(gather_services.kubelet, "list_processes", lambda: [["/usr/bin/kubelet"]])
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin")

    def run(profile: str, files: Files) -> tuple[list[str], dict[str, Any]]:
        build_machine(tmp_path, nvml_builder.pci(profile or "none"), profile, files)
        has_library = profile and (tmp_path / LIBRARIES / "libnvidia-ml.so.1").exists()
        nvml = collect.Options(
            library=nvml_builder.library(profile) if has_library else str(tmp_path / "missing"),
            nvidia_smi=str(tmp_path / "missing"),
            pci_path=str(tmp_path / BUS),
            module_version=str(tmp_path / MODULE),
            root=str(tmp_path),
            kernel_log=str(tmp_path / "kmsg"),
        )
        observed = gather.gather(Options(root=str(tmp_path), nvml=nvml))
        report = judge([{"host": "h", "node": "h", **observed}])
        return [each["id"] for each in report["causes"] if each["verdict"] == "fail"], report

    return run


def test_doctor_of_a_healthy_machine_finds_nothing(examine: Any) -> None:
    _failed, report = examine(HEALTHY, {})
    assert report["causes"] == []
    # The GPUs have no fabric, and nothing was read of a cluster.
    unread = {"hw.fabric", "kl.checkpoint"}
    assert {check for check, _profile, _files in FAULTS} - unread <= set(report["hosts"][0]["passed"])


@pytest.mark.parametrize(("check", "profile", "files"), FAULTS, ids=[check for check, _profile, _files in FAULTS])
def test_doctor_of_a_machine_with_one_fault_finds_one_cause(
    examine: Any, check: str, profile: str, files: Files
) -> None:
    failed, report = examine(profile, files)
    assert failed == [check], report["causes"]
