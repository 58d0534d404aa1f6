# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia_driver refuses before it changes a host."""

from __future__ import annotations

import os

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN, ROOT


def driver(workshop):
    """Have the machine show a T4 with the driver 570.124.06, which serves CUDA 12.8."""
    return {"gpu.kubernetes.nvml_facts": {"library": workshop.library("t4")}}


def told_by(folder, **answers):
    """Return a PATH on which programs give answers, or fail where those are None."""
    folder.mkdir()
    for name, answer in answers.items():
        program = folder / name
        # No --query of pacman has an answer: nothing is installed. rpm is asked in another way.
        program.write_text(
            f"#!/bin/sh\ntest $1$2 = --query--queryformat || test $1 != --query || exit 1\ncat <<'EOF'\n{answer}\nEOF\n"
        )
        program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


#: A mistake in what is asked of nvidia_driver on a Debian, and what is said of it.
DRIVER = {
    "key-without-a-checksum": (
        {"nvidia_driver_provider": "nvidia", "nvidia_driver_repository": {"key_url": "https://x/y"}},
        "key_url of your own",
    ),
    "no-fabric-manager": (
        {"nvidia_driver_fabric_manager": "always"},
        "has no packages for fabric manager; set nvidia_driver_provider",
    ),
    "reboot-of-this-machine": (
        {"nvidia_driver_reboot": "if_needed"},
        "reboot-of-this-machine: nvidia_driver_reboot is if_needed, and the connection is local",
    ),
    "no-such-method": ({"nvidia_driver_method": "floppy"}, "value of nvidia_driver_method must be one of"),
    "installer-without-a-checksum": (
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "570.124.06",
            "nvidia_driver_runfile": {"url": "https://x.example/570.run"},
        },
        "needs nvidia_driver_version, and nvidia_driver_runfile with the url of the installer and its checksum",
    ),
    "installer-with-a-weak-checksum": (
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "570.124.06",
            "nvidia_driver_runfile": {"url": "https://x.example/570.run", "checksum": "md5:" + "0" * 32},
        },
        "needs nvidia_driver_version, and nvidia_driver_runfile with the url of the installer and its checksum",
    ),
    "nothing-wrong": ({}, ""),
}


def test_nvidia_driver(refusals):
    hosts = {name: wrong for name, (wrong, _words) in DRIVER.items()}
    nothing = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
    driver = {**nothing, "secure_boot": False, "works": False}
    look = {"ansible_facts": {"nvml": {"gpus": [{"name": "a GPU", "lost": False}], "nvswitches": 0, "driver": driver}}}
    told = refusals("nvidia_driver", ["check"], hosts, facts=DEBIAN, extra={"__nvidia_driver_look": look})
    assert sorted(told) == sorted(DRIVER)
    for name, (_wrong, words) in DRIVER.items():
        assert bool(told[name]) == bool(words), told[name]
        assert words in told[name], told[name]


ROCKY = {**DEBIAN, "distribution": "Rocky", "os_family": "RedHat", "pkg_mgr": "dnf", "distribution_version": "9.4"}


#: A host whose distribution has DKMS in EPEL: what rpm and dnf tell of it, and whether it is refused.
DKMS = {
    "installed": ("installed 3.1.1-1.el9", "", {}, False),
    "offered": ("", "dkms 3.1.1-1.el9", {}, False),
    "nowhere": ("", "", {}, True),
    "nowhere-for-an-installer": (
        "",
        "",
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "570.124.06",
            "nvidia_driver_runfile": {"url": "https://x.example/570.run", "checksum": "sha256:" + "0" * 64},
        },
        True,
    ),
    "packages-of-their-own": ("", "", {"nvidia_driver_packages": ["kmod-nvidia-site"]}, False),
    "no-modules": ("", "", {"nvidia_driver_kernel_modules": "none"}, False),
}


