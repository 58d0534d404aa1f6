# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on the drivers of AMD and Intel, over fake trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Sequence

import pytest
from fakes.gpu_sysfs import CASES, amd_tree, intel_cards, intel_tree

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus import drivers

KERNEL = "6.8.0-60-generic"
MODULE = f"/lib/modules/{KERNEL}/kernel/drivers/gpu/drm"
DKMS = f"/lib/modules/{KERNEL}/updates/dkms"
RLC = "amdgpu/gc_9_4_3_rlc.bin"
LOG = {
    "amdgpu": f"4,1042,861,-;amdgpu 0000:63:00.0: Direct firmware load for {RLC} failed with error -2\n",
    "xe": "3,9,9,-;xe 0000:03:00.0: [drm] *ERROR* GT0: GuC firmware xe/bmg_guc_70.bin: fetch failed -ENOENT\n",
    "other": "4,1,1,-;amdgpu 0000:0a:00.0: Direct firmware load for amdgpu/other.bin failed with error -2\n",
    "display": "4,1,1,-;i915 0000:03:00.0: Direct firmware load for i915/dg2_dmc_ver2_08.bin failed with error -2\n",
}


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def modinfo(**files: dict[str, str]) -> Callable[[Sequence[str]], tuple[int, str, str]]:
    """A fake of modinfo, which has these fields of modules."""

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        _program, _option, field, name = command
        text = files.get(name, {}).get(field)
        return (0, f"{text}\n", "") if text else (1, "", "not found")

    return run


IN_TREE = modinfo(
    amdgpu={"filename": f"{MODULE}/amd/amdgpu/amdgpu.ko"},
    i915={"filename": f"{MODULE}/i915/i915.ko"},
    xe={"filename": f"{MODULE}/xe/xe.ko"},
)


def read(root: Path, vendor: str, log: str | None = "", run: Any = IN_TREE, kernel: str = KERNEL) -> dict[str, Any]:
    write(root, "proc/sys/kernel/osrelease", kernel)
    return drivers.read_state(str(root), vendor, log, run)


@pytest.mark.parametrize("case", ["amd", "amd-cpx", "intel-i915", "intel-xe", "intel", "intel-sriov", "mixed"])
def test_working_drivers_have_no_problem(tmp_path: Path, case: str) -> None:
    CASES[case](tmp_path)
    for vendor in ["amd", "intel"] if case == "mixed" else [case.partition("-")[0]]:
        state = read(tmp_path, vendor, LOG["other"] + LOG["display"])
        assert (drivers.find_problems(state), drivers.find_reboot_reasons(state)) == ([], [])


