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
    "valid": ({}, ""),
}


#: Another distribution, its family, its version, and the running kernel.
ROCKY = ("Rocky", "RedHat", "9.4", "5.14.0-427.el9.x86_64")
FEDORA = ("Fedora", "RedHat", "99", "7.9.9-100.fc99.x86_64")


def read_facts(distribution, family, version, kernel):
    """The facts of a host with another distribution."""
    release = {"distribution_version": version, "distribution_major_version": version.partition(".")[0]}
    return {**DEBIAN, "distribution": distribution, "os_family": family, "kernel": kernel, **release}


#: The user's repository on a release without a known key, and the message. These packages do not need DKMS.
REPOSITORIES = {
    "no-key": (
        {},
        "/cuda/repos/fedora99/x86_64; set its key_url with its key_checksum, ",
    ),
    "key-path": ({"key_path": "/etc/pki/rpm-gpg/nvidia.asc"}, ""),
}
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


NO_DKMS = "{}: DKMS, which builds the driver's kernel modules, is in EPEL on this distribution; enable that repository first. "


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


# The whole check decides whether a package manager is queried; other hosts differ only in its answer.
DKMS_CHECKED = ("missing", "own-packages", "no-modules")
ARCH_CHECKED = ("impossible-now", "impossible-own-packages")


@pytest.fixture
def check(refusals, tmp_path):
    """Run task files of the role on hosts without a driver, each with its own facts and programs: {host: error message, or empty}."""

    def run_tasks(parts, hosts):
        defaults = {
            "host_facts": DEBIAN,
            "path": os.environ["PATH"],
            "check": False,
            "open_modules": "possible",
            "nvidia_driver_state_dir": str(tmp_path / "state"),
        }
        versions = {"library_version": None, "installed_module_version": None, "loaded_module_version": None}
        driver = {**versions, "secure_boot": False, "works": False}
        nvml = {"gpus": [{"name": "a GPU", "lost": False}], "nvswitches": 0, "driver": driver}
        return refusals(
            "nvidia_driver",
            parts,
            {name: {**defaults, **host} for name, host in hosts.items()},
            facts={key: "{{ host_facts['" + key + "'] }}" for key in DEBIAN},
            extra={
                "__nvidia_driver_facts": {"ansible_facts": {"nvml": nvml}},
                "gpu_preflight_compatibility": {"open_kernel_modules": "{{ open_modules }}", "findings": []},
            },
            environment={"PATH": "{{ path }}"},
            check_mode="{{ check }}",
        )

    return run_tasks


def read_dkms_hosts(folder):
    """Hosts on which the whole check runs, then those on which only DKMS is queried, in a run and in check mode; each with its message."""
    checked, queried = {}, {}
    for name, (installed, available, variables, refused) in DKMS.items():
        path = write_programs(folder / name, rpm=installed, dnf=available)
        host = {"host_facts": read_facts(*ROCKY), "path": path, **variables}
        if name in DKMS_CHECKED:
            checked[name] = (host, NO_DKMS.format(name) if refused else "")
        if name == "missing" or name not in DKMS_CHECKED:
            for mode in (False, True):
                case = f"{name}-{'check' if mode else 'run'}"
                words = NO_DKMS.format(case) if refused else ""
                queried[case] = ({**host, "part": "dkms", "check": mode}, words)
    return checked, queried


def read_arch_hosts(folder):
    """The same of pacman."""
    hosts = {}
    for open_modules, cases in ARCH.items():
        for case, (kernel, available, variables, words) in cases.items():
            name = f"{open_modules}-{case}"
            program = folder / name / "pacman"
            program.parent.mkdir()
            known = "|".join(available) or "none"
            program.write_text(f'#!/bin/sh\ntest "$1$2" = --sync--info && case $3 in {known}) ;; *) exit 1; esac\n')
            program.chmod(0o755)
            host_facts = read_facts("Archlinux", "Archlinux", "n/a", kernel)
            path = f"{program.parent}:{os.environ['PATH']}"
            more = {"host_facts": host_facts, "path": path, "open_modules": open_modules, "part": "pacman"}
            hosts[name] = ({**more, **variables}, words)
    checked = {name: hosts.pop(name) for name in ARCH_CHECKED}
    return checked, hosts


def require_messages(messages, hosts):
    """Require the message of each host; an empty one stands for none."""
    assert sorted(messages) == sorted(hosts)
    for name, (_host, words) in hosts.items():
        assert bool(messages[name]) == bool(words), (name, messages[name])
        assert words in messages[name], messages[name]


def test_mistakes_are_refused(check, tmp_path):
    packages = {"host_facts": read_facts(*FEDORA), "nvidia_driver_packages": ["nvidia-driver-cuda"]}
    hosts = {
        **DRIVER,
        **{
            name: ({**packages, "nvidia_driver_repository": repository}, words)
            for name, (repository, words) in REPOSITORIES.items()
        },
        **read_dkms_hosts(tmp_path)[0],
        **read_arch_hosts(tmp_path)[0],
    }
    messages = check(["check"], {name: host for name, (host, _words) in hosts.items()})
    require_messages(messages, hosts)
    message = messages["impossible-now"]
    assert "in the AUR: set nvidia_driver_packages to packages of this host's repositories" in message
    assert "set nvidia_driver_kernel_modules" not in message, "open kernel modules do not support such a GPU"


def test_packages_that_no_repository_has_are_refused(check, tmp_path):
    hosts = {**read_dkms_hosts(tmp_path)[1], **read_arch_hosts(tmp_path)[1]}
    messages = check(["set_vars", "{{ part }}"], {name: host for name, (host, _words) in hosts.items()})
    require_messages(messages, hosts)


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


def test_unmanaged_driver_is_not_changed(refusals, nvml_builder, tmp_path):
    """Nor is a change predicted in check mode."""
    calls = tmp_path / "calls"
    bins = tmp_path / "bin"
    bins.mkdir()
    for name in ("apt-get", "apt-mark", "dpkg", "systemctl", "modprobe", "rmmod", "nvidia-installer"):
        (bins / name).write_text(f'#!/bin/sh\ntest "$1" != --show-depends || exit 1\necho "$0 $*" >> {calls}\n')
        (bins / name).chmod(0o755)
    state = tmp_path / "state"
    cases = {**UNMANAGED, **{f"{name}-check": UNMANAGED[name] for name in ("package", "absent")}}
    hosts = {
        name: {"nvidia_driver_state_dir": str(state), "check": name.endswith("-check"), **variables}
        for name, (variables, _words) in cases.items()
    }
    messages = refusals(
        "nvidia_driver",
        ["main"],
        hosts,
        fact="'kept' if not nvidia_driver_reboot_required else 'reboot'",
        facts=DEBIAN,
        module_defaults=t4_defaults(nvml_builder),
        environment={"PATH": f"{bins}:{os.environ['PATH']}"},
        check_mode="{{ check }}",
    )
    assert sorted(messages) == sorted(cases)
    for name, (_variables, words) in cases.items():
        assert messages[name].startswith(words), messages[name]
    assert not calls.exists()
    assert not state.exists()
