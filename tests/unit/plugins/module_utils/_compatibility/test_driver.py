# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings on a driver, its kernel modules, its GPUs and its kernel: a row for each, and for hosts without one."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._compatibility.situations import (
    A100,
    B200,
    B300,
    GA102,
    GB10,
    GH200,
    K80,
    NEW,
    ODD,
    P40,
    T4,
    V100,
    Finding,
    check_findings,
)

CASES: list[tuple[dict[str, Any], list[Finding]]] = [
    # A driver and GPUs
    (
        {"driver": "570.86.10", "gpus": [B200, B200]},
        [
            ("stop", "driver_gpu", "Driver 570.86.10 does not know NVIDIA B200 yet; use 570.86.15 or newer."),
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
            ("warn", "driver_gpu", "no longer supports Tesla K80; use branch 470, the last that does, or an older"),
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
            ("warn", "driver_security", "5747 of 2026-01; use 570.211.01 or a newer one of its branch or 580.178.04."),
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
    # Versions that are newer than the tables
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
]


@pytest.mark.parametrize(("situation", "expected"), CASES)
def test_check_compatibility_of_each_situation(
    tables: Mapping[str, Any], situation: Mapping[str, Any], expected: list[Finding]
) -> None:
    check_findings(tables, situation, expected)
