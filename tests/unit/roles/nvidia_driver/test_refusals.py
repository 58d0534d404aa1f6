# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia_driver refuses before it changes a host."""

from __future__ import annotations

import os

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN, ROOT


def t4_defaults(nvml_builder):
    """Module defaults for a simulated T4 with driver 570.124.06, which supports CUDA 12.8."""
    return {"gpu.kubernetes.nvml_facts": {"library": nvml_builder.library("t4")}}


def write_programs(folder, **answers):
    """Write programs that print answers: a PATH with them."""
    folder.mkdir()
    for name, answer in answers.items():
        program = folder / name
        # pacman --query fails: nothing is installed. rpm has other options.
        program.write_text(
            f"#!/bin/sh\ntest $1$2 = --query--queryformat || test $1 != --query || exit 1\ncat <<'EOF'\n{answer}\nEOF\n"
        )
        program.chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


MOK = "/var/lib/dkms/mok.pub"
#: A mistake in the variables of nvidia_driver on Debian, and its message.
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
    "unknown-method": ({"nvidia_driver_method": "floppy"}, "value of nvidia_driver_method must be one of"),
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
    "another-method": (
        {"recorded": "driver-runfile"},
        "this role installed the driver with the method runfile, but nvidia_driver_method is package; remove the driver first",
    ),
    "unknown-to-the-firmware": (
        {"secure_boot": True, "mokutil": f"{MOK} is not enrolled"},
        f"{MOK}, a key that the firmware does not trust ({MOK} is not enrolled); enrol it (mokutil --import {MOK}, then confirm",
    ),
    "known-to-the-firmware": ({"secure_boot": True, "mokutil": f"{MOK} is already enrolled"}, ""),
    "valid": ({}, ""),
}


def test_mistakes_are_refused(refusals, tmp_path):
    hosts = {}
    for name, (variables, _words) in DRIVER.items():
        more = {"nvidia_driver_state_dir": str(tmp_path / name), "path": os.environ["PATH"], **variables}
        if "recorded" in more:
            record = tmp_path / name / "state" / f"{more.pop('recorded')}.json"
            record.parent.mkdir(parents=True)
            record.write_text("{}")
        if "mokutil" in more:
            more["path"] = write_programs(tmp_path / name, mokutil=more.pop("mokutil"))
        hosts[name] = more
    versions = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
    driver = {**versions, "secure_boot": "{{ secure_boot | default(false) }}", "works": False}
    nvml_result = {
        "ansible_facts": {"nvml": {"gpus": [{"name": "a GPU", "lost": False}], "nvswitches": 0, "driver": driver}}
    }
    messages = refusals(
        "nvidia_driver",
        ["check"],
        hosts,
        facts=DEBIAN,
        extra={"__nvidia_driver_facts": nvml_result},
        environment={"PATH": "{{ path }}"},
    )
    assert sorted(messages) == sorted(DRIVER)
    for name, (_variables, words) in DRIVER.items():
        assert bool(messages[name]) == bool(words), messages[name]
        assert words in messages[name], messages[name]


ROCKY = {**DEBIAN, "distribution": "Rocky", "os_family": "RedHat", "pkg_mgr": "dnf", "distribution_version": "9.4"}


#: A host whose distribution has DKMS in EPEL: output of rpm and dnf, variables, and whether it is refused.
DKMS = {
    "installed": ("installed 3.1.1-1.el9", "", {}, False),
    "available": ("", "dkms 3.1.1-1.el9", {}, False),
    "missing": ("", "", {}, True),
    "missing-for-an-installer": (
        "",
        "",
        {
            "nvidia_driver_method": "runfile",
            "nvidia_driver_version": "570.124.06",
            "nvidia_driver_runfile": {"url": "https://x.example/570.run", "checksum": "sha256:" + "0" * 64},
        },
        True,
    ),
    "own-packages": ("", "", {"nvidia_driver_packages": ["kmod-nvidia-site"]}, False),
    "no-modules": ("", "", {"nvidia_driver_kernel_modules": "none"}, False),
}


@pytest.mark.parametrize(
    ("parts", "mode"),
    [(["check"], False), (["set_vars", "dkms"], False), (["set_vars", "dkms"], True)],
    ids=["all", "run", "check"],
)
def test_missing_repository_of_dkms_is_refused(refusals, tmp_path, parts, mode):
    """The whole check decides whether DKMS is required; the other hosts differ only in the output of rpm and dnf."""
    full_check = ("missing", "own-packages", "no-modules")
    cases = {
        name: case for name, case in DKMS.items() if name == "missing" or (name in full_check) == (parts == ["check"])
    }
    hosts = {}
    for name, (installed, available, variables, _refused) in cases.items():
        path = write_programs(tmp_path / name, rpm=installed, dnf=available)
        hosts[name] = {"path": path, "nvidia_driver_state_dir": str(tmp_path / name), **variables}
    versions = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
    driver = {**versions, "secure_boot": False, "works": False}
    nvml_result = {
        "ansible_facts": {"nvml": {"gpus": [{"name": "a GPU", "lost": False}], "nvswitches": 0, "driver": driver}}
    }
    messages = refusals(
        "nvidia_driver",
        parts,
        hosts,
        facts={**ROCKY, "distribution_major_version": "9", "kernel": "5.14.0-427.el9.x86_64"},
        extra={"__nvidia_driver_facts": nvml_result},
        environment={"PATH": "{{ path }}"},
        check_mode=mode,
    )
    words = "{}: DKMS, which builds the driver's kernel modules, is in EPEL on this distribution; enable that repository first. "
    for name, (*_case, refused) in cases.items():
        assert bool(messages[name]) == refused, messages[name]
        assert messages[name].startswith(words.format(name)) or not refused, messages[name]


