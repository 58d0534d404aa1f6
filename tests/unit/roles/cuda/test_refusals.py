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
NVIDIAS = {**PACKAGE, "cuda_provider": "nvidia"}
NEWER = {"cuda_versions": ["13.0"], "cuda_default": "13.0"}
TOO_OLD = "Driver 570.124.06 is too old for programs of CUDA 13.0"
#: A mistake in what is asked of cuda, and what is said of it. Debian has one toolkit; 12.8 and 12.9 have an installer.
MISTAKES = {
    "no-release": ({**TWO, "cuda_versions": ["12"]}, "which is not a release of CUDA; write it as"),
    "default-of-none": (
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
    "which-of-many": (
        {**NVIDIAS, "cuda_versions": [], "cuda_default": ""},
        "cuda_versions is empty, and NVIDIA's repository has many",
    ),
    "nothing-wrong": (TWO, ""),
    "unknown-key": (
        {"given": FEDORA, **NVIDIAS, "cuda_versions": ["12.8"]},
        "fedora99/x86_64; set its key_url with its key_checksum, ",
    ),
    "named-key": (
        {
            "given": FEDORA,
            **NVIDIAS,
            "cuda_versions": ["12.8"],
            "cuda_repository": {"key_url": "https://x.example/key.pub", "key_checksum": "sha256:" + "0" * 64},
        },
        "",
    ),
    "arch-runfile": (
        {"given": ARCH, **TWO, "cuda_versions": ["12.8"]},
        "Archlinux has no update-alternatives",
    ),
    "arch-nvidia": ({"given": ARCH, **NVIDIAS, "cuda_versions": []}, "set cuda_provider to distribution."),
}
#: What is asked of a host with the driver 570.124.06, which serves CUDA 12.8, and what is said of it.
WITH_DRIVER = {
    "package": ({**NVIDIAS, **NEWER}, f"package: {TOO_OLD}"),
    "runfile": (
        {"cuda_method": "runfile", "cuda_runfiles": [runfile("13.0")], **NEWER},
        f"runfile: {TOO_OLD}",
    ),
    "fits": ({**NVIDIAS, "cuda_versions": ["12.8"]}, ""),
    # The distribution's package: CUDA 11.8.
    "unversioned": (PACKAGE, ""),
}
#: The same where a package manager has to be asked which CUDA it has, with its answers.
OFFERS = {
    "newer": ({"given": ARCH}, {"pacman": "Name : cuda\nVersion : 13.0.1-1"}, TOO_OLD),
    "older": ({"given": ARCH}, {"pacman": "Name : cuda\nVersion : 12.8.1-3"}, ""),
    "asked": (
        {"given": ARCH, "cuda_versions": ["12.6"]},
        {"pacman": "Name : cuda\nVersion : 12.8.1-3"},
        "has CUDA 12.8, and cuda_versions requests 12.6",
    ),
    "sid-installed": (
        {"given": SID},
        {"dpkg-query": "installed Version: 12.4.131~12.4.1-2", "apt-cache": "Package: x\nVersion: 13.0.1-1"},
        "",
    ),
    # To dpkg-query, what was removed without its configuration is not installed.
    "sid-removed": (
        {"given": SID},
        {"dpkg-query": "config-files Version: 12.4.131~12.4.1-2", "apt-cache": "Package: x\nVersion: 13.0.1-1"},
        TOO_OLD,
    ),
}


def programs(folder, **answers):
    """A PATH on which programs give answers."""
    folder.mkdir()
    for name, answer in answers.items():
        program = folder / name
        # No --query of pacman has an answer: nothing is installed.
        program.write_text(f"#!/bin/sh\ntest $1 != --query || exit 1\ncat <<'EOF'\n{answer}\nEOF\n")
        program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.fixture
def refused(refusals, workshop, tmp_path):
    """Run files of the role's tasks on hosts that say for themselves what they are: {host: why it failed, or empty}."""

    def run(parts, hosts, **more):
        none = {"given": DEBIAN, "library": str(tmp_path / "none"), "path": os.environ["PATH"]}
        return refusals(
            "cuda",
            parts,
            {name: {**none, **host} for name, host in hosts.items()},
            facts={key: "{{ given['" + key + "'] }}" for key in DEBIAN},
            module_defaults={"gpu.kubernetes.nvml_facts": {"library": "{{ library }}", "pci_path": str(tmp_path)}},
            environment={"PATH": "{{ path }}"},
            **more,
        )

    return run


def test_mistakes_are_refused(refused, workshop, tmp_path):
    driver = {"library": workshop.library("t4")}
    hosts = {name: host for name, (host, _words) in MISTAKES.items()}
    hosts |= {name: {**driver, **host} for name, (host, _words) in WITH_DRIVER.items()}
    hosts |= {
        name: {**driver, **PACKAGE, **host, "path": programs(tmp_path / name, **answers)}
        for name, (host, answers, _words) in OFFERS.items()
    }
    told = refused(["check"], hosts)
    expected = {name: case[-1] for name, case in {**MISTAKES, **WITH_DRIVER, **OFFERS}.items()}
    assert sorted(told) == sorted(expected)
    for name, words in expected.items():
        assert bool(told[name]) == bool(words), (name, told[name])
        assert words in told[name], told[name]


NVCC = "#!/bin/sh\necho Cuda compilation tools, release {0}, V{0}.1\n"
#: A compiler that is there afterwards, what was asked, and what is said of it.
COMPILERS = {
    # Of a version that nobody knew before.
    "newer": (NVCC.format("13.0"), {"given": ARCH, **PACKAGE}, f"newer: {TOO_OLD}"),
    "older": (NVCC.format("12.4"), {"given": ARCH, **PACKAGE}, ""),
    "another": (
        NVCC.format("12.6"),
        {**NVIDIAS, "cuda_versions": ["12.8"]},
        "bin/another is of release 12.6 and not 12.8, although CUDA was installed",
    ),
    "broken": ("#!/bin/sh\nexit 3\n", {**NVIDIAS, "cuda_versions": ["12.8"]}, "bin/broken does not run ("),
}


def test_a_compiler_is_judged_when_it_is_there(refused, workshop, tmp_path):
    (tmp_path / "bin").mkdir()
    hosts = {}
    for name, (text, asked, _words) in COMPILERS.items():
        compiler = tmp_path / "bin" / name
        compiler.write_text(text)
        compiler.chmod(0o755)
        hosts[name] = {"library": workshop.library("t4"), "nvcc": str(compiler), **asked}
    told = refused(["set_vars", "verify"], hosts, extra={"__cuda_nvccs": ["{{ nvcc }}"]})
    for name, (_text, _asked, words) in COMPILERS.items():
        assert bool(told[name]) == bool(words), (name, told[name])
        assert words in told[name], told[name]


def test_playbooks_check_the_toolkits_only_where_they_are_declared(refused):
    mistake, _words = MISTAKES["no-release"]
    hosts = {
        "declared": mistake,
        "none": {**mistake, "cuda_versions": []},
        "unanswered": {**mistake, "cuda_versions": None},
    }
    told = refused(["preflight"], hosts)
    assert "which is not a release of CUDA" in told["declared"]
    assert (told["none"], told["unanswered"]) == ("", "")
