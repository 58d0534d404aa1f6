# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions of the role on hosts of each platform, and its refusals."""

from __future__ import annotations

import base64
import json

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


ROCKY = ("Rocky", "9.6", "5.14.0-503.el9.x86_64", "RedHat")
DEBIAN = ("Debian", "12.15", "6.1.0-56-amd64")
#: Facts and variables of a host, the package of the fabric manager, and packages excluded from NVIDIA's repository.
FABRIC_MANAGERS = {
    "rpm": (ROCKY, {}, "nvidia-fabricmanager", ["nvidia-fabric-manager"]),
    "rpm-580": (ROCKY, {"nvidia_driver_branch": "580"}, "nvidia-fabricmanager", ["nvidia-fabric-manager"]),
    "rpm-570": (ROCKY, {"nvidia_driver_version": "570.195.03"}, "nvidia-fabric-manager", []),
    "rpm-without": (ROCKY, {"nvidia_driver_fabric_manager": "never"}, "", ["nvidia-fabric-manager"]),
    "debian": (DEBIAN, {}, "nvidia-fabricmanager", []),
    "debian-595": (DEBIAN, {"nvidia_driver_version": "595.71.05"}, "nvidia-fabricmanager", []),
    "debian-570": (DEBIAN, {"nvidia_driver_version": "570.195.03"}, "nvidia-fabricmanager-570", []),
    "ubuntu": (NODE, {}, "nvidia-fabricmanager", []),
    "ubuntu-550": (NODE, {"nvidia_driver_branch": "550"}, "nvidia-fabricmanager-550", []),
}
FABRIC_MANAGER = (
    "[__nvidia_driver_versioned | select('match', 'nvidia-fabric') | join(' '), "
    "__nvidia_driver_choice.repository.exclude | default([])]"
)
#: Values that ansible-core reads from a version without quotes or an answer of a survey, and the requested version.
READ = {
    "text": ({"nvidia_driver_branch": "580"}, "580.*"),
    "number": ({"nvidia_driver_branch": 580}, "580.*"),
    "nothing": ({"nvidia_driver_branch": None, "nvidia_driver_version": None}, ""),
    "version": ({"nvidia_driver_version": "580.178.04"}, "580.178.04"),
}


def test_other_decisions_of_the_role(read_plans):
    cases = {
        **DECISIONS,
        **{
            name: (variables, "__nvidia_driver_unnamed_part", part) for name, (variables, part) in UNNAMED_PARTS.items()
        },
        **{
            f"fabric-{name}": (
                host(*where, nvidia_driver_provider="nvidia", nvswitches=4, **variables),
                FABRIC_MANAGER,
                [package, excluded],
            )
            for name, (where, variables, package, excluded) in FABRIC_MANAGERS.items()
        },
        **{
            f"read-{name}": (host(*NODE, **variables), "__nvidia_driver_version_pattern", value)
            for name, (variables, value) in READ.items()
        },
    }
    assert len(cases) == len(DECISIONS) + len(UNNAMED_PARTS) + len(FABRIC_MANAGERS) + len(READ)
    hosts = {name: {**more, "value": "{{ " + expression + " }}"} for name, (more, expression, _value) in cases.items()}
    hosts["fraction"] = {**host(*NODE, nvidia_driver_version=580.1), "value": "{{ __nvidia_driver_version_pattern }}"}
    record = {"ansible.builtin.set_fact": {"plan": "{{ value }}"}}
    rescue = {"ansible.builtin.set_fact": {"plan": "{{ ansible_failed_result.msg }}"}}
    values = read_plans(hosts, *load_tasks(), {"block": [record], "rescue": [rescue]})
    fraction = values.pop("fraction")
    assert "nvidia_driver_version is 580.1, a number that may have lost its last digits" in fraction
    assert values == {name: value for name, (*_variables, value) in cases.items()}


#: A host, the flavor of its kernel modules, and whether a change to open ones is refused.
FLAVORS = {
    "dnf": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64", family="RedHat"), "proprietary", True),
    "dnf-same": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64", family="RedHat"), "open", False),
    "dnf-unknown": (host("RedHat", "9.5", "5.14.0-503.el9.x86_64", family="RedHat"), None, False),
    "pacman": (host("Archlinux", "", "6.17.8-arch1-1", family="Archlinux"), "proprietary", True),
    "apt": (host(*NODE), "proprietary", False),
}
#: Installed driver and variables of a host, and whether the fabric manager's former name conflicts with the new one.
FORMER = {
    "new-name": ("570.195.03", {"nvidia_driver_branch": "580"}, True),
    "nothing-requested": ("570.195.03", {}, False),
    "new-already": ("580.159.03", {"nvidia_driver_branch": "590"}, False),
    "older-branch": ("580.159.03", {"nvidia_driver_branch": "570"}, False),
    "no-nvswitches": ("570.195.03", {"nvidia_driver_branch": "580", "nvidia_driver_fabric_manager": "auto"}, False),
    "own-packages": ("570.195.03", {"nvidia_driver_branch": "580", "nvidia_driver_packages": ["nvidia-driver"]}, False),
}
CHECKSUM = "sha256:" + "1" * 64
#: The record of an installer: the version, whether it has the requested checksum, and whether that is refused. A rollback finds the new
#: installer in the record, and an upgrade the former one.
RECORDS = {
    "another": ("570.2", True, True),
    "another-installer": ("570.2", False, False),
    "same": ("580.1", True, False),
    "interrupted": ("", True, False),
    "interrupted-another": ("", False, False),
}
UNKNOWN_KERNEL = ("Rocky", "9.5", "6.9.1-1.el9.elrepo.x86_64", "RedHat")


