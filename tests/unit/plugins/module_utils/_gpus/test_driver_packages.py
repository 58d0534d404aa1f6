# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver packages of AMD and Intel on each platform. The names belong to others, so the test repeats them."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus.driver_packages import PACKAGES, plan_packages

AMD = "https://repo.radeon.com/amdgpu/30.10.2"
INTEL = "https://repositories.intel.com/gpu"
DKMS = ["amdgpu-dkms", "amdgpu-dkms-firmware"]
BUILD = ["intel-fw-gpu", "flex", "bison"]
KERNEL = "6.8.0-60-generic"
EXTRA = f"linux-modules-extra-{KERNEL}"


def host(distribution: str, version: str, architecture: str = "x86_64") -> dict[str, str]:
    return {"distribution": distribution, "version": version, "architecture": architecture, "kernel": KERNEL}


#: Vendor, distribution, version and release; URL, suite, and dependencies.
PLATFORMS = {
    ("amd", "Debian", "12.5", "30.10.2"): (f"{AMD}/ubuntu", "jammy", []),
    ("amd", "Debian", "13.1", "30.10.2"): (f"{AMD}/ubuntu", "noble", []),
    ("amd", "Ubuntu", "22.04", "30.10.2"): (f"{AMD}/ubuntu", "jammy", [EXTRA]),
    ("amd", "Ubuntu", "24.04", "30.10.2"): (f"{AMD}/ubuntu", "noble", [EXTRA]),
    ("amd", "RedHat", "8.10", "30.10.2"): (f"{AMD}/el/8/main/x86_64/", None, []),
    ("amd", "RedHat", "9.6", "30.10.2"): (f"{AMD}/el/9.6/main/x86_64/", None, []),
    ("amd", "OracleLinux", "9.4", "30.10.2"): (f"{AMD}/el/9.4/main/x86_64/", None, []),
    ("amd", "RedHat", "10.1", "30.10.2"): (f"{AMD}/el/10/main/x86_64/", None, []),
    ("amd", "Rocky", "9.6", "30.10.2"): (f"{AMD}/el/9.6/main/x86_64/", None, []),
    ("amd", "SLES", "15.7", "30.10.2"): (f"{AMD}/sle/15.7/main/x86_64/", None, []),
    ("intel", "Ubuntu", "22.04", ""): (f"{INTEL}/ubuntu", "jammy/lts/2350", [*BUILD, EXTRA]),
    ("intel", "Ubuntu", "22.04", "rolling"): (f"{INTEL}/ubuntu", "jammy", [*BUILD, EXTRA]),
    ("intel", "Ubuntu", "24.04", ""): (f"{INTEL}/ubuntu", "noble", [*BUILD, EXTRA]),
    ("intel", "RedHat", "8.6", ""): (f"{INTEL}/rhel/8.6/lts/2350/unified/", None, BUILD),
    ("intel", "RedHat", "9.4", "production/2328"): (f"{INTEL}/rhel/9.4/production/2328/unified/", None, BUILD),
    ("intel", "SLES", "15.5", ""): (f"{INTEL}/sles/15sp5/lts/2350/unified/", None, BUILD),
}


@pytest.mark.parametrize("key", PLATFORMS)
def test_repository_and_packages_of_each_platform(key: tuple[str, str, str, str]) -> None:
    vendor, distribution, version, release = key
    url, suite, dependencies = PLATFORMS[key]
    plan = plan_packages(vendor, host(distribution, version), release)
    source = plan["repository"]
    assert (plan["problem"], source["url"], source.get("suite"), plan["dependencies"]) == ("", url, suite, dependencies)
    assert plan["packages"] == (DKMS if vendor == "amd" else ["intel-i915-dkms"])
    signed = {"components": ["main" if vendor == "amd" else "unified"]} if suite else {"signed": "packages"}
    assert signed.items() <= source.items()
    assert source["key_url"] == (
        "https://repo.radeon.com/rocm/rocm.gpg.key" if vendor == "amd" else f"{INTEL}/intel-graphics.key"
    )
    assert plan["unsupported_modules"] == (vendor == "intel" and distribution == "SLES")


def test_every_row_has_a_case() -> None:
    tested = {(vendor, name) for vendor, name, _version, _release in PLATFORMS}
    assert tested == {(vendor, row.distribution) for vendor, rows in PACKAGES.items() for row in rows.platforms}


#: A host without packages, and what the sentence contains.
REFUSED = {
    (
        "amd",
        "Fedora",
        "43",
        "x86_64",
    ): "AMD has no driver packages for Fedora 43 on x86_64, only for Debian 12, 13; Oracle Linux 8, 9, 10; "
    "RHEL 8, 9, 10; Rocky Linux 9; SLES 15.7; Ubuntu 22.04, 24.04 on x86_64; set amdgpu_driver_source to distribution",
    ("amd", "Rocky", "8.10", "x86_64"): "AMD has no driver packages for Rocky Linux 8.10 on x86_64",
    ("amd", "Debian", "11.3", "x86_64"): "AMD has no driver packages for Debian 11.3",
    ("amd", "Ubuntu", "24.04", "aarch64"): "AMD has no driver packages for Ubuntu 24.04 on aarch64",
    (
        "intel",
        "Debian",
        "12.5",
        "x86_64",
    ): "Intel has no driver packages for Debian 12.5 on x86_64, only for RHEL 8, 9; SLES 15.4, 15.5; Ubuntu "
    "22.04, 24.04 on x86_64; set intel_gpu_driver_source to distribution",
    ("intel", "Ubuntu", "26.04", "x86_64"): "Intel has no driver packages for Ubuntu 26.04",
    ("intel", "RedHat", "10.0", "x86_64"): "Intel has no driver packages for RHEL 10.0",
}


@pytest.mark.parametrize("key", REFUSED)
def test_platform_without_packages_names_those_with_them(key: tuple[str, str, str, str]) -> None:
    vendor, *place = key
    assert plan_packages(vendor, host(*place))["problem"].startswith(REFUSED[key])


@pytest.mark.parametrize(
    ("device", "release", "refused"),
    [
        ("75a8", "30.10.2", "GPU 75a8 (Instinct MI350P) needs AMD's driver packages of release 31.40 or newer"),
        (
            "7551",
            "31.9",
            "GPU 7551 needs AMD's driver packages of release 31.40 or newer, and amdgpu_driver_release is 31.9",
        ),
        ("75a8", "31.40", ""),
        ("75a8", "latest", ""),
        ("74a1", "30.10.2", ""),
    ],
)
def test_release_that_is_too_old_for_a_gpu_is_refused(device: str, release: str, refused: str) -> None:
    problem = plan_packages("amd", host("Ubuntu", "24.04"), release, ["74a1", device])["problem"]
    assert problem.startswith(refused)
    assert bool(problem) == bool(refused)
