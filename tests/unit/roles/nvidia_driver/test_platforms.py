# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of a driver on each platform. The names belong to others, so the test repeats them."""

from __future__ import annotations

import base64
import json

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import LOAD_PLATFORM, ROOT, find_task

ROLE = ROOT / "roles" / "nvidia_driver"
STATE = "/var/lib/gpu-kubernetes"
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"


def host(
    distribution,
    version,
    kernel,
    family="Debian",
    architecture="x86_64",
    release="",
    open_modules="possible",
    **variables,
):
    """Facts of a host, the kernel modules that its GPUs support, and variables of the role."""
    return {
        "host_facts": {
            "distribution": distribution,
            "distribution_version": version,
            "distribution_major_version": version.partition(".")[0],
            "distribution_release": release,
            "os_family": family,
            "kernel": kernel,
            "architecture": architecture,
        },
        "gpu_preflight_compatibility": {"open_kernel_modules": open_modules},
        "nvswitches": variables.pop("nvswitches", 0),
        "secure_boot": variables.pop("secure_boot", False),
        "installed": variables.pop("installed", ""),
        "nvidia_driver_state_dir": STATE,
        **variables,
    }


#: Ubuntu's libraries and kernel modules, by the parts of the name before and after the branch.
UBUNTU = [
    ("libnvidia-compute", ""),
    ("nvidia-utils", ""),
    ("nvidia-compute-utils", ""),
    ("nvidia-dkms", "-open"),
    ("libnvidia-cfg1", ""),
]
RUNFILE = {"nvidia_driver_method": "runfile", "nvidia_driver_version": "580.1"}
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
    "rhel-own-kernel": (
        host("RedHat", "9.5", "6.9.1", family="RedHat"),
        DNF,
        [],
        f"{CUDA}/rhel9/x86_64/D42D0685.pub",
    ),
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
FACTS = {
    key: "{{ host_facts['" + key + "'] }}"
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
    "driver": {
        "secure_boot": "{{ secure_boot }}",
        "library_version": "{{ installed }}",
        "installed_module_version": None,
    },
}
RECORDED = [{"path": f"{STATE}/state/packages-nvidia-driver.json"}]
PLAN = {
    "plan": [
        "{{ __nvidia_driver_versioned }}",
        "{{ __nvidia_driver_unversioned }}",
        # The key belongs to the repository.
        "{{ source.key_url | default('') if source.key_url | default('') | dirname == source.url | default('') else source }}",
    ]
}


#: A host, and the value of a variable.
OPTIONS = ["--silent", "--no-x-check", "--no-install-compat32-libs", "--dkms", "--kernel-module-type=open"]
RECORD = {"version": "580.1", "options": OPTIONS, "url": "https://x.example/580.run"}
NODE = ("Ubuntu", "24.04", "6.8.0-61-generic")
DECISIONS = {
    "signed-packages": (host(*NODE, secure_boot=True), "__nvidia_driver_signed", True),
    "built-by-the-distribution": (
        host("SLES", "15.7", "6.4.0-150700.53.40-default", family="Suse", nvidia_driver_branch="595", secure_boot=True),
        "__nvidia_driver_kmp",
        ["nvidia-open-driver-G07-signed-cuda-kmp-default"],
    ),
    "built-for-64k-pages": (
        host("SLES", "16.0", "6.12.0-160000.5-64kb", family="Suse", architecture="aarch64"),
        "__nvidia_driver_kmp",
        ["nvidia-open-driver-G07-signed-cuda-kmp-64kb"],
    ),
    "built-for-azure": (
        host("SLES", "15.6", "6.4.0-150600.8.48-azure", family="Suse", secure_boot=True),
        "__nvidia_driver_kmp",
        ["nvidia-open-driver-G06-signed-cuda-kmp-azure"],
    ),
    "not-built-for-realtime": (
        host("SLES", "15.6", "6.4.0-150600.10.17-rt", family="Suse"),
        "__nvidia_driver_kmp",
        [],
    ),
    "built-by-an-installer": (
        host("SLES", "15.7", "6.4.0-150700.53.40-default", family="Suse", **RUNFILE),
        "__nvidia_driver_kmp",
        [],
    ),
    "key-of-tumbleweed": (
        host("openSUSE Tumbleweed", "20260101", "6.17.1-1-default", family="Suse"),
        "platform_nvidia_key_url",
        f"{CUDA}/suse16/x86_64/3A8B5622.pub",
    ),
    "with-nvswitches": (host(*NODE, nvswitches=4), "__nvidia_driver_same_version", True),
    "without-nvswitches": (host(*NODE), "__nvidia_driver_same_version", False),
    "own-packages": (
        host(*NODE, nvswitches=4, nvidia_driver_packages=["nvidia-driver-580", "nvtop"]),
        "__nvidia_driver_same_version",
        False,
    ),
    "unsigned-by-an-installer": (host(*NODE, secure_boot=True, **RUNFILE), "__nvidia_driver_signed", False),
    "another-kernel-since": (host(*NODE, **RUNFILE), "__nvidia_driver_runfile_differs", False),
    "another-flavor": (
        host(*NODE, nvidia_driver_kernel_modules="proprietary", **RUNFILE),
        "__nvidia_driver_runfile_differs",
        True,
    ),
    "options-of-the-former-driver": (
        host(*NODE, nvidia_driver_former={"version": "570.2", "options": ["--silent"]}, **RUNFILE),
        "__nvidia_driver_runfile_options",
        ["--silent"],
    ),
}


