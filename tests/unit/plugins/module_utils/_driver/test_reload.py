# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the kernel's refusals are worded. What is run is tested with the module."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._driver import reload
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import driver

GPU = "sys/bus/pci/devices/0000:01:00.0"


def put(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


@pytest.mark.parametrize("words", ["Key was rejected by service", "Required key not available"])
def test_a_signature_that_the_firmware_does_not_know(tmp_path: Path, words: str) -> None:
    assert "mokutil --import the public key" in reload.trouble("nvidia", words, str(tmp_path))
    put(tmp_path, {"var/lib/dkms/mok.pub": b""})
    assert "mokutil --import /var/lib/dkms/mok.pub" in reload.trouble("nvidia", words, str(tmp_path))


def test_not_permitted(tmp_path: Path) -> None:
    assert "on the host if this is a container" in reload.trouble("nvidia", "Operation not permitted", str(tmp_path))


def test_not_permitted_for_want_of_a_signature(tmp_path: Path) -> None:
    put(tmp_path, {driver.SECURE_BOOT: b"\x06\0\0\0\x01"})
    assert "Secure Boot is on" in reload.trouble("nvidia", "Operation not permitted", str(tmp_path))


def test_no_gpu(tmp_path: Path) -> None:
    message = reload.trouble("nvidia", "could not insert 'nvidia': No such device", str(tmp_path))
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
def test_a_gpu_that_the_driver_cannot_have(tmp_path: Path, holder: str | None, words: str) -> None:
    put(tmp_path, {f"{GPU}/vendor": b"0x10de\n", f"{GPU}/class": b"0x030200\n"})
    if holder:
        (tmp_path / "drivers" / holder).mkdir(parents=True)
        (tmp_path / GPU / "driver").symlink_to(tmp_path / "drivers" / holder)
    assert words in reload.trouble("nvidia", "No such device", str(tmp_path))


def test_other_words_are_the_kernels(tmp_path: Path) -> None:
    message = reload.trouble("gdrdrv", "Invalid argument", str(tmp_path))
    assert (
        message
        == "The kernel module gdrdrv cannot be loaded (Invalid argument): see what the kernel wrote about it (dmesg)."
    )
