# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands that unload and load modules, and the explanations of errors."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Mapping, Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._driver import reload
from ansible_collections.gpu.kubernetes.plugins.module_utils._driver.modules import ModulesError, Plan
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import driver

GPU = "sys/bus/pci/devices/0000:01:00.0"


def write_files(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


UNLOAD = ("nvidia_uvm", "nvidia_drm", "nvidia")


def make_failing_runner(
    commands: list[str], errors: Mapping[str, str]
) -> Callable[[Sequence[str]], tuple[int, str, str]]:
    """Return a runner that records the *commands*, and fails with the text of *errors*."""

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        program, _end_of_options, module = command
        commands.append(f"{program} {module}")
        words = errors.get(commands[-1])
        return (1, "", f"ERROR: {words}\n") if words else (0, "", "")

    return run


def test_apply_plan_keeps_the_order(tmp_path: Path) -> None:
    commands: list[str] = []
    plan = Plan(unload=UNLOAD, load=("nvidia", "nvidia_uvm"))
    assert reload.apply_plan(plan, str(tmp_path), make_failing_runner(commands, {})) is None
    assert commands == [*(f"rmmod {name}" for name in UNLOAD), "modprobe nvidia", "modprobe nvidia_uvm"]


@pytest.mark.parametrize("words", ["Module nvidia is in use", "Resource temporarily unavailable", "resource busy"])
def test_apply_plan_with_busy_module_loads_others_again(tmp_path: Path, words: str) -> None:
    commands: list[str] = []
    run = make_failing_runner(commands, {"rmmod nvidia": words})
    assert reload.apply_plan(Plan(unload=UNLOAD, load=("nvidia",)), str(tmp_path), run) == (
        f"nvidia cannot be unloaded (ERROR: {words}); nvidia_drm and nvidia_uvm, unloaded before it, are loaded again"
    )
    assert commands == [*(f"rmmod {name}" for name in UNLOAD), "modprobe nvidia_drm", "modprobe nvidia_uvm"]


@pytest.mark.parametrize(
    ("words", "remedy"),
    [("Operation not permitted", "run this as root"), ("Unknown error 999", "read the kernel's log")],
)
def test_apply_plan_with_other_error_loads_others_again_and_raises(tmp_path: Path, words: str, remedy: str) -> None:
    commands: list[str] = []
    run = make_failing_runner(commands, {"rmmod nvidia_drm": words})
    with pytest.raises(ModulesError) as caught:
        reload.apply_plan(Plan(unload=UNLOAD), str(tmp_path), run)
    assert str(caught.value).startswith(
        f"The kernel module nvidia_drm cannot be unloaded (ERROR: {words}); nvidia_uvm, unloaded before it, is loaded again: {remedy}"
    )
    assert commands == ["rmmod nvidia_uvm", "rmmod nvidia_drm", "modprobe nvidia_uvm"]


@pytest.mark.parametrize("words", ["Key was rejected by service", "Required key not available"])
def test_explain_load_failure_with_unknown_signature_names_key(tmp_path: Path, words: str) -> None:
    assert "mokutil --import the public key" in reload.explain_load_failure("nvidia", words, str(tmp_path))
    write_files(tmp_path, {"var/lib/dkms/mok.pub": b""})
    assert "mokutil --import /var/lib/dkms/mok.pub" in reload.explain_load_failure("nvidia", words, str(tmp_path))


def test_explain_load_failure_without_permission_requires_root(tmp_path: Path) -> None:
    assert "and not in a container" in reload.explain_load_failure("nvidia", "Operation not permitted", str(tmp_path))


def test_explain_load_failure_without_permission_under_secure_boot_names_key(tmp_path: Path) -> None:
    write_files(tmp_path, {driver.SECURE_BOOT: b"\x06\0\0\0\x01"})
    assert "Secure Boot is on" in reload.explain_load_failure("nvidia", "Operation not permitted", str(tmp_path))


def test_explain_load_failure_without_gpu_reports_it(tmp_path: Path) -> None:
    message = reload.explain_load_failure("nvidia", "could not insert 'nvidia': No such device", str(tmp_path))
    assert message.startswith(
        "The kernel module nvidia cannot be loaded (could not insert 'nvidia': No such device): there is"
    )
    assert "no NVIDIA GPU on the PCI bus" in message


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        ("vfio-pci", "0000:01:00.0 is held by vfio-pci"),
        ("nvidia", "supports none of the GPUs (0000:01:00.0)"),
        (None, "supports none of the GPUs (0000:01:00.0)"),
    ],
)
def test_explain_load_failure_with_held_gpu_names_holder(tmp_path: Path, holder: str | None, words: str) -> None:
    write_files(tmp_path, {f"{GPU}/vendor": b"0x10de\n", f"{GPU}/class": b"0x030200\n"})
    if holder:
        (tmp_path / "drivers" / holder).mkdir(parents=True)
        (tmp_path / GPU / "driver").symlink_to(tmp_path / "drivers" / holder)
    assert words in reload.explain_load_failure("nvidia", "No such device", str(tmp_path))


def test_explain_load_failure_with_other_error_refers_to_kernel_log(tmp_path: Path) -> None:
    message = reload.explain_load_failure("gdrdrv", "Invalid argument", str(tmp_path))
    assert message == "The kernel module gdrdrv cannot be loaded (Invalid argument): read the kernel's log (dmesg)."