def load_tasks(**more):
    """Tasks that load the variables of a host's platform and role, with the facts of the host."""
    content = base64.b64encode(json.dumps(RECORD).encode()).decode()
    facts = {
        "__nvidia_driver_facts": {"ansible_facts": {"nvml": FOUND}},
        "__nvidia_driver_records": {"files": RECORDED},
        "__nvidia_driver_runfile_recorded": {"content": content},
        **FACTS,
        **more,
        "cacheable": True,
    }
    load = {"ansible.builtin.include_vars": {"file": f"{ROLE}/vars/main.yml"}}
    return [{"ansible.builtin.set_fact": facts}, LOAD_PLATFORM, load]


@pytest.fixture
def read_plans(evaluate):
    """Run tasks on hosts with these variables: the fact ``plan`` by host."""

    def run_tasks(hosts, *tasks):
        defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
        return evaluate(
            {name: {**defaults, **variables} for name, variables in hosts.items()},
            [{"hosts": "all", "gather_facts": False, "tasks": list(tasks)}],
            "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'plan')))",
        )

    return run_tasks


def test_packages_and_repositories_of_each_platform(read_plans):
    hosts = {name: variables for name, (variables, *_expected) in PLATFORMS.items()}
    source = {"source": "{{ __nvidia_driver_choice.repository | default({}) }}"}
    plans = read_plans(hosts, *load_tasks(), {"ansible.builtin.set_fact": PLAN, "vars": source})
    assert plans == {name: expected for name, (_variables, *expected) in PLATFORMS.items()}


T4 = {"name": "Tesla T4", "pci_device_id": "1eb8", "lost": False}
K80 = {"name": "Tesla K80", "pci_device_id": "102d", "lost": False}
#: A host and its GPU, and the message about an automatic choice.
KNOWN_BAD = {
    "flavor": (
        host("Debian", "12.5", "6.15.3", nvidia_driver_version="570.133.20"),
        T4,
        "The proprietary kernel modules of driver 570.133.20 are known not to work with kernel 6.15.3",
    ),
    "branch": (host(*NODE), K80, "Driver 580 no longer supports Tesla K80"),
}


LEAP = ("openSUSE Leap", "15.6")
#: Kernels, and their required packages without a known name.
UNNAMED_PARTS = {
    "el": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64", "RedHat"), ""),
    "fedora": (host("Fedora", "43", "6.17.1-300.fc43.x86_64", "RedHat"), ""),
    "uek": (host("OracleLinux", "9.6", "5.15.0-300.163.18.el9uek.x86_64", "RedHat"), ""),
    "uek-64k": (host("OracleLinux", "9.6", "5.15.0-300.163.18.el9uek.aarch64.64k", "RedHat"), "headers"),
    "uek-64k-runfile": (host("OracleLinux", "9.6", "5.15.0-300.163.18.el9uek.64k", "RedHat", **RUNFILE), "headers"),
    "debug": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64+debug", "RedHat"), "headers"),
    "64k-debug": (host("RedHat", "9.5", "5.14.0-503.el9.aarch64+64k-debug", "RedHat"), "headers"),
    "rt-64k": (host("RedHat", "9.5", "5.14.0-503.el9.aarch64+rt-64k", "RedHat"), "headers"),
    "elrepo": (host("Rocky", "9.5", "6.9.1-1.el9.elrepo.x86_64", "RedHat"), "headers"),
    "own": (host("Rocky", "9.5", "6.9.1", "RedHat"), "headers"),
    "el-own-packages": (
        host("Rocky", "9.5", "6.9.1", "RedHat", nvidia_driver_packages=["nvidia-driver-cuda"]),
        "headers",
    ),
    "own-headers": (host("Rocky", "9.5", "6.9.1", "RedHat", nvidia_driver_headers=False), ""),
    "libraries": (host("Rocky", "9.5", "6.9.1", "RedHat", nvidia_driver_kernel_modules="none"), ""),
    "suse": (host(*LEAP, "6.4.0-150600.23.60-default", "Suse"), ""),
    "suse-64kb": (host(*LEAP, "6.4.0-150600.23.60-64kb", "Suse", architecture="aarch64"), ""),
    "suse-azure": (host(*LEAP, "6.4.0-150600.8.48-azure", "Suse"), ""),
    "suse-azure-g07": (
        host(*LEAP, "6.4.0-150600.8.48-azure", "Suse", nvidia_driver_branch="595"),
        "kernel modules",
    ),
    "suse-azure-15.7": (host("SLES", "15.7", "6.4.0-150700.20.6-azure", "Suse"), "kernel modules"),
    "suse-rt": (host(*LEAP, "6.4.0-150600.10.17-rt", "Suse"), "kernel modules"),
    "suse-longterm": (host("openSUSE Tumbleweed", "20260301", "6.12.35-1-longterm", "Suse"), "kernel modules"),
    "suse-own-kernel": (host(*LEAP, "6.9.0-rc1", "Suse"), "kernel modules"),
    "suse-own-packages": (host(*LEAP, "6.9.1", "Suse", nvidia_driver_packages=["nvidia-open-driver-G06"]), ""),
    "suse-libraries": (host(*LEAP, "6.9.1", "Suse", nvidia_driver_kernel_modules="none"), ""),
    "suse-rt-runfile": (host(*LEAP, "6.4.0-150600.10.17-rt", "Suse", **RUNFILE), ""),
    "suse-own-kernel-runfile": (host(*LEAP, "6.9.1", "Suse", **RUNFILE), "headers"),
    "suse-own-headers-runfile": (host(*LEAP, "6.9.1", "Suse", nvidia_driver_headers=False, **RUNFILE), ""),
}


