# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions of the role on hosts of each platform, and its refusals."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import find_task
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver.platform_hosts import (
    CUDA,
    FOUND,
    NODE,
    RUNFILE,
    host,
    load_tasks,
)

#: A host, and the value of a variable.
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
    "not-built-for-realtime": (host("SLES", "15.6", "6.4.0-150600.10.17-rt", family="Suse"), "__nvidia_driver_kmp", []),
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
    "suse-azure-g07": (host(*LEAP, "6.4.0-150600.8.48-azure", "Suse", nvidia_driver_branch="595"), "kernel modules"),
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
