# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings on CUDA and on the container toolkit: a row for each, and for hosts without one."""

from __future__ import annotations

from typing import Any, Mapping

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.check import check_compatibility
from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.versions import CompatibilityError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._compatibility.situations import (
    A100,
    B200,
    B300,
    GH200,
    K80,
    NEW,
    ODD,
    P40,
    T4,
    TODAY,
    V100,
    Finding,
    check_findings,
    check_situation,
)

CASES: list[tuple[dict[str, Any], list[Finding]]] = [
    ({}, []),
    ({"driver": "", "cuda": None, "gpus": []}, []),
    ({"driver": "580.178.04", "gpus": [T4, A100]}, []),
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
    # Versions that are newer than the tables
    (
        {"toolkit": "1.99.0-1"},
        [("warn", "toolkit", "known of NVIDIA's container toolkit 1.99.0-1 (known are versions up to 1.")],
    ),
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


@pytest.mark.parametrize(("situation", "expected"), CASES)
def test_check_compatibility_of_each_situation(
    tables: Mapping[str, Any], situation: Mapping[str, Any], expected: list[Finding]
) -> None:
    check_findings(tables, situation, expected)


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
