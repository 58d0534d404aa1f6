# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings on a host: one row of the table for each possible finding, and for hosts without one."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility import versions
from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.check import check_compatibility
from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.versions import CompatibilityError

K80 = {"name": "Tesla K80", "pci_device_id": "102d"}
P40 = {"name": "Tesla P40", "pci_device_id": "1b38", "compute_capability": "6.1"}
V100 = {"name": "Tesla V100-PCIE-32GB", "pci_device_id": "1db6"}
T4 = {"name": "Tesla T4", "pci_device_id": "1eb8", "compute_capability": "7.5"}
GA102 = {"name": "NVIDIA GeForce RTX 3090", "pci_device_id": "2204", "compute_capability": "8.6"}
GB10 = {"name": "NVIDIA GB10", "pci_device_id": "2e12", "compute_capability": "12.1"}
A100 = {"name": "NVIDIA A100-SXM4-40GB", "pci_device_id": "20b0"}
GH200 = {"name": "NVIDIA GH200 480GB", "pci_device_id": "2342"}
B200 = {"name": "NVIDIA B200", "pci_device_id": "2901", "compute_capability": "10.0"}
B300 = {"name": "NVIDIA B300", "pci_device_id": "3182", "compute_capability": "10.3"}
NEW = {"name": None, "pci_device_id": "4abc"}
ODD = {"name": "Odd", "pci_device_id": "1300"}
TODAY = "2026-05"

