# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cuda refuses before it changes a host."""

from __future__ import annotations

import os

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN

SID = {**DEBIAN, "distribution_version": "n/a", "distribution_major_version": "n/a", "distribution_release": "sid"}
FEDORA = {**DEBIAN, "distribution": "Fedora", "os_family": "RedHat", "distribution_major_version": "99"}
FEDORA |= {"distribution_version": "99", "pkg_mgr": "dnf"}
ARCH = {**DEBIAN, "distribution": "Archlinux", "os_family": "Archlinux", "pkg_mgr": "pacman"}


def runfile(version, checksum="sha256:" + "0" * 64):
    return {"version": version, "url": f"https://x.example/{version}.run", "checksum": checksum}


TWO = {
    "cuda_method": "runfile",
    "cuda_versions": ["12.8", "12.9"],
    "cuda_default": "12.8",
    "cuda_runfiles": [runfile("12.8"), runfile("12.9")],
}
PACKAGE = {"cuda_method": "package"}
NVIDIA_PROVIDER = {**PACKAGE, "cuda_provider": "nvidia"}
NEWER = {"cuda_versions": ["13.0"], "cuda_default": "13.0"}
TOO_OLD = "Driver 570.124.06 is too old for programs of CUDA 13.0"
#: A mistake in the variables of cuda, and its message. Debian has one toolkit; 12.8 and 12.9 have an installer.
MISTAKES = {
    "no-release": ({**TWO, "cuda_versions": ["12"]}, "which is not a release of CUDA; write it as"),
    "default-not-requested": (
        {**TWO, "cuda_default": "13.0"},
        "cuda_default is 13.0, which is not in cuda_versions (12.8, 12.9)",
    ),
    "no-installer": ({**TWO, "cuda_versions": ["12.6"], "cuda_default": ""}, "has no installer for CUDA 12.6"),
    "weak-checksum": ({**TWO, "cuda_runfiles": [runfile("12.8", "md5:1")]}, "has no checksum for CUDA 12.8"),
    "not-in-the-distribution": (
        {**TWO, **PACKAGE, "cuda_provider": "distribution"},
        "Debian 12.15 has CUDA 11.8, and cuda_versions requests 12.8 and 12.9; leave cuda_versions empty",
    ),
    "with-a-driver": (
        {**TWO, **PACKAGE, "cuda_packages": ["cuda-{version}"]},
        "which would install a driver too",
    ),
    "no-version-requested": (
        {**NVIDIA_PROVIDER, "cuda_versions": [], "cuda_default": ""},
        "cuda_versions is empty, and NVIDIA's repository has many",
    ),
    # A folder of this version exists.
    "unmanaged-folder": (
        TWO,
        "/cuda-12.8 exists, was not created by this role, and has no compiler of CUDA 12.8; move it away",
    ),
    "valid": (TWO, ""),
    "unknown-key": (
        {"host_facts": FEDORA, **NVIDIA_PROVIDER, "cuda_versions": ["12.8"]},
        "fedora99/x86_64; set its key_url with its key_checksum, ",
    ),
    "own-key": (
        {
            "host_facts": FEDORA,
            **NVIDIA_PROVIDER,
            "cuda_versions": ["12.8"],
            "cuda_repository": {"key_url": "https://x.example/key.pub", "key_checksum": "sha256:" + "0" * 64},
        },
        "",
    ),
    "arch-runfile": (
        {"host_facts": ARCH, **TWO, "cuda_versions": ["12.8"]},
        "Archlinux has no update-alternatives",
    ),
    "arch-nvidia": ({"host_facts": ARCH, **NVIDIA_PROVIDER, "cuda_versions": []}, "set cuda_provider to distribution."),
}
#: Variables of a host with driver 570.124.06, which supports CUDA 12.8, and the message.
WITH_DRIVER = {
    "package": ({**NVIDIA_PROVIDER, **NEWER}, f"package: {TOO_OLD}"),
    "runfile": (
        {"cuda_method": "runfile", "cuda_runfiles": [runfile("13.0")], **NEWER},
        f"runfile: {TOO_OLD}",
    ),
    "fits": ({**NVIDIA_PROVIDER, "cuda_versions": ["12.8"]}, ""),
    # The distribution's package: CUDA 11.8.
    "unversioned": (PACKAGE, ""),
}
#: The same where the role queries the package manager for its CUDA, with the answers.
AVAILABLE = {
    "newer": ({"host_facts": ARCH}, {"pacman": "Name : cuda\nVersion : 13.0.1-1"}, TOO_OLD),
    "older": ({"host_facts": ARCH}, {"pacman": "Name : cuda\nVersion : 12.8.1-3"}, ""),
    "requested": (
        {"host_facts": ARCH, "cuda_versions": ["12.6"]},
        {"pacman": "Name : cuda\nVersion : 12.8.1-3"},
        "has CUDA 12.8, and cuda_versions requests 12.6",
    ),
    "sid-installed": (
        {"host_facts": SID},
        {"dpkg-query": "installed Version: 12.4.131~12.4.1-2", "apt-cache": "Package: x\nVersion: 13.0.1-1"},
        "",
    ),
    # dpkg-query still lists a removed package with its configuration; it is not installed.
    "sid-removed": (
        {"host_facts": SID},
        {"dpkg-query": "config-files Version: 12.4.131~12.4.1-2", "apt-cache": "Package: x\nVersion: 13.0.1-1"},
        TOO_OLD,
    ),
}


