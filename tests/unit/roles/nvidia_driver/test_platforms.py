# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of a driver on each platform. The names belong to others, so the test repeats them."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver.platform_hosts import (
    CUDA,
    RUNFILE,
    host,
    load_tasks,
)

#: Ubuntu's libraries and kernel modules, by the parts of the name before and after the branch.
UBUNTU = [
    ("libnvidia-compute", ""),
    ("nvidia-utils", ""),
    ("nvidia-compute-utils", ""),
    ("nvidia-dkms", "-open"),
    ("libnvidia-cfg1", ""),
]
#: With NVIDIA's repository for RHEL and its derivatives.
DNF = ["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-persistenced"]
#: A host, packages in the driver's version, other packages, and the key of their repository.
PLATFORMS = {
    "debian": (
        host("Debian", "12.5", "6.1.0-56-cloud-amd64", release="bookworm"),
        ["nvidia-smi", "libnvidia-ml1", "libcuda1", "nvidia-kernel-dkms"],
        ["nvidia-modprobe", "linux-headers-6.1.0-56-cloud-amd64", "linux-headers-cloud-amd64", "nvidia-persistenced"],
        "",
    ),
    "debian-blackwell": (
        host(
            "Debian",
            "13",
            "6.5.0-0.deb12.4-amd64",
            release="trixie",
            open_modules="required",
            nvidia_driver_persistence=False,
        ),
        ["nvidia-smi", "libnvidia-ml1", "libcuda1", "nvidia-open-kernel-dkms"],
        ["nvidia-modprobe", "linux-headers-6.5.0-0.deb12.4-amd64", "linux-headers-amd64"],
        "",
    ),
    "debian-libraries": (
        host("Debian", "12.5", "6.18.1", release="bookworm", nvidia_driver_kernel_modules="none"),
        ["nvidia-smi", "libnvidia-ml1", "libcuda1"],
        [],
        "",
    ),
    "debian-nvidia-hgx": (
        host("Debian", "12.5", "6.1.0-56-amd64", nvidia_driver_provider="nvidia", nvswitches=4),
        ["nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-fabricmanager"],
        ["linux-headers-6.1.0-56-amd64", "linux-headers-amd64", "nvidia-persistenced"],
        f"{CUDA}/debian12/x86_64/3bf863cc.pub",
    ),
    "ubuntu": (
        host("Ubuntu", "24.04", "6.8.0-60-generic"),
        [
            "libnvidia-compute-580-server",
            "nvidia-utils-580-server",
            "nvidia-compute-utils-580-server",
            "nvidia-dkms-580-server-open",
            "libnvidia-cfg1-580-server",
        ],
        ["linux-headers-6.8.0-60-generic", "linux-headers-generic"],
        "",
    ),
    # The branch of the installed driver, as after an upgrade.
    "ubuntu-upgraded": (
        host("Ubuntu", "24.04", "6.8.0-60-generic", installed="590.48.01"),
        [
            "libnvidia-compute-590-server",
            "nvidia-utils-590-server",
            "nvidia-compute-utils-590-server",
            "nvidia-dkms-590-server-open",
            "libnvidia-cfg1-590-server",
        ],
        ["linux-headers-6.8.0-60-generic", "linux-headers-generic"],
        "",
    ),
    "ubuntu-volta-secure-boot": (
        host(
            "Ubuntu",
            "24.04",
            "6.8.0-60-generic",
            open_modules="impossible",
            secure_boot=True,
            nvidia_driver_branch="535",
        ),
        [
            "libnvidia-compute-535-server",
            "nvidia-utils-535-server",
            "nvidia-compute-utils-535-server",
            "libnvidia-cfg1-535-server",
        ],
        ["linux-modules-nvidia-535-server-6.8.0-60-generic", "linux-modules-nvidia-535-server-generic"],
        "",
    ),
    "ubuntu-newer-kernel": (
        host("Ubuntu", "24.04", "6.14.0-33-generic"),
        [f"{name}-580-server{more}" for name, more in UBUNTU],
        ["linux-headers-6.14.0-33-generic", "linux-headers-generic-hwe-24.04"],
        "",
    ),
    "ubuntu-newer-kernel-secure-boot": (
        host("Ubuntu", "22.04", "6.8.0-60-generic", secure_boot=True),
        [f"{name}-580-server" for name, more in UBUNTU if not more],
        [f"linux-modules-nvidia-580-server-open-{line}" for line in ("6.8.0-60-generic", "generic-hwe-22.04")],
        "",
    ),
    "ubuntu-nvidia": (
        host(
            "Ubuntu",
            "22.04",
            "5.15.0-1064-aws",
            nvidia_driver_provider="nvidia",
            nvidia_driver_version="570.195.03",
            nvswitches=1,
        ),
        [
            "libnvidia-compute-570",
            "nvidia-utils-570",
            "nvidia-compute-utils-570",
            "nvidia-dkms-570-open",
            "libnvidia-cfg1-570",
            "nvidia-fabricmanager-570",
        ],
        ["linux-headers-5.15.0-1064-aws", "linux-headers-aws"],
        f"{CUDA}/ubuntu2204/x86_64/3bf863cc.pub",
    ),
    "ubuntu-nvidia-without-suffix": (
        host(
            "Ubuntu",
            "24.04",
            "6.8.0-60-generic",
            nvidia_driver_provider="nvidia",
            nvidia_driver_branch="595",
            nvswitches=1,
        ),
        [
            "libnvidia-compute",
            "nvidia-utils",
            "nvidia-compute-utils",
            "nvidia-dkms-open",
            "libnvidia-cfg1",
            "nvidia-fabricmanager",
        ],
        ["linux-headers-6.8.0-60-generic", "linux-headers-generic"],
        f"{CUDA}/ubuntu2404/x86_64/3bf863cc.pub",
    ),
    "rocky-arm": (
        host("Rocky", "9.4", "5.14.0-427.el9.aarch64", family="RedHat", architecture="aarch64", nvswitches=1),
        ["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-persistenced", "nvidia-fabricmanager"],
        ["kernel-devel-5.14.0-427.el9.aarch64"],
        f"{CUDA}/rhel9/sbsa/D42D0685.pub",
    ),
    "rocky-volta": (
        host("Rocky", "8.10", "4.18.0-553.el8_10.x86_64", family="RedHat", open_modules="impossible"),
        ["nvidia-driver-cuda", "kmod-nvidia-latest-dkms", "nvidia-persistenced"],
        ["kernel-devel-4.18.0-553.el8_10.x86_64"],
        f"{CUDA}/rhel8/x86_64/D42D0685.pub",
    ),
    "fedora": (
        host("Fedora", "43", "6.17.1-300.fc43.x86_64", family="RedHat", nvidia_driver_headers=False),
        ["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-persistenced"],
        [],
        f"{CUDA}/fedora43/x86_64/1940C73E.pub",
    ),
    "oracle": (
        host("OracleLinux", "9.6", "5.14.0-570.12.1.0.1.el9_6.x86_64", family="RedHat"),
        DNF,
        ["kernel-devel-5.14.0-570.12.1.0.1.el9_6.x86_64"],
        f"{CUDA}/rhel9/x86_64/D42D0685.pub",
    ),
    "oracle-uek": (
        host("OracleLinux", "9.6", "5.15.0-300.163.18.el9uek.x86_64", family="RedHat"),
        DNF,
        ["kernel-uek-devel-5.15.0-300.163.18.el9uek.x86_64"],
        f"{CUDA}/rhel9/x86_64/D42D0685.pub",
    ),
    "oracle-uek-arm-runfile": (
        host("OracleLinux", "10.0", "6.12.0-100.28.2.2.el10uek.aarch64", "RedHat", architecture="aarch64", **RUNFILE),
        [],
        ["dkms", "gcc", "make", "kernel-uek-devel-6.12.0-100.28.2.2.el10uek.aarch64"],
        f"{CUDA}/rhel10/sbsa/CDF6BA43.pub",
    ),
    "rhel-64k": (
        host("RedHat", "9.5", "5.14.0-503.14.1.el9_5.aarch64+64k", family="RedHat", architecture="aarch64"),
        DNF,
        ["kernel-64k-devel-5.14.0-503.14.1.el9_5.aarch64"],
        f"{CUDA}/rhel9/sbsa/D42D0685.pub",
    ),
    "rhel-realtime": (
        host("RedHat", "9.5", "5.14.0-503.14.1.el9_5.x86_64+rt", family="RedHat"),
        DNF,
        ["kernel-rt-devel-5.14.0-503.14.1.el9_5.x86_64"],
        f"{CUDA}/rhel9/x86_64/D42D0685.pub",
    ),
    "rhel-8-realtime": (
        host("RedHat", "8.7", "4.18.0-425.3.1.rt7.213.el8.x86_64", family="RedHat"),
        DNF,
        ["kernel-rt-devel-4.18.0-425.3.1.rt7.213.el8.x86_64"],
        f"{CUDA}/rhel8/x86_64/D42D0685.pub",
    ),
    "rocky-cloud": (
        host("Rocky", "9.5", "5.14.0-503.14.1.el9_5.cloud.1.0.x86_64", family="RedHat"),
        DNF,
        ["kernel-devel-5.14.0-503.14.1.el9_5.cloud.1.0.x86_64"],
        f"{CUDA}/rhel9/x86_64/D42D0685.pub",
    ),
    "rhel-own-kernel": (host("RedHat", "9.5", "6.9.1", family="RedHat"), DNF, [], f"{CUDA}/rhel9/x86_64/D42D0685.pub"),
    "amazon": (
        host("Amazon", "2023", "6.1.128-136.201.amzn2023.x86_64", family="RedHat"),
        DNF,
        ["kernel-devel-6.1.128-136.201.amzn2023.x86_64"],
        f"{CUDA}/amzn2023/x86_64/D42D0685.pub",
    ),
    "amazon-newer-series": (
        host("Amazon", "2023", "6.12.37-61.105.amzn2023.x86_64", family="RedHat"),
        DNF,
        ["kernel6.12-devel-6.12.37-61.105.amzn2023.x86_64"],
        f"{CUDA}/amzn2023/x86_64/D42D0685.pub",
    ),
    "leap": (
        host("openSUSE Leap", "15.6", "6.4.0-150600.23.60-default", family="Suse", secure_boot=True),
        ["nvidia-compute-utils-G06", "nvidia-persistenced"],
        [],
        f"{CUDA}/opensuse15/x86_64/D42D0685.pub",
    ),
    "sles": (
        host("SLES", "16.0", "6.12.0-160000.5-default", family="Suse"),
        ["nvidia-compute-utils-G07", "nvidia-persistenced"],
        [],
        f"{CUDA}/suse16/x86_64/3A8B5622.pub",
    ),
    "sles-newer-branch": (
        host("SLES", "15.7", "6.4.0-150700.53.40-default", family="Suse", nvidia_driver_branch="595"),
        ["nvidia-compute-utils-G07", "nvidia-persistenced"],
        [],
        f"{CUDA}/sles15/x86_64/D42D0685.pub",
    ),
    "leap-runfile": (
        host("openSUSE Leap", "15.6", "6.4.0-150600.23.60-default", family="Suse", **RUNFILE),
        [],
        ["dkms", "gcc", "make", "kernel-default-devel"],
        f"{CUDA}/opensuse15/x86_64/D42D0685.pub",
    ),
    "leap-arm-runfile": (
        host("openSUSE Leap", "15.6", "6.4.0-150600.23.70-64kb", family="Suse", architecture="aarch64", **RUNFILE),
        [],
        ["dkms", "gcc", "make", "kernel-64kb-devel"],
        f"{CUDA}/opensuse15/sbsa/D42D0685.pub",
    ),
    "sles-azure-runfile": (
        host("SLES", "15.7", "6.4.0-150700.20.6-azure", family="Suse", **RUNFILE),
        [],
        ["dkms", "gcc", "make", "kernel-azure-devel"],
        f"{CUDA}/sles15/x86_64/D42D0685.pub",
    ),
    "leap-runfile-own-headers": (
        host("openSUSE Leap", "15.6", "6.4.0-150600.23.60-default", "Suse", nvidia_driver_headers=False, **RUNFILE),
        [],
        ["dkms", "gcc", "make"],
        f"{CUDA}/opensuse15/x86_64/D42D0685.pub",
    ),
    "arch": (host("Archlinux", "", "6.17.8-arch1-1", family="Archlinux"), ["nvidia-utils", "nvidia-open"], [], ""),
    "arch-runfile": (
        host("Archlinux", "", "6.17.8-arch1-1", family="Archlinux", **RUNFILE),
        [],
        ["dkms", "gcc", "make", "linux-headers"],
        "",
    ),
    "arch-lts": (
        host("Archlinux", "", "6.12.58-1-lts", family="Archlinux", open_modules="impossible"),
        ["nvidia-utils", "nvidia-lts"],
        ["linux-lts-headers"],
        "",
    ),
    "arch-zen": (
        host("Archlinux", "", "6.17.8-zen1-1-zen", family="Archlinux"),
        ["nvidia-utils", "nvidia-open-dkms"],
        ["linux-zen-headers"],
        "",
    ),
    "own": (
        host(
            "Debian",
            "12.5",
            "6.1.0-56-amd64",
            nvidia_driver_packages=["nvidia-tesla-535-driver"],
            nvidia_driver_headers=False,
        ),
        ["nvidia-tesla-535-driver"],
        ["nvidia-modprobe", "nvidia-persistenced"],
        "",
    ),
}
PLAN = {
    "plan": [
        "{{ __nvidia_driver_versioned }}",
        "{{ __nvidia_driver_unversioned }}",
        # The key belongs to the repository.
        "{{ source.key_url | default('') if source.key_url | default('') | dirname == source.url | default('') else source }}",
    ]
}


def test_packages_and_repositories_of_each_platform(read_plans):
    hosts = {name: variables for name, (variables, *_expected) in PLATFORMS.items()}
    source = {"source": "{{ __nvidia_driver_choice.repository | default({}) }}"}
    plans = read_plans(hosts, *load_tasks(), {"ansible.builtin.set_fact": PLAN, "vars": source})
    assert plans == {name: expected for name, (_variables, *expected) in PLATFORMS.items()}