def test_other_decisions_of_the_role(read_plans):
    cases = {
        **DECISIONS,
        **{
            name: (variables, "__nvidia_driver_unnamed_part", part) for name, (variables, part) in UNNAMED_PARTS.items()
        },
    }
    assert len(cases) == len(DECISIONS) + len(UNNAMED_PARTS)
    hosts = {name: {**variables, "variable": variable} for name, (variables, variable, _value) in cases.items()}
    plan = {"plan": "{{ lookup('ansible.builtin.vars', variable) }}"}
    values = read_plans(hosts, *load_tasks(), {"ansible.builtin.set_fact": plan})
    assert values == {name: value for name, (*_variables, value) in cases.items()}


#: A host, the flavor of its kernel modules, and whether a change to open ones is refused.
FLAVORS = {
    "dnf": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64", family="RedHat"), "proprietary", True),
    "dnf-same": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64", family="RedHat"), "open", False),
    "dnf-unknown": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64", family="RedHat"), None, False),
    "pacman": (host("Archlinux", "", "6.17.8-arch1-1", family="Archlinux"), "proprietary", True),
    "apt": (host(*NODE), "proprietary", False),
}
VALIDATE = {
    "block": [
        {"ansible.builtin.include_role": {"name": "gpu.kubernetes.nvidia_driver", "tasks_from": "validate_managed"}}
    ],
    "rescue": [{"ansible.builtin.set_fact": {"plan": "{{ ansible_failed_result.msg }}"}}],
}


def test_other_flavor_and_unknown_package_name_are_refused(read_plans):
    """Where the package manager cannot replace the flavor, and for a kernel whose headers have no known name."""
    hosts = {
        name: {**variables, "flavor": flavor, "nvidia_driver_kernel_modules": "open", "installed": "580.159.03"}
        for name, (variables, flavor, _refused) in FLAVORS.items()
    }
    hosts["elrepo"] = {**host("Rocky", "9.5", "6.9.1-1.el9.elrepo.x86_64", family="RedHat"), "flavor": None}
    hosts["own-headers"] = {**hosts["elrepo"], "nvidia_driver_headers": False}
    nvml = {**FOUND, "gpus": [T4], "source": "pci", "driver": {**FOUND["driver"], "module_flavor": "{{ flavor }}"}}
    tasks = [
        find_task("nvidia_driver", "validate_managed", words)
        for words in ("Refuse a kernel whose packages have no known name", "Refuse another flavor of kernel modules")
    ]
    rescue = [{"ansible.builtin.set_fact": {"plan": "{{ ansible_failed_result.msg }}"}}]
    plans = read_plans(
        {name: {**variables, "plan": ""} for name, variables in hosts.items()},
        *load_tasks(__nvidia_driver_facts={"ansible_facts": {"nvml": nvml}}),
        {"block": tasks, "rescue": rescue},
    )
    for name, (_variables, flavor, refused) in FLAVORS.items():
        words = f"{name}: the host has the {flavor} kernel modules, which "
        assert bool(plans[name]) is refused, plans[name]
        assert plans[name].startswith(words) is refused, plans[name]
    words = (
        "elrepo: the package name of the headers for the running kernel 6.9.1-1.el9.elrepo.x86_64 is not known on Rocky"
    )
    assert plans["elrepo"].startswith(words)
    assert plans["own-headers"] == ""


def test_automatic_choice_is_checked(read_plans):
    hosts = {name: {**variables, "gpu": gpu} for name, (variables, gpu, _words) in KNOWN_BAD.items()}
    nvml = {"source": "pci", "driver_version": None, "driver": None, "gpus": ["{{ gpu }}"]}
    plans = read_plans({**hosts}, *load_tasks(nvml=nvml), VALIDATE)
    for name, (*_variables, words) in KNOWN_BAD.items():
        assert f"{name}: {words}" in plans[name]