def write_programs(folder, **answers):
    """Write programs that print answers: a PATH with them."""
    folder.mkdir()
    for name, answer in answers.items():
        program = folder / name
        # pacman --query fails: nothing is installed.
        program.write_text(f"#!/bin/sh\ntest $1 != --query || exit 1\ncat <<'EOF'\n{answer}\nEOF\n")
        program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture
def run_tasks(refusals, nvml_builder, tmp_path):
    """Run task files of the role on hosts with their own facts: {host: error message, or empty}."""

    def run(parts, hosts, **more):
        defaults = {"host_facts": DEBIAN, "library": str(tmp_path / "none"), "path": os.environ["PATH"]}
        return refusals(
            "cuda",
            parts,
            {name: {**defaults, **host} for name, host in hosts.items()},
            facts={key: "{{ host_facts['" + key + "'] }}" for key in DEBIAN},
            module_defaults={"gpu.kubernetes.nvml_facts": {"library": "{{ library }}", "pci_path": str(tmp_path)}},
            environment={"PATH": "{{ path }}"},
            **more,
        )

    return run


def test_mistakes_are_refused(run_tasks, nvml_builder, tmp_path):
    driver = {"library": nvml_builder.library("t4")}
    hosts = {name: host for name, (host, _words) in MISTAKES.items()}
    (tmp_path / "cuda-12.8").mkdir()
    hosts["unmanaged-folder"] = {**TWO, "link": str(tmp_path / "cuda")}
    hosts |= {name: {**driver, **host} for name, (host, _words) in WITH_DRIVER.items()}
    hosts |= {
        name: {**driver, **PACKAGE, **host, "path": write_programs(tmp_path / name, **answers)}
        for name, (host, answers, _words) in AVAILABLE.items()
    }
    messages = run_tasks(["check"], hosts, extra={"__cuda_link": "{{ link | default('/usr/local/cuda') }}"})
    expected = {name: case[-1] for name, case in {**MISTAKES, **WITH_DRIVER, **AVAILABLE}.items()}
    assert sorted(messages) == sorted(expected)
    for name, words in expected.items():
        assert bool(messages[name]) == bool(words), (name, messages[name])
        assert words in messages[name], messages[name]


NVCC = "#!/bin/sh\necho Cuda compilation tools, release {0}, V{0}.1\n"
#: An installed compiler, variables, and the message.
COMPILERS = {
    # Its version was not known before the installation.
    "newer": (NVCC.format("13.0"), {"host_facts": ARCH, **PACKAGE}, f"newer: {TOO_OLD}"),
    "older": (NVCC.format("12.4"), {"host_facts": ARCH, **PACKAGE}, ""),
    "another": (
        NVCC.format("12.6"),
        {**NVIDIA_PROVIDER, "cuda_versions": ["12.8"]},
        "bin/another is of release 12.6 and not 12.8, although CUDA was installed",
    ),
    "broken": ("#!/bin/sh\nexit 3\n", {**NVIDIA_PROVIDER, "cuda_versions": ["12.8"]}, "bin/broken does not run ("),
}


def test_installed_compiler_is_verified(run_tasks, nvml_builder, tmp_path):
    (tmp_path / "bin").mkdir()
    hosts = {}
    for name, (text, variables, _words) in COMPILERS.items():
        compiler = tmp_path / "bin" / name
        compiler.write_text(text)
        compiler.chmod(0o755)
        hosts[name] = {"library": nvml_builder.library("t4"), "nvcc": str(compiler), **variables}
    messages = run_tasks(["set_vars", "verify"], hosts, extra={"__cuda_nvccs": ["{{ nvcc }}"]})
    for name, (_text, _variables, words) in COMPILERS.items():
        assert bool(messages[name]) == bool(words), (name, messages[name])
        assert words in messages[name], messages[name]


def test_playbooks_check_the_toolkits_only_where_they_are_declared(run_tasks):
    mistake, _words = MISTAKES["no-release"]
    messages = run_tasks(["preflight"], {"declared": mistake, "none": {**mistake, "cuda_versions": []}})
    assert "which is not a release of CUDA" in messages["declared"]
    assert messages["none"] == ""