@pytest.mark.parametrize(
    ("parts", "mode"),
    [(["check"], False), (["set_vars", "dkms"], False), (["set_vars", "dkms"], True)],
    ids=["all", "run", "check"],
)
def test_dkms_is_in_a_repository_apart(refusals, tmp_path, parts, mode):
    """The whole check decides whether it is looked for; the other hosts differ by what rpm and dnf tell alone."""
    whole = ("nowhere", "packages-of-their-own", "no-modules")
    cases = {name: case for name, case in DKMS.items() if name == "nowhere" or (name in whole) == (parts == ["check"])}
    hosts = {}
    for name, (here, offer, asked, _refused) in cases.items():
        path = told_by(tmp_path / name, rpm=here, dnf=offer)
        hosts[name] = {"path": path, "nvidia_driver_state_dir": str(tmp_path / name), **asked}
    nothing = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
    driver = {**nothing, "secure_boot": False, "works": False}
    look = {"ansible_facts": {"nvml": {"gpus": [{"name": "a GPU", "lost": False}], "nvswitches": 0, "driver": driver}}}
    told = refusals(
        "nvidia_driver",
        parts,
        hosts,
        facts={**ROCKY, "distribution_major_version": "9", "kernel": "5.14.0-427.el9.x86_64"},
        extra={"__nvidia_driver_look": look},
        environment={"PATH": "{{ path }}"},
        check_mode=mode,
    )
    words = "{}: DKMS, which builds the driver's kernel modules, is in EPEL on this distribution; enable that repository first. "
    for name, (*_given, refused) in cases.items():
        assert bool(told[name]) == refused, told[name]
        assert told[name].startswith(words.format(name)) or not refused, told[name]


#: The driver that a repository has brought where nobody had named one, and what is said of it with a V100.
COME = {"580.95.05": "", "610.43.02": "Driver 610.43.02 no longer supports Tesla V100-SXM2-16GB; use branch 580"}


def test_a_driver_that_nobody_has_named_is_judged_when_it_is_there(refusals, workshop):
    """Whether it is loaded or not."""
    text = (ROOT / "tests/fakes/nvml/profiles/v100-16g.profile").read_text()
    hosts = {}
    for version in COME:
        for loaded in (True, False):
            profile = text.replace("570.124.06", version)
            if not loaded:
                profile = profile.replace("[gpu]", "init_result = driver_not_loaded\n\n[gpu]", 1)
            library = workshop.library_of(f"v100-{version}-{loaded}", profile)
            name = f"{version}-{'loaded' if loaded else 'there'}"
            hosts[name] = {"library": library, "nvidia_driver_kernel_modules": "proprietary"}
    told = refusals(
        "nvidia_driver",
        ["compatibility"],
        hosts,
        facts=DEBIAN,
        module_defaults={
            "gpu.kubernetes.nvml_facts": {"library": "{{ library }}", "pci_path": workshop.pci("v100-16g")}
        },
    )
    for name in hosts:
        words = COME[name.partition("-")[0]]
        assert bool(told[name]) == bool(words), told[name]
        assert words in told[name]


#: What is asked of hosts that have no driver, and what is said or exported.
BROUGHT = {
    "nothing-there": (
        {"gpus": []},
        "nothing-there: nvidia_driver_method is preinstalled, and the host has no NVIDIA driver and no NVIDIA GPU; remove",
    ),
    "nothing-needed": ({"gpus": [], "nvidia_driver_require_gpu": False}, "False"),
    "driver-missing": (
        {"gpus": [{"name": "Tesla T4", "lost": False}]},
        "driver-missing: nvidia_driver_method is preinstalled, and the host has no NVIDIA driver; install it, or set",
    ),
    # That is left alone, whatever else is asked.
    "none": (
        {
            "gpus": [{"name": "Tesla T4", "lost": False}],
            "nvidia_driver_method": "none",
            "nvidia_driver_version": "580.95.05",
        },
        "False",
    ),
    "none-and-no-gpu": ({"gpus": [], "nvidia_driver_method": "none"}, "False"),
}