#: The version that a repository installed without a request for one, and the message with a V100.
INSTALLED = {"580.95.05": "", "610.43.02": "Driver 610.43.02 no longer supports Tesla V100-SXM2-16GB; use branch 580"}


def test_installed_driver_is_checked_if_no_version_was_requested(refusals, nvml_builder):
    """Whether it is loaded or not."""
    text = (ROOT / "tests/fakes/nvml/profiles/v100-16g.profile").read_text()
    hosts = {}
    for version in INSTALLED:
        for loaded in (True, False):
            profile = text.replace("570.124.06", version)
            if not loaded:
                profile = profile.replace("[gpu]", "init_result = driver_not_loaded\n\n[gpu]", 1)
            library = nvml_builder.library_of(f"v100-{version}-{loaded}", profile)
            name = f"{version}-{'loaded' if loaded else 'installed'}"
            hosts[name] = {"library": library, "nvidia_driver_kernel_modules": "proprietary"}
    messages = refusals(
        "nvidia_driver",
        ["compatibility"],
        hosts,
        facts=DEBIAN,
        module_defaults={
            "gpu.kubernetes.nvml_facts": {"library": "{{ library }}", "pci_path": nvml_builder.pci("v100-16g")}
        },
    )
    for name in hosts:
        words = INSTALLED[name.partition("-")[0]]
        assert bool(messages[name]) == bool(words), messages[name]
        assert words in messages[name]


#: Variables of hosts without a driver, and the message or the exported value.
WITHOUT_DRIVER = {
    "nothing-installed": (
        {"gpus": []},
        "nothing-installed: nvidia_driver_method is preinstalled, and the host has no NVIDIA driver and no NVIDIA GPU; remove",
    ),
    "nothing-needed": ({"gpus": [], "nvidia_driver_require_gpu": False}, "False"),
    "driver-missing": (
        {"gpus": [{"name": "Tesla T4", "lost": False}]},
        "driver-missing: nvidia_driver_method is preinstalled, and the host has no NVIDIA driver; install it, or set",
    ),
    # The driver is not managed, whatever else is requested.
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


def test_missing_preinstalled_driver_is_refused(refusals, tmp_path):
    calls = tmp_path / "calls"
    for name in ("apt-get", "apt-cache", "apt-mark", "dpkg", "dpkg-query", "modprobe", "rmmod", "systemctl"):
        # The facts use this option to find the module.
        (tmp_path / name).write_text(f'#!/bin/sh\ntest "$1" != --show-depends || exit 1\necho "$0 $*" >> {calls}\n')
        (tmp_path / name).chmod(0o755)
    state = {"nvidia_driver_state_dir": str(tmp_path / "state")}
    hosts = {
        name: {"nvidia_driver_method": "preinstalled", **state, **variables}
        for name, (variables, _words) in WITHOUT_DRIVER.items()
    }
    driver = {"library_version": None, "installed_module_version": None, "secure_boot": False}
    nvml_result = {"ansible_facts": {"nvml": {"gpus": "{{ gpus }}", "nvswitches": 0, "error": None, "driver": driver}}}
    messages = refusals(
        "nvidia_driver",
        ["main"],
        hosts,
        fact="nvidia_driver_reboot_required",
        facts=DEBIAN,
        extra={"__nvidia_driver_facts": nvml_result},
        environment={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert sorted(messages) == sorted(WITHOUT_DRIVER)
    for name, (_variables, words) in WITHOUT_DRIVER.items():
        assert str(messages[name]).startswith(words), messages[name]
    assert not calls.exists()
    assert not (tmp_path / "state").exists()


#: Variables of a host with an unmanaged driver, and the message or the exported value. The driver is never changed.
UNMANAGED = {
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
def test_unmanaged_driver_is_not_changed(refusals, nvml_builder, tmp_path, mode):
    calls = tmp_path / "calls"
    bins = tmp_path / "bin"
    bins.mkdir()
    for name in ("apt-get", "apt-mark", "dpkg", "systemctl", "modprobe", "rmmod", "nvidia-installer"):
        (bins / name).write_text(f'#!/bin/sh\ntest "$1" != --show-depends || exit 1\necho "$0 $*" >> {calls}\n')
        (bins / name).chmod(0o755)
    state = tmp_path / "state"
    cases = {name: case for name, case in UNMANAGED.items() if not mode or name in ("package", "absent")}
    hosts = {name: {"nvidia_driver_state_dir": str(state), **variables} for name, (variables, _words) in cases.items()}
    messages = refusals(
        "nvidia_driver",
        ["main"],
        hosts,
        fact="'kept' if not nvidia_driver_reboot_required else 'reboot'",
        facts=DEBIAN,
        module_defaults=t4_defaults(nvml_builder),
        environment={"PATH": f"{bins}:{os.environ['PATH']}"},
        check_mode=mode,
    )
    assert sorted(messages) == sorted(cases)
    for name, (_variables, words) in cases.items():
        assert messages[name].startswith(words), messages[name]
    assert not calls.exists()
    assert not state.exists()