#: Situation -> (level, topic, words of the message) of each finding, in the order in which they are reported.
CASES: list[tuple[dict[str, Any], list[tuple[str, str, str]]]] = [
    ({}, []),
    ({"driver": "", "cuda": None, "gpus": []}, []),
    ({"driver": "580.178.04", "gpus": [T4, A100]}, []),
    # A driver and GPUs
    (
        {"driver": "570.86.10", "gpus": [B200, B200]},
        [
            (
                "stop",
                "driver_gpu",
                "Driver 570.86.10 does not know NVIDIA B200 yet; use 570.86.15 or newer.",
            ),
            ("warn", "driver_security", "bulletin 5747 of 2026-01; use 570.211.01 or a newer one of its branch, 580."),
            ("warn", "driver_branch", "driver branch 570 since 2026-02; use branch 580, 595, 610 or 620."),
        ],
    ),
    (
        {"driver": "595.91.07", "gpus": [P40, T4]},
        [("stop", "driver_gpu", "no longer supports Tesla P40; use branch 580, the last that does, or an older")],
    ),
    # One GPU that the working driver does not serve
    (
        {"driver": "580.178.04", "running": "580.178.04", "flavor": "open", "gpus": [A100, K80]},
        [
            (
                "warn",
                "driver_gpu",
                "no longer supports Tesla K80; use branch 470, the last that does, or an older",
            ),
            ("warn", "kernel_modules", "The open kernel modules do not know Tesla K80; use the proprietary ones."),
        ],
    ),
    (
        {"driver": "595.91.07", "running": "580.178.04", "gpus": [A100, P40, K80]},
        [
            ("stop", "driver_gpu", "no longer supports Tesla P40; use branch 580"),
            ("warn", "driver_gpu", "no longer supports Tesla K80; use branch 470"),
        ],
    ),
    (
        {"driver": "580.178.04", "running": "580.178.04", "flavor": "open", "gpus": [K80]},
        [("stop", "driver_gpu", "Tesla K80"), ("stop", "kernel_modules", "Tesla K80")],
    ),
    ({"driver": "595", "gpus": [B300]}, []),
    ({"driver": "580", "gpus": [V100, B300]}, []),
    ({"gpus": [K80, B200]}, [("warn", "driver_gpu", "one needs branch 570 or newer, another 470 or older; use GPUs")]),
    (
        {"driver": "595", "gpus": [NEW]},
        [("warn", "driver_gpu", "Nothing is known of the GPU with PCI device id 4abc, so that no driver is judged")],
    ),
    ({"driver": "595", "gpus": [ODD]}, [("warn", "driver_gpu", "known of Odd (PCI device id 1300), so that")]),
    # Known by the architecture that its driver reports
    ({"driver": "595", "gpus": [{**NEW, "architecture": "blackwell"}]}, []),
    ({"driver": "595", "gpus": [{"name": "No id", "pci_device_id": None}]}, []),
    # Kernel modules
    (
        {"driver": "580", "flavor": "open", "gpus": [P40]},
        [("stop", "kernel_modules", "The open kernel modules do not know Tesla P40; use the proprietary ones.")],
    ),
    (
        {"driver": "580", "flavor": "proprietary", "gpus": [GH200, T4]},
        [("stop", "kernel_modules", "The proprietary kernel modules do not know NVIDIA GH200 480GB; use the open")],
    ),
    (
        {"driver": "580", "flavor": "open", "gpus": [P40, B200]},
        [("warn", "kernel_modules", "do not know Tesla P40; remove it, because another GPU of the host needs them.")],
    ),
    (
        {"driver": "620.70.06", "flavor": "proprietary", "gpus": [T4]},
        [
            (
                "stop",
                "kernel_modules",
                "branch 620 has no proprietary kernel modules; use the open ones, or branch 615 or",
            )
        ],
    ),
    (
        {"driver": "470.256.02", "flavor": "open"},
        [
            (
                "stop",
                "kernel_modules",
                "branch 470 has no open kernel modules; use the proprietary ones, or branch 515 or",
            ),
            ("warn", "driver_branch", "no longer supports driver branch 470; use branch 535, 580, 595, 610 or 620."),
        ],
    ),
    # CUDA and a driver
    ({"driver": "580.178.04", "cuda": "12.8"}, []),
    ({"driver": "580.178.04", "cuda": "13.0.2"}, []),
    (
        {"driver": "580.178.04", "cuda": "13.2", "gpus": [T4]},
        [
            (
                "warn",
                "cuda_driver",
                "runs programs of CUDA 13.2 without the features that need a newer driver; use driver 595.45.04",
            )
        ],
    ),
    # An update that is in no table
    ({"driver": "545.23.07", "cuda": "12.3.9"}, [("warn", "cuda_driver", "use driver 545.23.08 or newer for all")]),
    ({"driver": "595", "cuda": "13.2.9"}, []),
    (
        {"driver": "535.309.01", "cuda": "13.0.1"},
        [
            (
                "stop",
                "cuda_driver",
                "too old for programs of CUDA 13.0.1; use driver 580.65.06 or newer, or CUDA 12.2, the newest that branch 535 supports.",
            )
        ],
    ),
    # The first toolkit of 11 requires an older driver than its minor versions
    ({"driver": "450.51.05", "cuda": "11.0.2"}, [("warn", "driver_branch", "branch 450 since 2023-07")]),
    ({"cuda": "12.8"}, []),
    (
        {"cuda": "12.8", "gpus": [T4]},
        [
            (
                "warn",
                "cuda_driver",
                "CUDA 12.8 compiles without a driver, but no program of it runs here; install driver 525.60.13",
            )
        ],
    ),
    (
        {"driver": "580", "cuda": "13.9"},
        [
            (
                "warn",
                "cuda_driver",
                "Nothing is known of the driver that CUDA 13.9 was made with (known are 11.0 to 13.5)",
            )
        ],
    ),
    (
        {"driver": "535.309.01", "cuda": "13.9"},
        [("stop", "cuda_driver", "is too old"), ("warn", "cuda_driver", "Nothing is known of the driver")],
    ),
    ({"driver": "580", "cuda": "14.0"}, [("warn", "cuda_driver", "Nothing is known of the driver")]),
    ({"driver": "620", "cuda": "13.5"}, []),
    ({"driver": "615.71.09", "cuda": "13.4.1"}, []),
    ({"driver": "610.57.04", "cuda": "13.4.1"}, [("warn", "cuda_driver", "use driver 615")]),
    # CUDA and GPUs
    (
        {"driver": "580", "cuda": "13.0", "gpus": [P40, P40, T4]},
        [
            (
                "warn",
                "cuda_gpu",
                "CUDA 13.0 no longer generates code for Tesla P40 (pascal); use CUDA 12.9 or older for it.",
            )
        ],
    ),
    # CUDA for none of the GPUs
    (
        {"driver": "580", "cuda": "13.0", "gpus": [P40, P40]},
        [
            (
                "stop",
                "cuda_gpu",
                "CUDA 13.0 no longer generates code for Tesla P40 (pascal); use CUDA 12.9 or older for it.",
            )
        ],
    ),
    (
        {"driver": "580", "cuda": "13.0", "gpus": [P40, V100]},
        [
            ("stop", "cuda_gpu", "CUDA 13.0 no longer generates code for Tesla P40"),
            ("stop", "cuda_gpu", "generates code for Tesla V100"),
        ],
    ),
    (
        {"driver": "580", "cuda": "12.6", "gpus": [B200]},
        [("warn", "cuda_gpu", "CUDA 12.6 does not know NVIDIA B200 (blackwell) yet; use CUDA 12.8 or newer for it.")],
    ),
    (
        {"driver": "580", "cuda": "12.6", "gpus": [B300]},
        [("warn", "cuda_gpu", "CUDA 12.6 does not know NVIDIA B300 (blackwell) yet; use CUDA 12.9 or newer for it.")],
    ),
    (
        {"cuda": "12.6", "gpus": [P40, B200], "driver": "580"},
        [("warn", "cuda_gpu", "does not know NVIDIA B200 (blackwell) yet")],
    ),
    # CUDA and GPUs that are in no table
    (
        {"driver": "580", "cuda": "13.0", "gpus": [P40, NEW]},
        [
            ("warn", "driver_gpu", "Nothing is known of the GPU with PCI device id 4abc"),
            ("warn", "cuda_gpu", "CUDA 13.0 no longer generates code for Tesla P40 (pascal)"),
        ],
    ),
    (
        {"driver": "580", "cuda": "13.0", "gpus": [P40, {**NEW, "architecture": "rubin"}]},
        [
            ("warn", "driver_gpu", "Nothing is known of the GPU with PCI device id 4abc"),
            ("warn", "cuda_gpu", "CUDA 13.0 no longer generates code for Tesla P40 (pascal)"),
            ("warn", "cuda_gpu", "Nothing is known of the CUDA toolkits that make code for the GPU with PCI device id"),
        ],
    ),
    # CUDA without GPUs
    ({"driver": "580", "cuda": "13.0", "gpus": []}, []),
    # Code for the B200 also runs on the B300. Later toolkits do not support early Kepler GPUs.
    (
        {"driver": "580", "cuda": "12.8", "gpus": [B300]},
        [("warn", "cuda_gpu", "CUDA 12.8 does not know NVIDIA B300 (blackwell) yet; use CUDA 12.9 or newer for it.")],
    ),
    (
        {"driver": "470.256.02", "cuda": "11.4", "gpus": [{**K80, "compute_capability": "3.0"}]},
        [
            ("stop", "cuda_gpu", "CUDA 11.4 no longer generates code for Tesla K80 (kepler); use CUDA 10.2 or older"),
            ("warn", "driver_branch", ""),
        ],
    ),
    ({"driver": "580", "cuda": "12.9.1", "gpus": [P40, B300]}, []),
    (
        {"driver": "580", "cuda": "12.8", "gpus": [B200, B300]},
        [("warn", "cuda_gpu", "CUDA 12.8 does not know NVIDIA B300 (blackwell) yet; use CUDA 12.9 or newer for it.")],
    ),
    # Without its compute capability, it may be any GPU of its architecture
    ({"driver": "580", "cuda": "12.8", "gpus": [{**B300, "compute_capability": None}]}, []),
    # A driver and a kernel
    ({"driver": "580.178.04", "kernel": "6.8.0-60-generic"}, []),
    ({"driver": "580.178.04", "kernel": "5.14.0-427.el9.x86_64"}, []),
    (
        {"driver": "580.95.05", "kernel": "6.19.0-1-amd64"},
        [
            (
                "stop",
                "driver_kernel",
                "driver 580.95.05 are known not to work with kernel 6.19.0-1-amd64; use driver 580.126.18 or newer",
            ),
            ("warn", "driver_security", "bulletin 5861 of 2026-09; use 580.178.04 or a newer one of its branch."),
        ],
    ),
    # Two rules, one finding: the later fix has both
    (
        {"driver": "580.126.09", "kernel": "7.1.2"},
        [
            ("stop", "driver_kernel", "use driver 580.159 or newer or a kernel older than 6.19."),
            ("warn", "driver_security", ""),
        ],
    ),
    (
        {"driver": "570.133.20", "flavor": "proprietary", "kernel": "6.15.3", "gpus": [T4]},
        [
            (
                "stop",
                "driver_kernel",
                "of driver 570.133.20 are known not to work with kernel 6.15.3; use the open ones or a kernel older than 6.15.",
            ),
            ("warn", "driver_security", ""),
            ("warn", "driver_branch", ""),
        ],
    ),
    (
        {"driver": "570.133.20", "flavor": "proprietary", "kernel": "6.15.3", "gpus": [V100]},
        [
            ("stop", "driver_kernel", "kernel 6.15.3; use a kernel older than 6.15."),
            (
                "warn",
                "driver_security",
                "5747 of 2026-01; use 570.211.01 or a newer one of its branch or 580.178.04.",
            ),
            ("warn", "driver_branch", "use branch 535 or 580."),
        ],
    ),
    (
        {"driver": "570.133.20", "kernel": "6.15.3"},
        [
            ("warn", "driver_kernel", "The proprietary kernel modules"),
            ("warn", "driver_security", ""),
            ("warn", "driver_branch", ""),
        ],
    ),
    (
        {"driver": "570.133.20", "flavor": "open", "kernel": "6.15.3"},
        [("warn", "driver_security", ""), ("warn", "driver_branch", "")],
    ),
    # The fix was backported to this branch
    ({"driver": "570.211.01", "kernel": "6.17.4"}, [("warn", "driver_branch", "")]),
    ({"driver": "570", "kernel": "6.17.4"}, [("warn", "driver_branch", "")]),
    # Kernels that are newer than the driver
    (
        {"driver": "470.256.02", "kernel": "6.12.48"},
        [
            ("warn", "driver_kernel", "(which is of 2024-11, and the driver of 2024-06 at the latest); look into"),
            ("warn", "driver_branch", ""),
        ],
    ),
    ({"driver": "470.256.02", "kernel": "6.9.1"}, [("warn", "driver_branch", "")]),
    ({"driver": "570", "kernel": "7.0.1"}, [("warn", "driver_kernel", "of 2026-04"), ("warn", "driver_branch", "")]),
    ({"driver": "470.256.02", "running": "470.256.02", "kernel": "6.12.48"}, [("warn", "driver_branch", "")]),
    (
        {"driver": "570.195.03", "kernel": "6.17.4", "flavor": "open"},
        [("stop", "driver_kernel", ""), ("warn", "driver_security", ""), ("warn", "driver_branch", "")],
    ),
    # It works already, so its package must have a fix
    ({"driver": "550.163.*", "running": "550.163.01", "kernel": "6.17.4"}, [("warn", "driver_branch", "")]),
    ({"driver": "550", "running": "550.163.01", "kernel": "6.17.4"}, [("warn", "driver_branch", "")]),
    ({"driver": "550.163.01", "running": "550.163.01", "kernel": "6.17.4"}, [("warn", "driver_branch", "")]),
    (
        {"driver": "550.163.01", "running": "550.144.03", "kernel": "6.17.4"},
        [
            ("stop", "driver_kernel", "driver 580.82.07 or newer or a kernel older than 6.17."),
            ("warn", "driver_branch", ""),
        ],
    ),
    # A stable series with the change, one before it, and Debian's numbering
    *(
        ({"driver": "535.154.05", "flavor": "proprietary", "kernel": kernel, "today": "2024-01"}, found)
        for kernel, found in (
            (
                "6.1.76",
                [
                    (
                        "stop",
                        "driver_kernel",
                        "use driver 535.161.07 or newer, the open ones or a kernel older than 6.1.76.",
                    )
                ],
            ),
            ("6.1.75", []),
            ("6.1.0-28-amd64", []),
            ("6.7.2-arch1", []),
            ("6.7.3-arch1", [("stop", "driver_kernel", "")]),
            ("6.9", [("stop", "driver_kernel", "")]),
        )
    ),
    # Supported and unsupported driver branches
    ({"driver": "535.309.01", "today": "2026-06"}, []),
    (
        {"driver": "535.309.01", "today": "2026-07"},
        [("warn", "driver_branch", "535 since 2026-06; use branch 580, 595, 610 or 620.")],
    ),
    (
        {"driver": "470.256.02", "gpus": [K80]},
        [
            (
                "warn",
                "driver_branch",
                "driver branch 470; no supported branch is known that supports all GPUs of the host.",
            )
        ],
    ),
    ({"driver": "631.1"}, [("warn", "driver_branch", "Nothing is known of driver branch 631 (known are 418 to 620")]),
    # The container toolkit
    ({"toolkit": "1.19.1"}, []),
    ({"toolkit": "1.20.0-rc.1"}, []),
    (
        {"toolkit": "1.17.8-1"},
        [
            (
                "warn",
                "toolkit_security",
                "container toolkit 1.17.8-1 has security holes (CVE-2026-24260); install 1.19.1 or newer.",
            )
        ],
    ),
    (
        {"toolkit": "1.18.0"},
        [("warn", "toolkit_security", ""), ("warn", "toolkit", "overwrites the imports in containerd's configuration")],
    ),
    (
        {"toolkit": "1.17.4", "driver": "565.57.01"},
        [
            ("warn", "driver_branch", ""),
            ("warn", "toolkit_security", ""),
            ("warn", "toolkit", "may crash when it describes"),
        ],
    ),
    ({"toolkit": "1.20.1-1"}, []),
    ({"toolkit": "1.20.*"}, []),
    ({"toolkit": "1.17.*"}, [("warn", "toolkit_security", "container toolkit 1.17.* has security holes")]),
    # Ampere's later chips, Grace Hopper and GB10
    (
        {"driver": "450.80.02", "gpus": [A100, GA102]},
        [
            ("stop", "driver_gpu", "Driver 450.80.02 does not know NVIDIA GeForce RTX 3090 yet; use 455 or newer."),
            ("warn", "driver_branch", "branch 450 since 2023-07"),
        ],
    ),
    (
        {"driver": "535.86.10", "gpus": [GH200]},
        [
            ("stop", "driver_gpu", "does not know NVIDIA GH200 480GB yet; use 535.129.03 or newer."),
            ("warn", "driver_security", "bulletin 5821"),
        ],
    ),
    ({"driver": "580.178.04", "flavor": "open", "gpus": [GB10]}, []),
    # Fixes of September 2026, and the newest branch with long support
    *(
        (
            {"driver": driver},
            [("warn", "driver_security", f"bulletin 5861 of 2026-09; use {fixed} or a newer one of its branch.")],
        )
        for driver, fixed in (
            ("580.159.03", "580.178.04"),
            ("595.71.05", "595.91.07"),
            ("610.43.02", "610.57.04"),
            ("615.71.05", "615.71.09"),
        )
    ),
    ({"driver": "620.70.06"}, []),
    (
        {"driver": "620.70.06", "today": "2029-10"},
        [("warn", "driver_branch", "branch 620 since 2029-09; no supported")],
    ),
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
    # Versions that are newer than the tables
    (
        {"toolkit": "1.99.0-1"},
        [
            (
                "warn",
                "toolkit",
                "known of NVIDIA's container toolkit 1.99.0-1 (known are versions up to 1.",
            )
        ],
    ),
    (
        {"driver": "595.91.07", "kernel": "99.1.0-3-amd64"},
        [
            (
                "warn",
                "driver_kernel",
                "Nothing is known of driver 595.91.07 with kernel 99.1.0-3-amd64 (known are kernels up",
            )
        ],
    ),
    ({"driver": "595.91.07", "kernel": "99.1.0-3-amd64", "running": "595.91.07"}, []),
    (
        {"driver": "595.91.07", "cuda": "13.2", "gpus": [{**NEW, "architecture": "rubin"}]},
        [
            ("warn", "driver_gpu", "Nothing is known of the GPU with PCI device id 4abc, so that"),
            (
                "warn",
                "cuda_gpu",
                "Nothing is known of the CUDA toolkits that make code for the GPU with PCI device id 4abc (rubin)",
            ),
        ],
    ),
]