def test_a_driver_that_somebody_else_was_to_bring(refusals, tmp_path):
    asked_of = tmp_path / "asked"
    for name in ("apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query", "modprobe", "rmmod", "systemctl"):
        # By that the facts look whether there is a module.
        (tmp_path / name).write_text(f'#!/bin/sh\ntest "$1" != --show-depends || exit 1\necho "$0 $*" >> {asked_of}\n')
        (tmp_path / name).chmod(0o755)
    state = {"nvidia_driver_state_dir": str(tmp_path / "state")}
    hosts = {
        name: {"nvidia_driver_method": "preinstalled", **state, **asked} for name, (asked, _words) in BROUGHT.items()
    }
    driver = {"library_version": None, "installed_module_version": None, "secure_boot": False}
    look = {"ansible_facts": {"nvml": {"gpus": "{{ gpus }}", "nvswitches": 0, "error": None, "driver": driver}}}
    told = refusals(
        "nvidia_driver",
        ["main"],
        hosts,
        fact="nvidia_driver_reboot_required",
        facts=DEBIAN,
        extra={"__nvidia_driver_look": look},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert sorted(told) == sorted(BROUGHT)
    for name, (_asked, words) in BROUGHT.items():
        assert str(told[name]).startswith(words), told[name]
    assert not asked_of.exists()
    assert not (tmp_path / "state").exists()


#: What is asked of a host whose driver somebody else installed, and what is said or exported: it is never changed.
FOREIGN = {
    "preinstalled": ({"nvidia_driver_method": "preinstalled"}, "kept"),
    "package": ({"nvidia_driver_method": "package"}, "kept"),
    "runfile": ({"nvidia_driver_method": "runfile", "nvidia_driver_version": "570.124.06"}, "kept"),
    "absent": ({"nvidia_driver_state": "absent"}, "kept"),
    "newer": (
        {"nvidia_driver_method": "package", "nvidia_driver_version": "580.1.0"},
        "newer: the driver 570.124.06 was not installed by this role, and 580.1.0 is requested; remove the installed driver, or",
    ),
    "no-prefix": (
        {"nvidia_driver_method": "preinstalled", "nvidia_driver_version": "570.124.0"},
        "no-prefix: the driver 570.124.06 was not installed by this role, and 570.124.0 is requested",
    ),
}


@pytest.mark.parametrize("mode", [False, True], ids=["run", "check"])
def test_a_driver_of_somebody_else_stays(refusals, workshop, tmp_path, mode):
    program = tmp_path / "changes"
    bins = tmp_path / "bin"
    bins.mkdir()
    for name in ("apt-get", "apt-mark", "dpkg", "systemctl", "modprobe", "rmmod", "nvidia-installer"):
        (bins / name).write_text(f'#!/bin/sh\ntest "$1" != --show-depends || exit 1\necho "$0 $*" >> {program}\n')
        (bins / name).chmod(0o755)
    state = tmp_path / "state"
    cases = {name: case for name, case in FOREIGN.items() if not mode or name in ("package", "absent")}
    hosts = {name: {"nvidia_driver_state_dir": str(state), **asked} for name, (asked, _words) in cases.items()}
    told = refusals(
        "nvidia_driver",
        ["main"],
        hosts,
        fact="'kept' if not nvidia_driver_reboot_required else 'reboot'",
        facts=DEBIAN,
        module_defaults=driver(workshop),
        environment={"PATH": f"{bins}:{os.environ['PATH']}"},
        check_mode=mode,
    )
    assert sorted(told) == sorted(cases)
    for name, (_asked, words) in cases.items():
        assert told[name].startswith(words), told[name]
    assert not program.exists()
    assert not state.exists()


#: What ansible-core has read of a version without quotes or of an answer of a survey, and the requested version.
READ = {
    "text": ({"nvidia_driver_branch": "580"}, "580.*"),
    "number": ({"nvidia_driver_branch": 580}, "580.*"),
    "nothing": ({"nvidia_driver_branch": None, "nvidia_driver_version": None}, ""),
    "version": ({"nvidia_driver_version": "580.178.04"}, "580.178.04"),
    "fraction": (
        {"nvidia_driver_version": 580.1},
        "nvidia_driver_version is 580.1, a number that may have lost its last digits",
    ),
}


def test_versions_that_yaml_has_read_as_numbers_are_requested_or_refused(made):
    hosts = {name: variables for name, (variables, _expected) in READ.items()}
    found = made("nvidia_driver", hosts, "__nvidia_driver_wanted_version")
    for name, (_variables, expected) in READ.items():
        assert expected in found[name], (name, found[name])
        assert bool(found[name]) == bool(expected)