#: A fake tree, its vendor, files beside it, the log, the kernel, modinfo, and what the only sentence contains.
PROBLEMS = {
    "no-gpu": (
        "none",
        "amd",
        {},
        "",
        KERNEL,
        IN_TREE,
        "no AMD GPU was found on the PCI bus; leave the role amdgpu_driver out",
    ),
    "not-loaded": ("amd-no-driver", "amd", {}, "", KERNEL, IN_TREE, "has no driver: amdgpu is not loaded; load it"),
    "no-module": (
        "amd-no-driver",
        "amd",
        {},
        "",
        KERNEL,
        modinfo(),
        f"has no module amdgpu; install the distribution's package that has it (linux-modules-extra-{KERNEL} on Ubuntu",
    ),
    "blacklisted": (
        "intel-no-driver",
        "intel",
        {"etc/modprobe.d/site.conf": "blacklist i915"},
        "",
        KERNEL,
        IN_TREE,
        "i915 or xe is blacklisted by /etc/modprobe.d/site.conf; remove the line",
    ),
    "blacklisted-by-the-operator": (
        "amd-no-driver",
        "amd",
        {"etc/modprobe.d/blacklist-amdgpu.conf": "blacklist amdgpu"},
        "",
        KERNEL,
        IN_TREE,
        "blacklist-amdgpu.conf, the file of AMD's GPU operator; let the operator deploy the driver",
    ),
    "nomodeset": (
        "amd-no-driver",
        "amd",
        {"proc/cmdline": "root=/dev/sda1 nomodeset"},
        "",
        KERNEL,
        IN_TREE,
        "the kernel was booted with nomodeset; remove that parameter",
    ),
    "module-blacklist": (
        "amd-no-driver",
        "amd",
        {"proc/cmdline": "module_blacklist=nouveau,amdgpu"},
        "",
        KERNEL,
        IN_TREE,
        "the kernel was booted with module_blacklist=nouveau,amdgpu; remove",
    ),
    "no-kfd": ("amd-no-kfd", "amd", {}, "", KERNEL, IN_TREE, "has no /dev/kfd, through which programs compute"),
    "firmware": ("amd", "amd", {}, LOG["amdgpu"], KERNEL, IN_TREE, f"has not found the firmware {RLC} since its boot"),
    "firmware-xe": ("intel-xe", "intel", {}, LOG["xe"], KERNEL, IN_TREE, "the firmware xe/bmg_guc_70.bin since"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_is_one_sentence_with_its_cause(tmp_path: Path, name: str) -> None:
    case, vendor, files, log, kernel, run, words = PROBLEMS[name]
    CASES[case](tmp_path)
    for path, text in files.items():
        write(tmp_path, path, text)
    (problem,) = drivers.find_problems(read(tmp_path, vendor, log, run, kernel))
    assert words in problem
    assert problem.endswith(".")


#: The device id of a card without a driver, the running kernel, and the cause.
SUPPORT = {
    ("56a0", "5.15.0-60-generic"): "supports Arc A-Series from 6.2 on, and 5.15.0-60-generic runs; boot a newer kernel",
    ("56a0", "6.2.0-60-generic"): "is not loaded; load it",
    ("e20b", KERNEL): "supports Arc B-Series from 6.12 on",
    (
        "56c0",
        "6.12.1-1",
    ): "Intel supports Data Center GPU Flex only with its own driver packages; set intel_gpu_driver_source to vendor",
    ("0bda", KERNEL): "Intel supports Data Center GPU Max only with",
    ("4680", KERNEL): "is not loaded; load it",
}


@pytest.mark.parametrize(("device", "kernel"), SUPPORT)
def test_gpu_without_driver_names_the_kernel_that_supports_it(tmp_path: Path, device: str, kernel: str) -> None:
    intel_tree(tmp_path, intel_cards("", device=device))
    (problem,) = drivers.find_problems(read(tmp_path, "intel", kernel=kernel))
    assert SUPPORT[device, kernel] in problem


def test_gpu_that_the_vendors_driver_does_not_accept_is_not_sent_to_the_vendor(tmp_path: Path) -> None:
    intel_tree(tmp_path, intel_cards("", device="0bda"))
    (tmp_path / "sys/module/i915").mkdir(parents=True)
    run = modinfo(i915={"filename": f"{DKMS}/i915.ko", "version": "backported"})
    (problem,) = drivers.find_problems(read(tmp_path, "intel", run=run))
    assert "i915 or xe is loaded and has not accepted it; read the kernel's log" in problem


def test_missing_nodes_and_users_are_reported(tmp_path: Path) -> None:
    amd_tree(tmp_path, 1)
    (tmp_path / "dev/dri/renderD128").unlink()
    for pid, target in ((7, "/dev/kfd"), (8, "/dev/dri/renderD129"), (9, "/dev/null")):
        (tmp_path / f"proc/{pid}/fd").mkdir(parents=True)
        (tmp_path / f"proc/{pid}/fd/3").symlink_to(target)
        write(tmp_path, f"proc/{pid}/comm", "train")
    state = read(tmp_path, "amd")
    assert state["users"] == ["train (pid 7) uses the GPUs"]
    (problem,) = drivers.find_problems(state)
    assert problem.startswith("the kernel has /dev/dri/renderD128, and the folder /dev does not; restart udev")


@pytest.mark.parametrize(
    ("loaded", "installed", "reason"),
    [
        ({}, {"filename": f"{MODULE}/amdgpu.ko"}, ""),
        ({}, {"filename": "(builtin)", "version": "6.14.14"}, ""),
        (
            {},
            {"filename": f"{DKMS}/amdgpu.ko", "version": "6.14.14"},
            "the loaded module amdgpu is that of the kernel, and the installed one is 6.14.14",
        ),
        (
            {"version": "6.14.14", "srcversion": "A"},
            {"filename": f"{DKMS}/amdgpu.ko", "version": "6.14.14", "srcversion": "A"},
            "",
        ),
        (
            {"version": "6.14.14", "srcversion": "A"},
            {"filename": f"{DKMS}/amdgpu.ko", "version": "6.16.6", "srcversion": "B"},
            "the loaded module amdgpu is 6.14.14, and the installed one is 6.16.6",
        ),
        ({"version": "6.14.14"}, {}, ""),
    ],
)
def test_other_installed_module_requires_a_reboot(
    tmp_path: Path, loaded: dict[str, str], installed: dict[str, str], reason: str
) -> None:
    amd_tree(tmp_path, 1)
    for name, text in loaded.items():
        write(tmp_path, f"sys/module/amdgpu/{name}", text)
    state = read(tmp_path, "amd", run=modinfo(amdgpu=installed))
    assert drivers.find_reboot_reasons(state) == ([reason] if reason else [])


def test_installed_module_of_a_gpu_without_driver_is_loaded_by_a_reboot(tmp_path: Path) -> None:
    intel_tree(tmp_path, intel_cards("", device="56c0"))
    run = modinfo(i915={"filename": f"{DKMS}/i915.ko"}, xe={"filename": f"{MODULE}/xe/xe.ko"})
    assert drivers.find_reboot_reasons(read(tmp_path, "intel", run=run)) == ["the installed module i915 is not loaded"]
    assert drivers.find_reboot_reasons(read(tmp_path, "intel")) == []


def test_unreadable_log_is_no_problem_and_no_statement(tmp_path: Path) -> None:
    amd_tree(tmp_path, 1)
    state = read(tmp_path, "amd", None)
    assert (state["missing_firmware"], drivers.find_problems(state)) == (None, [])


def test_gpus_of_virtual_machines_are_left_out(tmp_path: Path) -> None:
    intel_tree(tmp_path, intel_cards("i915", "vfio-pci"))
    assert [gpu["pci_address"] for gpu in read(tmp_path, "intel")["gpus"]] == ["0000:03:00.0"]


def test_unsupported_modules_of_suse_are_allowed_by_a_file(tmp_path: Path) -> None:
    assert not read(tmp_path, "intel")["unsupported_modules"]
    write(tmp_path, "etc/modprobe.d/10-unsupported-modules.conf", "allow_unsupported_modules 0")
    assert not read(tmp_path, "intel")["unsupported_modules"]
    write(tmp_path, "etc/modprobe.d/10-unsupported-modules.conf", "# no\nallow_unsupported_modules 1")
    write(tmp_path, "lib/modprobe.d/10-unsupported-modules.conf", "allow_unsupported_modules 0")
    assert read(tmp_path, "intel")["unsupported_modules"]
