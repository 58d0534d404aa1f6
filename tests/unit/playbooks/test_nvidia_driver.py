# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which packages a driver means on each platform: names of others, so that each is written down here once more."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")

ROLE = Path(__file__).resolve().parents[3] / "roles" / "nvidia_driver"
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"


def host(
    distribution, version, kernel, family="Debian", architecture="x86_64", release="", open_modules="possible", **asked
):
    """A host with its facts, what its GPUs take, and what is asked of the role."""
    return {
        "given": {
            "distribution": distribution,
            "distribution_version": version,
            "distribution_major_version": version.partition(".")[0],
            "distribution_release": release,
            "os_family": family,
            "kernel": kernel,
            "architecture": architecture,
        },
        "gpu_preflight_compatibility": {"open_kernel_modules": open_modules},
        "nvswitches": asked.pop("nvswitches", 0),
        "secure_boot": asked.pop("secure_boot", False),
        **asked,
    }


#: What is asked, packages in the driver's version, other packages, and where they come from.
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
        f"{CUDA}/debian12/x86_64",
    ),
    "ubuntu": (
        host("Ubuntu", "24.04", "6.8.0-60-generic"),
        [
            "libnvidia-compute-580-server",
            "nvidia-utils-580-server",
            "nvidia-compute-utils-580-server",
            "nvidia-dkms-580-server-open",
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
        ["libnvidia-compute-535-server", "nvidia-utils-535-server", "nvidia-compute-utils-535-server"],
        ["linux-modules-nvidia-535-server-6.8.0-60-generic", "linux-modules-nvidia-535-server-generic"],
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
            "nvidia-fabricmanager-570",
        ],
        ["linux-headers-5.15.0-1064-aws", "linux-headers-aws"],
        f"{CUDA}/ubuntu2204/x86_64",
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
        ["libnvidia-compute", "nvidia-utils", "nvidia-compute-utils", "nvidia-dkms-open", "nvidia-fabricmanager"],
        ["linux-headers-6.8.0-60-generic", "linux-headers-generic"],
        f"{CUDA}/ubuntu2404/x86_64",
    ),
    "rocky-arm": (
        host("Rocky", "9.4", "5.14.0-427.el9.aarch64", family="RedHat", architecture="aarch64", nvswitches=1),
        ["nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-fabric-manager"],
        ["python3-dnf-plugin-versionlock", "kernel-devel-5.14.0-427.el9.aarch64", "nvidia-persistenced"],
        f"{CUDA}/rhel9/sbsa",
    ),
    "rocky-volta": (
        host("Rocky", "8.10", "4.18.0-553.el8_10.x86_64", family="RedHat", open_modules="impossible"),
        ["nvidia-driver-cuda", "kmod-nvidia-latest-dkms"],
        ["python3-dnf-plugin-versionlock", "kernel-devel-4.18.0-553.el8_10.x86_64", "nvidia-persistenced"],
        f"{CUDA}/rhel8/x86_64",
    ),
    "fedora": (
        host("Fedora", "43", "6.17.1-300.fc43.x86_64", family="RedHat", nvidia_driver_headers=False),
        ["nvidia-driver-cuda", "kmod-nvidia-open-dkms"],
        ["nvidia-persistenced"],
        f"{CUDA}/fedora43/x86_64",
    ),
    "leap": (
        host("openSUSE Leap", "15.6", "6.4.0-150600.23.60-default", family="Suse", secure_boot=True),
        ["nvidia-compute-utils-G06"],
        ["nvidia-open-driver-G06-signed-cuda-kmp-default", "nvidia-persistenced"],
        f"{CUDA}/opensuse15/x86_64",
    ),
    "sles": (
        host("SLES", "16.0", "6.12.0-160000.5-default", family="Suse"),
        ["nvidia-compute-utils-G06"],
        ["nvidia-open-driver-G06-signed-cuda-kmp-default", "nvidia-persistenced"],
        f"{CUDA}/suse16/x86_64",
    ),
    "arch": (host("Archlinux", "", "6.17.8-arch1-1", family="Archlinux"), ["nvidia-utils", "nvidia-open"], [], ""),
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
FACTS = {
    key: "{{ given['" + key + "'] }}"
    for key in (
        "distribution",
        "distribution_version",
        "distribution_major_version",
        "distribution_release",
        "os_family",
        "kernel",
        "architecture",
    )
}
FOUND = {
    "gpus": [{"name": "a GPU", "lost": False}],
    "nvswitches": "{{ nvswitches }}",
    "driver": {"secure_boot": "{{ secure_boot }}", "library_version": None, "installed_module_version": None},
}
PLAN = {
    "plan": [
        "{{ __nvidia_driver_versioned }}",
        "{{ __nvidia_driver_unversioned }}",
        "{{ (__nvidia_driver_choice.repository | default({})).url | default('') }}",
    ]
}


def test_packages_and_repositories_of_each_platform(hear):
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    names = ["main", "{{ given['os_family'] }}", "{{ given['distribution'] }}"]
    load = [
        {"ansible.builtin.include_vars": {"file": "{{ item }}"}, "loop": "{{ files | select('is_file') | unique }}"},
    ]
    look = {"__nvidia_driver_look": {"ansible_facts": {"nvml": FOUND}}, **FACTS, "cacheable": True}
    tasks = [{"ansible.builtin.set_fact": look}, *load, {"ansible.builtin.set_fact": PLAN}]
    files = [f"{ROLE}/vars/{name}.yml" for name in names]
    told = hear(
        {name: {**defaults, **given} for name, (given, *_expected) in PLATFORMS.items()},
        [{"hosts": "all", "gather_facts": False, "tasks": tasks, "vars": {"files": files}}],
        "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'plan')))",
    )
    assert told == {name: expected for name, (_given, *expected) in PLATFORMS.items()}
