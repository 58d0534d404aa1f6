# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What intel_gpu_driver verifies and refuses on hosts with fake trees of sysfs, and which packages it requests."""

from __future__ import annotations

import os

from fakes.gpu_sysfs import intel_cards, intel_tree

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN

VENDOR = {"intel_gpu_driver_source": "vendor"}
UBUNTU = {"place": "Ubuntu", "version": "24.04"}
SLES = {"place": "SLES", "version": "15.5", "family": "Suse"}
#: The driver and the device id of a card, variables, and the beginning of the message, or the exported verdict.
HOSTS = {
    "works": ("xe", "e20b", {}, "[] False"),
    "flex": (
        "",
        "56c0",
        UBUNTU,
        "flex: GPU 0000:03:00.0 (56c0) has no driver: Intel supports Data Center GPU Flex only with its own",
    ),
    "flex-by-packages": ("", "56c0", {**UBUNTU, **VENDOR}, "[] False"),
    "debian": (
        "i915",
        "56a0",
        VENDOR,
        "debian: Intel has no driver packages for Debian 12.15 on x86_64, only for RHEL 8, 9; SLES",
    ),
    "sles": (
        "i915",
        "56c0",
        {**SLES, **VENDOR},
        "sles: modprobe of this distribution does not load the modules of the Intel GPU",
    ),
    "operated": ("", "56c0", {"intel_gpu_driver_operator": "kmm"}, "[] False"),
}


def test_driver_is_verified_and_mistakes_are_refused(refusals, tmp_path):
    hosts = {}
    for name, (driver, device, variables, _words) in HOSTS.items():
        intel_tree(tmp_path / name, intel_cards(driver, device=device))
        (tmp_path / name / "proc/sys/kernel").mkdir(parents=True)
        (tmp_path / name / "proc/sys/kernel/osrelease").write_text("6.12.0-56-generic\n")
        state = {"intel_gpu_driver_state_dir": str(tmp_path / name / "state")}
        hosts[name] = {"gpu_devices_root": str(tmp_path / name), **state, **variables}
    programs = tmp_path / "programs"
    programs.mkdir()
    # A fake of modinfo, for the module of the kernel.
    (programs / "modinfo").write_text("#!/bin/sh\n[ $2 = filename ] && echo /lib/modules/x/kernel/$3.ko\n")
    (programs / "modinfo").chmod(0o755)
    facts = {
        **DEBIAN,
        "distribution": "{{ place | default('Debian') }}",
        "distribution_version": "{{ version | default('12.15') }}",
        "os_family": "{{ family | default('Debian') }}",
        "kernel": "{{ '6.4.0-150500.55-default' if family is defined else '6.12.0-56-generic' }}",
    }
    messages = refusals(
        "intel_gpu_driver",
        ["preflight"],
        hosts,
        fact="intel_gpu_driver_problems ~ ' ' ~ intel_gpu_driver_reboot_required if intel_gpu_driver_source | default('') != 'vendor' else '[] False'",
        facts=facts,
        module_defaults={"gpu.kubernetes.gpu_driver_info": {"kernel_log": "/dev/null"}},
        environment={"PATH": f"{programs}:{os.environ['PATH']}"},
    )
    assert sorted(messages) == sorted(HOSTS)
    for name, (*_case, words) in HOSTS.items():
        assert messages[name].startswith(words), (name, messages[name])
