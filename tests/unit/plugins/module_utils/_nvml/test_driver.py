# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver by files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import driver

if TYPE_CHECKING:
    from pathlib import Path

OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n"
NOTHING = driver.Build()
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025\n"


def read(root: Path, library: str | None = None, installed: driver.Build = NOTHING, **files: bytes) -> dict[str, Any]:
    places = {
        "version": "sys/module/nvidia/version",
        "srcversion": "sys/module/nvidia/srcversion",
        "proc": "proc/driver/nvidia/version",
        "nouveau": "sys/module/nouveau/refcnt",
        "secure_boot": driver.SECURE_BOOT,
        "efi": "sys/firmware/efi/runtime",
        "packages": driver.REBOOT_PACKAGES,
    }
    for name, content in files.items():
        place = root / places[name]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return driver.read_driver(str(root), library, installed)


def test_read_driver_without_driver_has_none_values(tmp_path: Path) -> None:
    assert read(tmp_path) == {
        "module_version": None,
        "module_flavor": None,
        "installed_module_version": None,
        "library_version": None,
        "nouveau_loaded": False,
        "secure_boot": False,
        "reboot_required": False,
        "reboot_reasons": [],
        "vgpu_unlock": None,
    }


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "usr/lib/systemd/system/nvidia-vgpud.service",
            "ExecStart=/opt/vgpu_unlock/vgpu_unlock /usr/bin/nvidia-vgpud",
            True,
        ),
        (
            "etc/systemd/system/nvidia-vgpu-mgr.service.d/x.conf",
            "Environment=LD_PRELOAD=/opt/libvgpu_unlock_rs.so",
            True,
        ),
        ("usr/src/nvidia-535.54.06/nvidia/os-interface.c", '#include "/opt/vgpu_unlock/vgpu_unlock_hooks.c"', True),
        ("usr/src/nvidia-535.54.06/nvidia/os-interface.c", '#include "os-interface.h"', False),
        ("lib/systemd/system/nvidia-vgpud.service", "ExecStart=/usr/bin/nvidia-vgpud", False),
        ("usr/src/other/os-interface.c", "vgpu_unlock", False),
    ],
)
def test_read_driver_with_vgpu_unlock_names_file(tmp_path: Path, path: str, text: str, expected: bool) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    assert read(tmp_path)["vgpu_unlock"] == (f"/{path}" if expected else None)


@pytest.mark.parametrize(("text", "flavor"), [(OPEN, "open"), (CLOSED, "proprietary")])
def test_read_driver_flavor_by_version_file(tmp_path: Path, text: str, flavor: str) -> None:
    result = read(tmp_path, version=b"570.124.06\n", proc=text.encode())
    assert (result["module_version"], result["module_flavor"]) == ("570.124.06", flavor)


def test_read_driver_with_nouveau_reports_it(tmp_path: Path) -> None:
    assert read(tmp_path, nouveau=b"1\n")["nouveau_loaded"] is True


@pytest.mark.parametrize(("value", "on"), [(b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"", False)])
def test_read_driver_secure_boot_by_efi_variable(tmp_path: Path, value: bytes, on: bool) -> None:
    assert read(tmp_path, secure_boot=value)["secure_boot"] is on


def test_read_driver_with_efi_without_variable_is_false(tmp_path: Path) -> None:
    assert read(tmp_path, efi=b"")["secure_boot"] is None  # a kernel that ignores the firmware
    (tmp_path / driver.SECURE_BOOT).parent.mkdir()
    assert read(tmp_path)["secure_boot"] is None
    (tmp_path / driver.SECURE_BOOT).with_name("BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c").touch()
    assert read(tmp_path)["secure_boot"] is False


def test_read_driver_with_unreadable_variable_is_none(tmp_path: Path) -> None:
    (tmp_path / driver.SECURE_BOOT).mkdir(parents=True)
    assert read(tmp_path)["secure_boot"] is None


def test_read_driver_with_differences_names_reboot_reasons(tmp_path: Path) -> None:
    result = read(
        tmp_path,
        "575.57.08",
        driver.Build("580.95.05", "BBB"),
        version=b"570.124.06\n",
        srcversion=b"AAA\n",
        packages=b"linux-base\nnvidia-kernel-dkms\nnvidia-kernel-dkms\n",
    )
    assert result["reboot_required"] is True
    assert result["reboot_reasons"] == [
        "the loaded kernel module is 570.124.06 and the library is 575.57.08",
        "the loaded kernel module is 570.124.06 and the installed one is 580.95.05",
        "the package manager requires it because of nvidia-kernel-dkms",
    ]


