# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observations of a healthy node with two GPUs and of its cluster, in which tests inject faults."""

from __future__ import annotations

import copy
from typing import Any

VERSION = "580.65.06"
ADDRESSES = ("0000:3b:00.0", "0000:af:00.0")
FOLDER = "/var/lib/kubelet/device-plugins"


def _gpu(index: int) -> dict[str, Any]:
    return {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "NVIDIA H200",
        "pci_address": ADDRESSES[index],
        "minor_number": index,
        "mig_mode": "disabled",
        "mig_mode_pending": "disabled",
        "mig_devices": [],
        "lost": False,
        "persistence_mode": "enabled",
        "ecc": {"mode": "enabled", "mode_pending": "enabled", "uncorrected_volatile": 0},
        "retired_pages": {"pending": False},
        "row_remapping": {"pending": False, "failed": False},
        "recovery_action": "none",
        "clocks": {"event_reasons": ["gpu_idle"]},
        "pcie": {"width": 16, "width_max": 16},
        "nvlinks": [{"link": 0, "active": True}],
        "fabric": {"state": "completed", "status": 0},
    }


HOST: dict[str, Any] = {
    "host": "gpu1",
    "node": "gpu1",
    "require_gpu": True,
    "errors": {},
    "kernel": {"release": "6.1.0-56-amd64", "nodename": "gpu1"},
    "nvml": {
        "source": "nvml",
        "error": None,
        "nvswitches": 4,
        "gpus": [_gpu(0), _gpu(1)],
        "driver": {
            "module_version": VERSION,
            "installed_module_version": VERSION,
            "library_version": VERSION,
            "nouveau_loaded": False,
        },
    },
    "pci": [
        {"pci_address": each, "driver": "nvidia", "alive": True, "bar1_missing": False, "width": 16, "width_max": 16}
        for each in ADDRESSES
    ],
    "log": {"xids": [], "lines": {}},
    "blocked": [],
    "devices": {
        "majors": {"nvidia": 195, "nvidia-uvm": 508},
        "files": [
            {"name": "nvidiactl", "major": 195},
            {"name": "nvidia0", "major": 195},
            {"name": "nvidia1", "major": 195},
            {"name": "nvidia-uvm", "major": 508},
        ],
    },
    "fabric_manager": {"running": True, "unit": "active"},
    "libraries": {"versions": [VERSION]},
    "packages": {
        "unattended": True,
        "driver": {
            "nvidia-driver": {"version": f"{VERSION}-1", "held": True},
            "nvidia-fabricmanager": {"version": f"1:{VERSION}-1", "held": True},
        },
    },
    "toolkit": {
        "runtime": {"path": "/usr/bin/nvidia-container-runtime", "version": "1.17.8", "usable": True},
        "ctk": {"path": "/usr/bin/nvidia-ctk", "version": "1.17.8", "usable": True},
        "root": {"path": None, "has_library": True},
        "mode": "cdi",
        "char_links": False,
    },
    "cdi": [{"path": "/etc/cdi/nvidia.yaml", "missing": [], "versions": [VERSION]}],
    "container_cli": {"error": ""},
    "runtime": {
        "daemon": "containerd",
        "error": "",
        "handlers": {"nvidia": {"systemd_cgroup": True}, "runc": {"systemd_cgroup": True}},
        "changed_files": [],
    },
    "drift": [],
    "others": {
        "vendors": ["nvidia"],
        "devices": [],
        "drivers": {"amdgpu": {"loaded": False, "version": "", "kfd": False}},
        "error": "",
        "inotify_instances": 128,
    },
    "kubelet": {
        "running": True,
        "cgroup_driver": "systemd",
        "topology_policy": None,
        "plugin_folder": FOLDER,
        "sockets": ["kubelet.sock", "nvidia-gpu.sock"],
        "checkpoint": {"pods": ["uid-1"], "error": ""},
    },
}
NODE: dict[str, Any] = {
    "known": True,
    "ready": True,
    "reason": "",
    "schedulable": True,
    "maintenance": None,
    "labelled": True,
    "lease_age_seconds": 4.0,
    "capacity": {"nvidia.com/gpu": 2},
    "allocatable": {"nvidia.com/gpu": 2},
    "allocated": {"nvidia.com/gpu": 1},
    "plugins": ["kube-system/nvidia-device-plugin-daemonset"],
    "plugins_ready": True,
    "plugin_problems": [],
    "plugin_folders": [FOLDER],
    "pods": ["uid-1"],
    "events": {},
}
CLUSTER: dict[str, Any] = {
    "nodes": {"gpu1": NODE},
    "runtime_classes": {"nvidia": "nvidia"},
    "class_users": {"nvidia": ["DaemonSet kube-system/nvidia-device-plugin-daemonset"]},
    "pending": [],
    "events": {"quota": [], "extender": []},
    "bypassing": [],
    "smoke_tests": [{"node": "gpu1", "passed": True}],
    "monitoring": {
        "targets": {"gpu1": {"instance": "10.0.0.11:9835", "up": True}},
        "failing": [],
        "refused": False,
        "missing": [],
    },
}


def build() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return copies of the observation of the host and of the cluster."""
    return copy.deepcopy(HOST), copy.deepcopy(CLUSTER)


def put(tree: Any, path: str, value: Any) -> None:
    """Set the value at a path such as ``nvml/gpus/0/lost``."""
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    for part in parents:
        tree = tree[part]
    tree[last] = value
