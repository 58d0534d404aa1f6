# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings on containerd, Kubernetes, the device plugin and cgroup drivers: a row for each, and for hosts without one."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._compatibility.situations import (
    NEW,
    Finding,
    check_findings,
)

CASES: list[tuple[dict[str, Any], list[Finding]]] = [
    # containerd and Kubernetes
    ({"containerd": "1.7.28", "kubernetes": "1.34.4"}, []),
    ({"containerd": "2.4.2+unknown", "kubernetes": "1.34.4"}, []),
    ({"containerd": "1.6.20~ds1", "kubernetes": "1.27.1"}, []),
    ({"containerd": "2.1.4"}, []),
    ({"kubernetes": "1.34.4"}, []),
    (
        {"containerd": "1.7.13", "kubernetes": "1.34.2-gke.100"},
        [("warn", "containerd", "recommends for Kubernetes 1.34; install 1.7.28 or newer.")],
    ),
    (
        {"containerd": "1.7.33", "kubernetes": "1.36.1"},
        [
            (
                "warn",
                "containerd",
                "does not recommend for Kubernetes 1.36 and newer; install 2.2.0 or 2.3.0, or a newer",
            )
        ],
    ),
    (
        {"containerd": "2.0.10", "kubernetes": "1.35.4+k3s1"},
        [("warn", "containerd", "series that containerd does not recommend for Kubernetes 1.35 and newer")],
    ),
    (
        {"containerd": "2.3.2", "kubernetes": "1.99.0"},
        [
            (
                "warn",
                "containerd",
                "Nothing is known of containerd 2.3.2 with Kubernetes 1.99.0 (known are releases up to 1.",
            )
        ],
    ),
    # The device plugin
    ({"plugin": "v0.20.1", "driver": "580.178.04", "toolkit": "1.20.1", "kubernetes": "1.34.4"}, []),
    ({"plugin": "sha256:0123456789abcdef", "driver": "580.178.04"}, []),
    ({"plugin": "latest", "driver": "580.178.04"}, []),
    (
        {"plugin": "v0.20.1@sha256:0123456789abcdef", "toolkit": "1.6.0"},
        [
            ("warn", "toolkit_security", ""),
            ("warn", "device_plugin", "v0.20.1 requires NVIDIA's container toolkit 1.7.0 or newer"),
        ],
    ),
    (
        {"plugin": "v0.17.4", "gpus": [{**NEW, "pci_device_id": "3000"}]},
        [
            ("warn", "driver_gpu", "Nothing is known of the GPU"),
            (
                "warn",
                "device_plugin",
                "device plugin v0.17.4 does not know GPUs of the architecture rubin; deploy 0.20.0",
            ),
        ],
    ),
    (
        {"plugin": "v0.20.0", "toolkit": "1.6.0", "kubernetes": "1.9.0"},
        [
            ("warn", "toolkit_security", ""),
            ("warn", "device_plugin", "v0.20.0 requires NVIDIA's container toolkit 1.7.0 or newer"),
            ("warn", "device_plugin", "v0.20.0 requires Kubernetes 1.10 or newer"),
        ],
    ),
    # Cgroup drivers
    ({"kubelet_cgroup_driver": "systemd", "runtime_cgroup_driver": "systemd"}, []),
    ({"kubelet_cgroup_driver": "systemd"}, []),
    ({"runtime_cgroup_driver": "cgroupfs"}, []),
    (
        {"kubelet_cgroup_driver": "systemd", "runtime_cgroup_driver": "cgroupfs"},
        [("stop", "cgroup_driver", "would use cgroupfs; set containerd_nvidia_systemd_cgroup to true.")],
    ),
    (
        {"kubelet_cgroup_driver": "cgroupfs", "runtime_cgroup_driver": "systemd"},
        [("stop", "cgroup_driver", "would use systemd; set containerd_nvidia_systemd_cgroup to false.")],
    ),
]


@pytest.mark.parametrize(("situation", "expected"), CASES)
def test_check_compatibility_of_each_situation(
    tables: Mapping[str, Any], situation: Mapping[str, Any], expected: list[Finding]
) -> None:
    check_findings(tables, situation, expected)
