# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA and Arch Linux call packages of different times, and what is refused where there are none."""

from __future__ import annotations

import os

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import LOAD_PLATFORM, ROOT, task_of

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
    """The value of an expression on hosts of these variables, with what the role decides by itself; or why a task before it fails."""

    def decide(hosts, expression, task=None, look=None, records=()):
        role = ROOT / "roles" / "nvidia_driver"
        load = {"ansible.builtin.include_vars": {"file": f"{role}/vars/main.yml"}}
        seen = {"__nvidia_driver_look": look or LOOK, "__nvidia_driver_records": {"files": list(records)}}
        told = {"ansible.builtin.set_fact": {**FACTS, **seen, "cacheable": True}}
        defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
        answer = {"ansible.builtin.set_fact": {"answer": "{{ " + expression + " }}"}}
        rescue = [{"ansible.builtin.set_fact": {"answer": "{{ ansible_failed_result.msg }}"}}]
        tasks = [told, LOAD_PLATFORM, load, {"block": [*([task] if task else []), answer], "rescue": rescue}]
        return hear(
            {name: {**defaults, **given} for name, given in hosts.items()},
            [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
            "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'answer')))",
        )

    return decide


#: Of a release whose key nobody knows: what the user names, and whether it is refused.
NAMED = {
    "nothing": ({}, True),
    "path": ({"key_path": "/etc/pki/rpm-gpg/nvidia.asc"}, False),
}


def test_a_key_that_nobody_knows_has_to_be_named(refusals):
    # What DKMS needs is no matter here.
    asked = {"nvidia_driver_packages": ["nvidia-driver-cuda"]}
    hosts = {name: {"nvidia_driver_repository": named, **asked} for name, (named, _refused) in NAMED.items()}
    told = refusals(
        "nvidia_driver",
        ["check"],
        hosts,
        facts=facts("Fedora", "99", "RedHat", "7.9.9-100.fc99.x86_64"),
        extra={"__nvidia_driver_look": LOOK},
    )
    words = f" is not set, and none is known for {WHERE}fedora99/x86_64; set its key_url with its key_checksum, "
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
    "rpm-without": (ROCKY, {"nvidia_driver_fabric_manager": "never"}, "", ["nvidia-fabric-manager"]),
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
    answers = decided(hosts, f"[{names}, __nvidia_driver_choice.repository.exclude | default([])]")
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


def test_a_fabric_manager_of_the_former_name_is_refused(decided):
    task = task_of("nvidia_driver", "validate_managed", "Refuse a fabric manager of the new name")
    driver = {**NOTHING, "library_version": "{{ installed }}", "module_flavor": None, "secure_boot": False}
    nvml = {**LOOK["ansible_facts"]["nvml"], "nvswitches": 0, "driver": driver, "error": None}
    common = {"told": ROCKY, "nvidia_driver_fabric_manager": "always", "nvidia_driver_state_dir": "/s"}
    hosts = {name: {**common, "installed": installed, **asked} for name, (installed, asked, _refused) in FORMER.items()}
    records = [{"path": "/s/state/packages-nvidia-driver.json"}]
    told = decided(hosts, "''", task, {"ansible_facts": {"nvml": nvml}}, records)
    for name, (installed, _asked, refused) in FORMER.items():
        words = f"{name}: the host has the driver {installed} with nvidia-fabric-manager, which dnf does not replace"
        assert bool(told[name]) is refused, told[name]
        assert (told[name] or "").startswith(words) is refused, told[name]


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


def test_kernel_modules_that_arch_has_not(refusals, tmp_path):
    hosts, expected = {}, {}
    for open_modules, cases in ARCH.items():
        for case, (kernel, there, asked, words) in cases.items():
            name = f"{open_modules}-{case}"
            program = tmp_path / name / "pacman"
            program.parent.mkdir()
            known = "|".join(there) or "none"
            program.write_text(f'#!/bin/sh\ntest "$1$2" = --sync--info && case $3 in {known}) ;; *) exit 1; esac\n')
            program.chmod(0o755)
            path = f"{program.parent}:{os.environ['PATH']}"
            told = facts("Archlinux", "n/a", "Archlinux", kernel)
            hosts[name], expected[name] = {"told": told, "path": path, "open_modules": open_modules, **asked}, words
    told = {}
    # The whole check decides whether pacman is asked; the other hosts differ by its answer alone.
    whole = {"impossible-now", "impossible-own-packages"}
    for parts, names in ((["check"], whole), (["set_vars", "pacman"], hosts.keys() - whole)):
        told |= refusals(
            "nvidia_driver",
            parts,
            {name: host for name, host in hosts.items() if name in names},
            facts=FACTS,
            extra={
                "__nvidia_driver_look": LOOK,
                "gpu_preflight_compatibility": {"open_kernel_modules": "{{ open_modules }}", "findings": []},
                "nvidia_driver_fabric_manager": "never",
            },
            environment={"PATH": "{{ path }}"},
        )
    for name, words in expected.items():
        assert bool(told[name]) == bool(words), (name, told[name])
        assert words in told[name], told[name]
    lacking = told["impossible-now"]
    assert "in the AUR: set nvidia_driver_packages to packages of this host's repositories" in lacking
    assert "set nvidia_driver_kernel_modules" not in lacking, "the open ones do not know such a GPU"