def encode(record):
    """The content of a file, as Ansible reads it."""
    return base64.b64encode(json.dumps(record).encode()).decode()


def test_other_drivers_and_unknown_package_names_are_refused(read_plans):
    """Where the package manager cannot replace the flavor or the fabric manager, for a kernel whose headers have no known name, and the wrong installer."""
    hosts, expected = {}, {}
    for name, (variables, flavor, refused) in FLAVORS.items():
        hosts[name] = {**variables, "flavor": flavor, "nvidia_driver_kernel_modules": "open", "installed": "580.159.03"}
        expected[name] = f"{name}: the host has the {flavor} kernel modules, which " if refused else ""
    hosts["elrepo"] = host(*UNKNOWN_KERNEL)
    hosts["own-headers"] = host(*UNKNOWN_KERNEL, nvidia_driver_headers=False)
    expected["elrepo"] = (
        "elrepo: the package name of the headers for the running kernel 6.9.1-1.el9.elrepo.x86_64 is not known on Rocky"
    )
    expected["own-headers"] = ""
    for name, (installed, variables, refused) in FORMER.items():
        hosts[name] = host(*ROCKY, installed=installed, **{"nvidia_driver_fabric_manager": "always", **variables})
        words = f"{name}: the host has the driver {installed} with nvidia-fabric-manager, which dnf does not replace"
        expected[name] = words if refused else ""
    for name, (version, same, refused) in RECORDS.items():
        record = {"version": version, "url": "file:///former.run", "checksum": CHECKSUM if same else "sha256:0"}
        installer = {"url": "file:///new.run", "checksum": CHECKSUM}
        hosts[name] = {**host(*NODE, nvidia_driver_runfile=installer, **RUNFILE), "recorded": encode(record)}
        words = f"{name}: nvidia_driver_runfile is the installer of the installed driver 570.2, but nvidia_driver_vers"
        expected[name] = words if refused else ""
    assert len(hosts) == len(FLAVORS) + len(FORMER) + len(RECORDS) + 2
    nvml = {**FOUND, "gpus": [T4], "source": "pci", "driver": {**FOUND["driver"], "module_flavor": "{{ flavor }}"}}
    tasks = [
        find_task("nvidia_driver", "validate_managed", words)
        for words in (
            "Refuse a kernel whose packages have no known name",
            "Refuse a fabric manager of the new name",
            "Refuse another flavor of kernel modules",
        )
    ]
    tasks.append(find_task("nvidia_driver", "plan", "Refuse the installer of another version"))
    rescue = [{"ansible.builtin.set_fact": {"plan": "{{ ansible_failed_result.msg }}"}}]
    plans = read_plans(
        {name: {"plan": "", "flavor": None, "recorded": encode({}), **more} for name, more in hosts.items()},
        *load_tasks(
            __nvidia_driver_facts={"ansible_facts": {"nvml": nvml}},
            __nvidia_driver_runfile_recorded={"content": "{{ recorded }}"},
        ),
        {"block": tasks, "rescue": rescue},
    )
    for name, words in expected.items():
        assert bool(plans[name]) == bool(words), (name, plans[name])
        assert plans[name].startswith(words), plans[name]


VALIDATE = {
    "block": [
        {"ansible.builtin.include_role": {"name": "gpu.kubernetes.nvidia_driver", "tasks_from": "validate_managed"}}
    ],
    "rescue": [{"ansible.builtin.set_fact": {"plan": "{{ ansible_failed_result.msg }}"}}],
}


def test_automatic_choice_is_checked(read_plans):
    hosts = {name: {**variables, "gpu": gpu} for name, (variables, gpu, _words) in KNOWN_BAD.items()}
    nvml = {"source": "pci", "driver_version": None, "driver": None, "gpus": ["{{ gpu }}"]}
    plans = read_plans({**hosts}, *load_tasks(nvml=nvml), VALIDATE)
    for name, (*_variables, words) in KNOWN_BAD.items():
        assert f"{name}: {words}" in plans[name]
