# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA and Arch Linux call keys and packages of different times, and what is said where there are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")
yaml = pytest.importorskip("yaml")

ROLES = Path(__file__).resolve().parents[3] / "roles"
WHERE = "https://developer.download.nvidia.com/compute/cuda/repos/"
NOTHING = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
LOOK = {
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


#: Told by host.
FACTS = {key: "{{ told['" + key + "'] }}" for key in facts("", "", "")}


@pytest.fixture
def decided(hear):
    """The value of an expression on hosts of these variables, by host, with what a role decides by itself."""

    def decide(role, hosts, expression):
        names = ["main", "{{ told['os_family'] }}", "{{ told['distribution'] }}"]
        files = [
            *(f"{ROLES}/{role}/vars/{name}.yml" for name in names),
            f"{ROLES}/vendor_packages/vars/nvidia_keys.yml",
        ]
        load = {
            "ansible.builtin.include_vars": {"file": "{{ item }}"},
            "loop": "{{ files | select('is_file') | unique }}",
            "vars": {"files": files},
        }
        look = {"__nvidia_driver_look": LOOK, "__nvidia_driver_records": {"files": []}}
        told = {"ansible.builtin.set_fact": {**FACTS, **look, "cacheable": True}}
        defaults = yaml.safe_load((ROLES / role / "defaults" / "main.yml").read_text(encoding="utf-8"))
        tasks = [told, load, {"ansible.builtin.set_fact": {"answer": "{{ " + expression + " }}"}}]
        return hear(
            {name: {**defaults, **given} for name, given in hosts.items()},
            [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
            "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'answer')))",
        )

    return decide


#: A release, and the key that signs NVIDIA's repository for it; nobody knows that of the last ones.
KEYS = {
    "amazon": (facts("Amazon", "2023", "RedHat"), "amzn2023/x86_64/D42D0685.pub"),
    "rocky-9": (facts("Rocky", "9.6", "RedHat"), "rhel9/x86_64/D42D0685.pub"),
    "rhel-10": (facts("RedHat", "10.1", "RedHat"), "rhel10/x86_64/CDF6BA43.pub"),
    "fedora-42": (facts("Fedora", "42", "RedHat"), "fedora42/x86_64/D42D0685.pub"),
    "fedora-43": (facts("Fedora", "43", "RedHat"), "fedora43/x86_64/1940C73E.pub"),
    "fedora-44": (facts("Fedora", "44", "RedHat"), "fedora44/x86_64/73CD9B30.pub"),
    "sles-15": (facts("SLES", "15.7", "Suse"), "sles15/x86_64/D42D0685.pub"),
    "tumbleweed": (facts("openSUSE Tumbleweed", "20260101", "Suse"), "suse16/x86_64/3A8B5622.pub"),
    "debian-12": (facts("Debian", "12.15", "Debian"), "debian12/x86_64/3bf863cc.pub"),
    "debian-13": (facts("Debian", "13.1", "Debian"), "debian13/x86_64/8793F200.pub"),
    "ubuntu-24": (facts("Ubuntu", "24.04", "Debian"), "ubuntu2404/x86_64/3bf863cc.pub"),
    "ubuntu-26": (facts("Ubuntu", "26.04", "Debian"), "ubuntu2604/x86_64/60DF8A40.pub"),
    "fedora-99": (facts("Fedora", "99", "RedHat"), ""),
    "ubuntu-98": (facts("Ubuntu", "98.04", "Debian"), ""),
}


@pytest.mark.parametrize("role", ["nvidia_driver", "cuda"])
def test_each_release_has_its_key(decided, role):
    hosts = {name: {"told": told, f"{role}_provider": "nvidia"} for name, (told, _key) in KEYS.items()}
    keys = decided(role, hosts, f"__{role}_catalogue.nvidia.repository.key_url")
    assert keys == {name: place and WHERE + place for name, (_told, place) in KEYS.items()}


#: Of a release whose key nobody knows: what the user names, and whether it is refused.
NAMED = {
    "nothing": ({}, True),
    "url": ({"key_url": "https://mirror.example.com/key.pub", "key_checksum": "sha256:" + "0" * 64}, False),
    "path": ({"key_path": "/etc/pki/rpm-gpg/nvidia.asc"}, False),
}
ASKED = {
    # What DKMS needs is no matter here.
    "nvidia_driver": {"nvidia_driver_packages": ["nvidia-driver-cuda"]},
    "cuda": {"cuda_versions": ["12.8"]},
}


@pytest.mark.parametrize("role", ASKED)
def test_a_key_that_nobody_knows_has_to_be_named(refusals, role):
    hosts = {name: {f"{role}_repository": named, **ASKED[role]} for name, (named, _refused) in NAMED.items()}
    told = refusals(
        role,
        ["check"],
        hosts,
        facts=facts("Fedora", "99", "RedHat", "7.9.9-100.fc99.x86_64"),
        extra={"__nvidia_driver_look": LOOK},
    )
    words = f" is not given, and none is known for {WHERE}fedora99/x86_64; name its key_url with its key_checksum, "
    for name, (_named, refused) in NAMED.items():
        assert bool(told[name]) == refused, told[name]
        assert words in told[name] or not refused, told[name]


ROCKY = facts("Rocky", "9.6", "RedHat")
DEBIAN = facts("Debian", "12.15", "Debian")
UBUNTU = facts("Ubuntu", "24.04", "Debian")
#: A host and what is asked of it: what the fabric manager is called, and what is never taken from NVIDIA's repository.
FABRIC_MANAGERS = {
    "rpm": (ROCKY, {}, "nvidia-fabricmanager", ["nvidia-fabric-manager"]),
    "rpm-580": (ROCKY, {"nvidia_driver_branch": "580"}, "nvidia-fabricmanager", ["nvidia-fabric-manager"]),
    "rpm-570": (ROCKY, {"nvidia_driver_version": "570.195.03"}, "nvidia-fabric-manager", []),
    "rpm-without": (ROCKY, {"nvidia_driver_fabric_manager": "never"}, "", []),
    "debian": (DEBIAN, {}, "nvidia-fabricmanager", []),
    "debian-595": (DEBIAN, {"nvidia_driver_version": "595.71.05"}, "nvidia-fabricmanager", []),
    "debian-570": (DEBIAN, {"nvidia_driver_version": "570.195.03"}, "nvidia-fabricmanager-570", []),
    "ubuntu": (UBUNTU, {}, "nvidia-fabricmanager", []),
    "ubuntu-550": (UBUNTU, {"nvidia_driver_branch": "550"}, "nvidia-fabricmanager-550", []),
}


def test_the_fabric_manager_of_each_branch(decided):
    hosts = {
        name: {"told": told, "nvidia_driver_provider": "nvidia", **asked}
        for name, (told, asked, *_names) in FABRIC_MANAGERS.items()
    }
    names = "__nvidia_driver_versioned | select('match', 'nvidia-fabric') | join(' ')"
    answers = decided("nvidia_driver", hosts, f"[{names}, __nvidia_driver_choice.repository.exclude | default([])]")
    assert answers == {name: expected for name, (_told, _asked, *expected) in FABRIC_MANAGERS.items()}


#: What a host has and is asked for, and whether a fabric manager of the former name keeps that of the new one out.
FORMER = {
    "new-name": ("570.195.03", {"nvidia_driver_branch": "580"}, True),
    "nothing-asked": ("570.195.03", {}, False),
    "new-already": ("580.159.03", {"nvidia_driver_branch": "590"}, False),
    "back": ("580.159.03", {"nvidia_driver_branch": "570"}, False),
    "no-nvswitches": ("570.195.03", {"nvidia_driver_branch": "580", "nvidia_driver_fabric_manager": "auto"}, False),
    "own-packages": ("570.195.03", {"nvidia_driver_branch": "580", "nvidia_driver_packages": ["nvidia-driver"]}, False),
}


def test_a_fabric_manager_of_the_former_name_is_refused(refusals, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "packages-nvidia-driver.json").write_text("{}")
    driver = {**NOTHING, "library_version": "{{ installed }}", "module_flavor": None, "secure_boot": False}
    nvml = {**LOOK["ansible_facts"]["nvml"], "nvswitches": 0, "driver": driver, "error": None}
    hosts = {
        name: {"installed": installed, "nvidia_driver_fabric_manager": "always", **asked}
        for name, (installed, asked, _refused) in FORMER.items()
    }
    told = refusals(
        "nvidia_driver",
        ["check"],
        hosts,
        facts={**ROCKY, "kernel": "5.14.0-503.el9.x86_64"},
        extra={"__nvidia_driver_look": {"ansible_facts": {"nvml": nvml}}, "nvidia_driver_state_dir": str(tmp_path)},
    )
    for name, (installed, _asked, refused) in FORMER.items():
        words = f"{name}: the host has the driver {installed} with nvidia-fabric-manager, and from the branch 580 on "
        assert (told[name] != "", told[name].startswith(words)) == (refused, refused), told[name]


OPEN, CLOSED = ["nvidia-utils", "nvidia-open", "nvidia-open-lts", "nvidia-open-dkms"], ["nvidia-utils", "nvidia-lts"]
LTS, ZEN = "6.12.58-1-lts", "6.17.8-zen1-1-zen"
AUR = {"nvidia_driver_packages": ["nvidia-580xx-utils", "nvidia-580xx-dkms"]}
FORCED = {"nvidia_driver_kernel_modules": "proprietary"}
#: By whether the GPU can do with open kernel modules: the kernel, what pacman has, what is asked, and what is said.
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


@pytest.mark.parametrize("open_modules", ARCH)
def test_kernel_modules_that_arch_has_not(refusals, tmp_path, open_modules):
    hosts = {}
    for name, (kernel, there, asked, _words) in ARCH[open_modules].items():
        program = tmp_path / name / "pacman"
        program.parent.mkdir()
        known = "|".join(there) or "none"
        program.write_text(f'#!/bin/sh\ntest "$1$2" = --sync--info && case $3 in {known}) ;; *) exit 1; esac\n')
        program.chmod(0o755)
        path = f"{program.parent}:{os.environ['PATH']}"
        hosts[name] = {"told": facts("Archlinux", "n/a", "Archlinux", kernel), "path": path, **asked}
    known = {"open_kernel_modules": open_modules, "findings": []}
    told = refusals(
        "nvidia_driver",
        ["check"],
        hosts,
        facts=FACTS,
        extra={
            "__nvidia_driver_look": LOOK,
            "gpu_preflight_compatibility": known,
            "nvidia_driver_fabric_manager": "never",
        },
        environment={"PATH": "{{ path }}"},
    )
    for name, (*_given, words) in ARCH[open_modules].items():
        assert bool(told[name]) == bool(words), told[name]
        assert words in told[name], told[name]
    if open_modules == "impossible":
        assert "in the AUR: name packages that a repository of this host has in nvidia_driver_packages" in told["now"]
        assert "set nvidia_driver_kernel_modules" not in told["now"], "the open ones do not know such a GPU"
