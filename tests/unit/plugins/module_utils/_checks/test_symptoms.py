# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.model import Check
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import CHECKS
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.symptoms import find_causes

# What users paste -> the checks that have to be named; the first one first.
SYMPTOMS = [
    ("No devices were found", ["hw.pci_count", "kernel.flavour", "kernel.legacy"]),
    (
        "Unable to determine the device handle for GPU 0000:AF:00.0: GPU is lost.  Reboot the system to recover this GPU",
        ["hw.pci_alive", "lib.serves"],
    ),
    ("NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:", ["hw.bar"]),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", ["hw.ecc"]),
    ("CUDA error 802: system not yet initialized", ["hw.fabric"]),
    ("modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.1.0-56-amd64", ["kernel.module_built"]),
    (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that",
        ["kernel.module_built", "kernel.module_loaded"],
    ),
    ("NVRM: The NVIDIA probe routine was not called for 1 device(s).", ["kernel.conflict"]),
    ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", ["kernel.secure_boot"]),
    (
        "NVRM: installed in this system is not supported by open nvidia.ko because it does not include",
        ["kernel.flavour"],
    ),
    ("Failed to initialize NVML: Driver/library version mismatch", ["kernel.mismatch", "lib.answers"]),
    (
        "NVRM: API mismatch: the client 'nvidia-smi' has the version 580.82.07, but this kernel module has the version 580.65.06",
        ["kernel.mismatch"],
    ),
    ("NVRM: GPU 0000:a1:00.0: GPU has fallen off the bus.", ["kernel.fallen"]),
    ("NVRM: RmInitAdapter failed! (0x26:0x56:1474)", ["kernel.probe_failed"]),
    ("INFO: task nvidia-smi:4242 blocked for more than 120 seconds.", ["kernel.dstate"]),
    ("torch: no CUDA-capable device is detected", ["kernel.nodes"]),
    ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure", ["lib.present"]),
    (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version",
        ["lib.cuda"],
    ),
    ('OCI runtime create failed: exec: "nvidia-container-runtime": executable file not found in $PATH', ["tk.binary"]),
    (
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file",
        ["tk.root", "tk.rpc"],
    ),
    (
        "could not apply required modification to OCI specification: unresolvable CDI devices nvidia.com/gpu=0",
        ["tk.cdi"],
    ),
    ("nvidia-container-cli: initialization error: driver rpc error: timed out", ["tk.rpc"]),
    (
        'rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured',
        ["rt.handler"],
    ),
    ("kubespray ran and /etc/containerd/config.toml was overwritten", ["rt.drift"]),
    ('expected cgroupsPath to be of format "slice:prefix:name" for systemd cgroups, got "/kubepods', ["rt.cgroup"]),
    (
        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected",
        ["kl.checkpoint"],
    ),
    ("no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu", ["kl.unhealthy"]),
    ("Pod was rejected: Resources cannot be allocated with Topology locality", ["kl.topology"]),
    ("Incompatible strategy detected auto", ["pl.log"]),
    ("No devices found. Waiting indefinitely.", ["pl.log"]),
    ("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", ["sc.free", "pl.count"]),
    ("Warning  UnexpectedAdmissionError  GetPreferredAllocation rpc failed with error", ["pl.preferred"]),
    ("0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", ["sc.other"]),
    ("gpu9 Ready,SchedulingDisabled <none> 3d v1.34.4", ["sc.maintenance"]),
    ("0/3 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: present}", ["sc.taint"]),
    ('pods "a" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1', ["sc.quota"]),
    ('Post "http://10.96.0.9:32766/gpushare-scheduler/filter": dial tcp: connect: connection refused', ["sc.extender"]),
    ('pod rejected: RuntimeClass "nvidia" not found', ["pod.runtime_class"]),
    ("the Grafana dashboards are empty", ["mon.scraped"]),
    ('Get "http://10.0.0.11:9835/metrics": dial tcp 10.0.0.11:9835: connect: connection refused', ["mon.exporter"]),
    ("Failed to initialize NVML: Unknown Error", ["pod.daemon_reload", "lib.answers"]),
    ("ROCk module is NOT loaded, possibly no GPU devices", ["kernel.other_driver"]),
    ("Unable to open /dev/kfd read-write: No such file or directory", ["kernel.other_files"]),
    ("E0512 Partitions of different styles across GPUs in a node is not supported", ["kernel.partitions"]),
    ("unable to create inotify watcher: too many open files", ["kernel.inotify"]),
    # Spaces, lines and case of a terminal, and a part of the words.
    ("failed to initialize nvml:\n   driver/library\tVERSION mismatch", ["kernel.mismatch"]),
    ("version mismatch", ["kernel.mismatch", "lib.twice"]),
]


@pytest.mark.parametrize(("message", "expected"), SYMPTOMS, ids=[message[:40] for message, _expected in SYMPTOMS])
def test_find_causes_of_pasted_message_names_checks(message: str, expected: list[str]) -> None:
    found = [row["id"] for row in find_causes(message)]
    assert found[:1] == expected[:1] or expected[0] in found[: len(expected)], found
    assert set(expected) <= set(found)
    assert len(found) <= 4, found


@pytest.mark.parametrize("message", ["", "no", "hello world", "error", "\x1b[2J" * 10_000, "x" * 1_000_000])
def test_find_causes_of_unknown_message_is_empty(message: str) -> None:
    assert find_causes(message) == []


def test_find_causes_of_xid_has_the_remedy_of_its_number() -> None:
    rows = find_causes(
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus\nNVRM: Xid (PCI:0000:3b:00): 119, GSP"
    )
    assert [row["words"] for row in rows[:2]] == ["Xid 79", "Xid 119"]
    assert "reboot" in rows[0]["remedy"]
    assert "reset" in rows[1]["remedy"]
    assert "kernel.fallen" in [row["id"] for row in rows]


@pytest.mark.parametrize("check", CHECKS, ids=[check.id for check in CHECKS])
def test_find_causes_of_each_words_of_the_registry_names_their_check(check: Check) -> None:
    for words in check.words:
        pasted = f"kubelet[1]: {words.replace('…', ' 42 ').upper()} (exit 1)"
        assert check.id in [row["id"] for row in find_causes(pasted)], words
