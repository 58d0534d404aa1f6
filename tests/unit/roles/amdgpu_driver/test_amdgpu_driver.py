# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What amdgpu_driver verifies and refuses on hosts with fake trees of sysfs, before it changes one."""

from __future__ import annotations

import os

from fakes.gpu_sysfs import CASES

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN, ROOT

VENDOR = {"amdgpu_driver_source": "vendor"}
#: The tree of a host, variables, and the beginning of the message, or the exported verdict.
HOSTS = {
    "works": ("amd", {}, "[] False"),
    "no-driver": (
        "amd-no-driver",
        {},
        "no-driver: GPU 0000:63:00.0 (74a1) and 0000:83:00.0 (74a1) has no driver: amdgpu is",
    ),
    "no-gpu": (
        "none",
        {},
        "no-gpu: no AMD GPU was found on the PCI bus; leave the role amdgpu_driver out for this host",
    ),
    "operated": ("amd-no-driver", {"amdgpu_driver_operator": "deviceconfigs.amd.com"}, "[] False"),
    "no-packages": (
        "amd",
        {**VENDOR, "place": "Fedora"},
        "no-packages: AMD has no driver packages for Fedora 12.15 on x86_64",
    ),
    "own-kernel": (
        "amd",
        {**VENDOR, "place": "RedHat", "version": "9.6", "family": "RedHat", "running": "6.18.1"},
        "own-kernel: the package name of the headers for the running kernel 6.18.1 is not known",
    ),
    "reboot": (
        "amd",
        {**VENDOR, "amdgpu_driver_reboot": "if_needed"},
        "reboot: amdgpu_driver_reboot is if_needed, and the",
    ),
    "key": (
        "amd",
        {**VENDOR, "amdgpu_driver_repository": {"key_url": "https://x.example.com/y"}},
        "key: the signing key of the repository for AMD GPU driver comes from a key_url of your own without a checksum",
    ),
    "secure-boot": (
        "amd",
        VENDOR,
        "secure-boot: Secure Boot is on, and mokutil is not installed, so that it is unknown whether",
    ),
    "recorded": ("amd", {}, "recorded: this role installed the AMD GPU driver from the vendor's packages"),
    "unknown": ("amd", {"amdgpu_driver_source": "floppy"}, "Validation of arguments failed"),
}


def write_hosts(folder, cases):
    """Write the trees of hosts, and return their variables."""
    hosts = {}
    for name, (case, variables, _words) in cases.items():
        CASES[case](folder / name)
        (folder / name / "proc/sys/kernel").mkdir(parents=True)
        (folder / name / "proc/sys/kernel/osrelease").write_text("6.1.0-56-amd64\n")
        hosts[name] = {
            "gpu_devices_root": str(folder / name),
            "amdgpu_driver_state_dir": str(folder / name / "state"),
            **variables,
        }
    return hosts


def test_driver_is_verified_and_mistakes_are_refused(refusals, tmp_path):
    hosts = write_hosts(tmp_path, HOSTS)
    efi = tmp_path / "secure-boot/sys/firmware/efi/efivars"
    efi.mkdir(parents=True)
    (efi / "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c").write_bytes(b"\x06\0\0\0\x01")
    record = tmp_path / "recorded/state/state/packages-amdgpu-driver.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    # A fake of modinfo, for the module of the kernel.
    (programs / "modinfo").write_text("#!/bin/sh\n[ $2 = filename ] && echo /lib/modules/x/kernel/amdgpu.ko\n")
    (programs / "modinfo").chmod(0o755)
    messages = refusals(
        "amdgpu_driver",
        ["preflight"],
        hosts,
        fact="amdgpu_driver_problems ~ ' ' ~ amdgpu_driver_reboot_required",
        facts={
            **DEBIAN,
            "distribution": "{{ place | default('Debian') }}",
            "distribution_version": "{{ version | default('12.15') }}",
            "os_family": "{{ family | default('Debian') }}",
            "kernel": "{{ running | default('6.1.0-56-amd64') }}",
        },
        module_defaults={"gpu.kubernetes.gpu_driver_info": {"kernel_log": "/dev/null"}},
        environment={"PATH": f"{programs}:{os.environ['PATH']}"},
    )
    assert sorted(messages) == sorted(HOSTS)
    for name, (_case, _variables, words) in HOSTS.items():
        assert messages[name].startswith(words), (name, messages[name])


def test_file_of_the_operator_is_never_written():
    texts = [
        path.read_text()
        for role in ("_gpu_driver", "amdgpu_driver", "intel_gpu_driver")
        for folder in ("tasks", "vars", "defaults")
        for path in (ROOT / "roles" / role / folder).glob("*.yml")
    ]
    assert texts
    assert not any("modprobe" in text for text in texts)
