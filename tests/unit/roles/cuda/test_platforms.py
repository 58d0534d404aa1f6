# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages, repository and compiler of CUDA on each platform. The names belong to others, so the test repeats them."""

from __future__ import annotations

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import LOAD_PLATFORM, ROOT

ROLE = ROOT / "roles" / "cuda"
VENDOR = "https://developer.download.nvidia.com/compute/cuda/repos"
TWO = ["12.8", 13.0]


def host(distribution, version, family, architecture="x86_64", release="", **variables):
    """Facts of a host, and variables of the role."""
    host_facts = {
        "distribution": distribution,
        "distribution_version": version,
        "distribution_major_version": version.partition(".")[0],
        "distribution_release": release,
        "os_family": family,
        "architecture": architecture,
    }
    return {"host_facts": host_facts, **variables}


def expect_nvidia(place, *packages, key):
    """Packages of two versions in NVIDIA's repository for a platform, its URL, key and compilers."""
    sets = [[name.format(version) for name in packages] for version in ("12-8", "13-0")]
    compilers = [f"/usr/local/cuda-{version}/bin/nvcc" for version in ("12.8", "13.0")]
    return [sets, f"{VENDOR}/{place}", f"{VENDOR}/{place}/{key}", compilers]


TOOLKIT = "cuda-toolkit-{}"
DEB, RPM = "3bf863cc.pub", "D42D0685.pub"
#: A host, and its sets of packages, their repository, its key and the compilers.
PLATFORMS = {
    "debian": (
        host("Debian", "12.15", "Debian", release="bookworm"),
        [["nvidia-cuda-toolkit", "g++"]],
        "contrib non-free",
        "",
        ["/usr/bin/nvcc"],
    ),
    "debian-by-nvidia": (
        host("Debian", "12.15", "Debian", cuda_versions=TWO),
        *expect_nvidia("debian12/x86_64", TOOLKIT, key=DEB),
    ),
    "debian-compiler": (
        host("Debian", "13.1", "Debian", cuda_versions=TWO, cuda_components="compiler"),
        *expect_nvidia(
            "debian13/x86_64", "cuda-nvcc-{}", "cuda-cudart-dev-{}", "cuda-minimal-build-{}", key="8793F200.pub"
        ),
    ),
    "ubuntu": (
        host("Ubuntu", "24.04", "Debian"),
        [["nvidia-cuda-toolkit", "g++"]],
        "",
        "",
        ["/usr/bin/nvcc"],
    ),
    "ubuntu-on-arm": (
        host("Ubuntu", "24.04", "Debian", "aarch64", cuda_versions=TWO),
        *expect_nvidia("ubuntu2404/sbsa", TOOLKIT, key=DEB),
    ),
    "ubuntu-26": (
        host("Ubuntu", "26.04", "Debian", cuda_versions=TWO),
        *expect_nvidia("ubuntu2604/x86_64", TOOLKIT, key="60DF8A40.pub"),
    ),
    "rocky": (host("Rocky", "9.6", "RedHat", cuda_versions=TWO), *expect_nvidia("rhel9/x86_64", TOOLKIT, key=RPM)),
    "rhel-compiler": (
        host("RedHat", "8.10", "RedHat", cuda_versions=TWO, cuda_components="compiler"),
        *expect_nvidia("rhel8/x86_64", "cuda-nvcc-{}", "cuda-cudart-devel-{}", "cuda-minimal-build-{}", key=RPM),
    ),
    "alma": (
        host("AlmaLinux", "10.1", "RedHat", "aarch64", cuda_versions=TWO),
        *expect_nvidia("rhel10/sbsa", TOOLKIT, key="CDF6BA43.pub"),
    ),
    "fedora": (host("Fedora", "42", "RedHat", cuda_versions=TWO), *expect_nvidia("fedora42/x86_64", TOOLKIT, key=RPM)),
    "amazon": (
        host("Amazon", "2023", "RedHat", cuda_versions=TWO),
        *expect_nvidia("amzn2023/x86_64", TOOLKIT, key=RPM),
    ),
    "leap": (
        host("openSUSE Leap", "15.6", "Suse", cuda_versions=TWO),
        *expect_nvidia("opensuse15/x86_64", TOOLKIT, key=RPM),
    ),
    "sles": (
        host("SLES", "15.7", "Suse", "aarch64", cuda_versions=TWO),
        *expect_nvidia("sles15/sbsa", TOOLKIT, key=RPM),
    ),
    "leap-16": (
        host("openSUSE Leap", "16.0", "Suse", cuda_versions=TWO),
        *expect_nvidia("suse16/x86_64", TOOLKIT, key="3A8B5622.pub"),
    ),
    "tumbleweed": (
        host("openSUSE Tumbleweed", "20260101", "Suse", cuda_versions=TWO),
        *expect_nvidia("suse16/x86_64", TOOLKIT, key="3A8B5622.pub"),
    ),
    "arch": (host("Archlinux", "n/a", "Archlinux"), [["cuda"]], "", "", ["/opt/cuda/bin/nvcc"]),
    "own-packages": (
        host("Rocky", "9.6", "RedHat", cuda_versions=["12.8"], cuda_packages=["cuda-nvcc-{version}", "nsight"]),
        [["cuda-nvcc-12-8", "nsight"]],
        f"{VENDOR}/rhel9/x86_64",
        f"{VENDOR}/rhel9/x86_64/{RPM}",
        ["/usr/local/cuda-12.8/bin/nvcc"],
    ),
}
NAMES = "[{% for set in __cuda_sets %}{{ __cuda_package_names | map('replace', '{version}', set | replace('cuda-', '')) | list }},{% endfor %}]"
PLAN = {
    "plan": [
        NAMES,
        "{{ __cuda_repository.url | default(__cuda_repository.components | default([]) | join(' ')) }}",
        "{{ __cuda_repository.key_url | default('') }}",
        "{{ __cuda_nvccs }}",
    ]
}


def test_packages_and_repositories_of_each_platform(evaluate):
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    load = {"ansible.builtin.include_vars": {"file": f"{ROLE}/vars/main.yml"}}
    host_facts = {key: "{{ host_facts['" + key + "'] }}" for key in PLATFORMS["arch"][0]["host_facts"]}
    set_facts = {
        "ansible.builtin.set_fact": {
            **host_facts,
            "kernel": "6.1.0",
            "__cuda_offers": {"results": []},
            "cacheable": True,
        }
    }
    tasks = [set_facts, LOAD_PLATFORM, load, {"ansible.builtin.set_fact": PLAN}]
    plans = evaluate(
        {name: {**defaults, **variables} for name, (variables, *_expected) in PLATFORMS.items()},
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'plan')))",
    )
    # Some releases of ansible-core return the first value as a list, others as text.
    results = {name: [yaml.safe_load(str(sets)), *rest] for name, (sets, *rest) in plans.items()}
    assert results == {name: expected for name, (_variables, *expected) in PLATFORMS.items()}
