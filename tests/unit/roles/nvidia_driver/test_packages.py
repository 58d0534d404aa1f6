# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of NVIDIA's and Arch Linux' packages over time, and the message if a package does not exist."""

from __future__ import annotations

import os

WHERE = "https://developer.download.nvidia.com/compute/cuda/repos/"
NOTHING = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
NVML_RESULT = {
    "ansible_facts": {
        "nvml": {
            "gpus": [{"name": "a GPU", "lost": False}],
            "nvswitches": 4,
            "driver": {**NOTHING, "secure_boot": False, "works": False},
        }
    }
}


def facts(distribution, version, family, kernel="6.8.0-60-generic"):
    """The facts of a host."""
    return {
        "distribution": distribution,
        "distribution_version": version,
        "distribution_major_version": version.partition(".")[0],
        "distribution_release": "",
        "os_family": family,
        "architecture": "x86_64",
        "kernel": kernel,
    }


#: Facts from a variable of each host.
FACTS = {key: "{{ host_facts['" + key + "'] }}" for key in facts("", "", "")}


#: The user's repository on a release without a known key, and whether it is refused.
REPOSITORIES = {
    "nothing": ({}, True),
    "path": ({"key_path": "/etc/pki/rpm-gpg/nvidia.asc"}, False),
}


def test_unknown_repository_key_must_be_set(refusals):
    # These packages do not need DKMS.
    packages = {"nvidia_driver_packages": ["nvidia-driver-cuda"]}
    hosts = {
        name: {"nvidia_driver_repository": repository, **packages}
        for name, (repository, _refused) in REPOSITORIES.items()
    }
    messages = refusals(
        "nvidia_driver",
        ["check"],
        hosts,
        facts=facts("Fedora", "99", "RedHat", "7.9.9-100.fc99.x86_64"),
        extra={"__nvidia_driver_facts": NVML_RESULT},
    )
    words = f" is not set, and none is known for {WHERE}fedora99/x86_64; set its key_url with its key_checksum, "
    for name, (_repository, refused) in REPOSITORIES.items():
        assert bool(messages[name]) == refused, messages[name]
        assert words in messages[name] or not refused, messages[name]


OPEN, CLOSED = ["nvidia-utils", "nvidia-open", "nvidia-open-lts", "nvidia-open-dkms"], ["nvidia-utils", "nvidia-lts"]
LTS, ZEN = "6.12.58-1-lts", "6.17.8-zen1-1-zen"
AUR = {"nvidia_driver_packages": ["nvidia-580xx-utils", "nvidia-580xx-dkms"]}
FORCED = {"nvidia_driver_kernel_modules": "proprietary"}
#: By the GPU's support for open kernel modules: the kernel, packages of pacman, variables, and the message.
ARCH = {
    "impossible": {
        "now": (LTS, OPEN, {}, "pacman's repositories have no nvidia-lts, the proprietary kernel modules for the"),
        "older-mirror": (LTS, CLOSED, {}, ""),
        "no-lists-yet": (LTS, [], {}, ""),
        "own-packages": (LTS, OPEN, AUR, ""),
    },
    "possible": {
        "now": (LTS, OPEN, {}, ""),
        "zen": (ZEN, OPEN, {}, ""),
        "older-mirror": (LTS, CLOSED, {}, "pacman's repositories have no nvidia-open-lts, the open kernel modules for"),
        "forced": (ZEN, OPEN, FORCED, "from the AUR), set nvidia_driver_kernel_modules to open, or set nvidia_driver"),
    },
}


def test_missing_kernel_modules_on_arch_are_refused(refusals, tmp_path):
    hosts, expected = {}, {}
    for open_modules, cases in ARCH.items():
        for case, (kernel, available, variables, words) in cases.items():
            name = f"{open_modules}-{case}"
            program = tmp_path / name / "pacman"
            program.parent.mkdir()
            known = "|".join(available) or "none"
            program.write_text(f'#!/bin/sh\ntest "$1$2" = --sync--info && case $3 in {known}) ;; *) exit 1; esac\n')
            program.chmod(0o755)
            path = f"{program.parent}:{os.environ['PATH']}"
            host_facts = facts("Archlinux", "n/a", "Archlinux", kernel)
            hosts[name], expected[name] = (
                {"host_facts": host_facts, "path": path, "open_modules": open_modules, **variables},
                words,
            )
    messages = {}
    # The whole check decides whether pacman runs; the other hosts differ only in its answer.
    full_check = {"impossible-now", "impossible-own-packages"}
    for parts, names in ((["check"], full_check), (["set_vars", "pacman"], hosts.keys() - full_check)):
        messages |= refusals(
            "nvidia_driver",
            parts,
            {name: host for name, host in hosts.items() if name in names},
            facts=FACTS,
            extra={
                "__nvidia_driver_facts": NVML_RESULT,
                "gpu_preflight_compatibility": {"open_kernel_modules": "{{ open_modules }}", "findings": []},
                "nvidia_driver_fabric_manager": "never",
            },
            environment={"PATH": "{{ path }}"},
        )
    for name, words in expected.items():
        assert bool(messages[name]) == bool(words), (name, messages[name])
        assert words in messages[name], messages[name]
    message = messages["impossible-now"]
    assert "in the AUR: set nvidia_driver_packages to packages of this host's repositories" in message
    assert "set nvidia_driver_kernel_modules" not in message, "open kernel modules do not support such a GPU"