def check_situation(situation: Mapping[str, Any], tables: Mapping[str, Any]) -> dict[str, Any]:
    requested = dict(situation)
    return check_compatibility(requested, tables, requested.pop("today", TODAY))


@pytest.mark.parametrize(("situation", "expected"), CASES)
def test_check_compatibility_of_each_situation(
    tables: Mapping[str, Any], situation: Mapping[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    found = check_situation(situation, tables)["findings"]
    if "today" in situation:  # not about the security of an old driver
        found = [finding for finding in found if finding["topic"] != "driver_security"]
    assert [(finding["level"], finding["topic"]) for finding in found] == [case[:2] for case in expected], found
    for finding, (_level, _topic, words) in zip(found, expected):
        assert words in finding["message"]
        assert finding["message"].endswith(".")
        assert (
            finding["source"] or "othing is known" in finding["message"] or "No driver supports" in finding["message"]
        )


@pytest.mark.parametrize(
    ("gpus", "modules", "branches"),
    [
        ([], None, (None, None)),
        ([ODD], None, (None, None)),
        ([NEW], "open", (None, None)),
        ([T4], "open", (410, None)),
        ([V100], "proprietary", (384, 580)),
        ([V100, T4], "proprietary", (410, 580)),
        ([P40, GH200], "open", (535, 580)),
        ([B200, T4], "open", (570, None)),
        ([ODD, K80], "proprietary", (None, 470)),
        ([{"pci_device_id": "0f06"}], "proprietary", (None, 390)),
        ([{"pci_device_id": "0fef"}], "proprietary", (None, 367)),
        ([{"pci_device_id": "0x1DFF"}], "proprietary", (None, None)),
        ([B300], "open", (580, None)),
    ],
)
def test_check_compatibility_returns_modules_and_branches(
    tables: Mapping[str, Any], gpus: list[dict[str, Any]], modules: str | None, branches: tuple[int | None, int | None]
) -> None:
    result = check_situation({"gpus": gpus}, tables)
    answer = result["open_kernel_modules"]
    assert result["kernel_modules"] == modules
    assert (answer is None, answer == "impossible") == (modules is None, modules == "proprietary")
    assert (answer == "required") == any(gpu in gpus for gpu in (B200, B300, GH200))
    assert tuple(result["driver_branches"].values()) == branches


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        ({"driver": "newest"}, "'newest' is not a driver version; write numbers with dots"),
        ({"cuda": "12"}, "'12' is not a CUDA version; write two or three numbers, as in 12.8"),
        ({"cuda": "12-8"}, "'12-8' is not a CUDA version"),
        ({"driver": "580.95.05", "kernel": "linux"}, "'linux' is not a kernel release; write it as uname -r does"),
        ({"toolkit": "v1"}, "'v1' is not a container toolkit version"),
        ({"flavor": "Open"}, "flavor is 'Open'; choose one of open, proprietary"),
        ({"gpus": {"pci_device_id": "1eb8"}}, "gpus is not a list of dictionaries"),
        ({"gpus": ["1eb8"]}, "gpus is not a list of dictionaries"),
        ({"gpus": [{"pci_device_id": "1eb810de"}]}, "'1eb810de' is not a PCI device id"),
        (
            {"drivers": "580"},
            "the situation has drivers; it takes containerd, cuda, driver, flavor, gpus, kernel, kubelet_cgroup_driver, kubernetes, plugin",
        ),
        ({"today": "May"}, "'May' is not a month; write it as 2026-05"),
    ],
)
def test_check_compatibility_with_invalid_situation_raises(
    tables: Mapping[str, Any], situation: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(CompatibilityError, match=words):
        check_situation(situation, tables)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("toolkit", None, "the table toolkit.security is missing"),
        ("toolkit", {"security": []}, "the table toolkit.faults is missing"),
        ("driver_kernel", {"a": 1}, "the table driver_kernel is not a list"),
        ("driver_kernel", ["a"], "an entry of the table driver_kernel is 'a'; write a dictionary"),
        ("driver_branches", [{"branch": 580}], "an entry of the table driver_branches has no source"),
        ("driver_branches", [{"source": "https://x"}], "an entry of the table driver_branches has no branch"),
    ],
)
def test_check_compatibility_with_invalid_table_raises(
    tables: Mapping[str, Any], name: str, content: Any, words: str
) -> None:
    with pytest.raises(CompatibilityError, match=words):
        check_compatibility({}, {**tables, name: content}, TODAY)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("6.8.0-60-generic", (6, 8, 0)),
        ("5.14.0-427.el9.x86_64", (5, 14, 0)),
        ("6.12.48+deb13-amd64", (6, 12, 48)),
        ("6.17-rc3", (6, 17, 0)),
    ],
)
def test_parse_kernel_of_each_release(text: str, numbers: tuple[int, ...]) -> None:
    assert versions.parse_kernel(text) == numbers


def test_parse_version_compares_as_numbers() -> None:
    assert versions.parse_driver("570.9") < versions.parse_driver("570.26") < versions.parse_driver("570.124.06")
    assert versions.parse_driver("570.211.01") < versions.parse_driver("570") < versions.parse_driver("575.51.02")
    assert (
        versions.parse_driver("580.95.05-0ubuntu1")
        == versions.parse_driver("580.95.5")
        == versions.parse_driver("3:580.95.05-1")
    )
    assert versions.parse_driver("570") == versions.parse_driver("570.*") > versions.parse_driver("570.124.*")
    assert (
        versions.parse_driver("570.124.06") < versions.parse_driver("570.124.*") < versions.parse_driver("570.133.20")
    )
    with pytest.raises(CompatibilityError):
        versions.parse_version(12.8)