@pytest.mark.parametrize(
    "packages", [b"linux-base\n", b"linux-image-6.8.0-1013-nvidia\nlinux-image-6.8.0-1013-nvidia-64k\n"]
)
def test_read_driver_ignores_packages_of_others(tmp_path: Path, packages: bytes) -> None:
    assert read(tmp_path, "570.124.06", version=b"570.124.06\n", packages=packages)["reboot_required"] is False


@pytest.mark.parametrize("package", [b"nvidia-dkms-570-server", b"linux-modules-nvidia-570-server-6.8.0-60-generic"])
@pytest.mark.parametrize(
    ("loaded", "installed", "requested"),
    [
        pytest.param(b"AAA\n", driver.Build("570.124.06", "AAA"), False, id="same-build"),
        pytest.param(b"AAA\n", driver.Build("570.124.06", None), True, id="build-unknown"),
        pytest.param(b"AAA\n", driver.Build("570.124.06", "BBB"), True, id="another-build"),
        pytest.param(b"", driver.Build("570.124.06", None), True, id="kernel-without-srcversion"),
    ],
)
def test_read_driver_after_reload_ignores_packages(
    tmp_path: Path, package: bytes, loaded: bytes, installed: driver.Build, requested: bool
) -> None:
    result = read(
        tmp_path,
        "570.124.06",
        installed,
        version=b"570.124.06\n",
        srcversion=loaded,
        packages=b"linux-base\n" + package,
    )
    reason = f"the package manager requires it because of {package.decode()}"
    assert result["reboot_reasons"][-1:] == ([reason] if requested else [])
    assert result["reboot_required"] is requested


def test_explain_outdated_with_other_build_names_it(tmp_path: Path) -> None:
    result = read(tmp_path, "570.2", driver.Build("570.2", "BBB"), version=b"570.2\n", srcversion=b"AAA\n")
    assert result["reboot_reasons"] == [
        "the loaded kernel module is another build of 570.2 than the installed one (srcversion AAA, and BBB is installed)"
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo of-$2", driver.Build("of-version", "of-srcversion")),
        ("[ $2 = srcversion ] || echo 570.124.06", driver.Build("570.124.06", None)),
        ("exit 1", NOTHING),
        ("exit 0", NOTHING),
        (None, NOTHING),
    ],
)
def test_read_installed_build_by_modinfo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, expected: driver.Build
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if script is None:
        monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    else:
        program = tmp_path / "modinfo"
        program.write_text(f'#!/bin/sh\n[ $# = 3 ] && [ "$1" = -F ] && [ "$3" = nvidia ] || exit 3\n{script}\n')
        program.chmod(0o755)
    assert driver.read_installed_build() == expected


# The output of kmod 30 with the files of Debian's packages.
SHOWN = {
    "nvidia": "install modprobe -i nvidia-current $CMDLINE_OPTS \n",
    "nvidia_uvm": "install modprobe nvidia ; modprobe -i nvidia-current-uvm $CMDLINE_OPTS \n",
}


@pytest.mark.parametrize(
    ("name", "files", "found"),
    [
        ("nvidia", {"nvidia", "nvidia-current"}, "nvidia"),
        ("nvidia", {"nvidia-current"}, "nvidia-current"),
        ("nvidia_uvm", {"nvidia-current-uvm"}, "nvidia-current-uvm"),
        ("nvidia_drm", {"nvidia-current-drm"}, None),
        ("nvidia", set(), None),
    ],
)
def test_find_module_file_with_install_line_follows_it(name: str, files: set[str], found: str | None) -> None:
    def run(command: Sequence[str]) -> tuple[int, str, str]:
        if command[0] == "modinfo":
            return (0, "/lib/modules/x.ko\n", "") if command[-1] in files else (1, "", "Module not found.")
        assert list(command[:-1]) == ["modprobe", "--show-depends"]
        return (0, SHOWN[command[-1]], "") if command[-1] in SHOWN else (1, "", "FATAL: Module not found")

    assert driver.find_module_file(name, run) == found
