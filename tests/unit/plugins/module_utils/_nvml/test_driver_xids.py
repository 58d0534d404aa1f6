# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import driver

if TYPE_CHECKING:
    from pathlib import Path

LOG = """\
6,1,0,-;Linux version 6.1.0
4,1042,8613475110,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
 SUBSYSTEM=pci
4,1042,8613475200,-;NVRM: Xid (PCI:0000:3b:00 GPU-I:05 GPU-CI:00): 43, pid=4240, name=train, Ch 00000010
4,1043,8613475999,c;NVRM: Xid (PCI:0000:AF:00): 31, pid=4242, name=python3, Ch 00000008
4,1044,8613476000,-;NVRM: GPU at PCI:0000:3b:00: GPU-1
6,1045,8613476001,-;somebody writes NVRM: Xid (PCI:0000:01:00): 13
"""


def test_read_xids_returns_each_record(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(LOG)
    assert driver.read_xids(str(log)) == [
        {
            "pci_address": "0000:3b:00.0",
            "xid": 79,
            "message": "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "uptime_seconds": 8613.475,
        },
        {
            "pci_address": "0000:3b:00.0",
            "xid": 43,
            "message": "pid=4240, name=train, Ch 00000010",
            "uptime_seconds": 8613.475,
        },
        {
            "pci_address": "0000:af:00.0",
            "xid": 31,
            "message": "pid=4242, name=python3, Ch 00000008",
            "uptime_seconds": 8613.476,
        },
    ]


@pytest.mark.parametrize("name", ["missing", "."])
def test_read_xids_without_right_is_none(tmp_path: Path, name: str) -> None:
    assert driver.read_xids(str(tmp_path / name)) is None


def test_read_xids_does_not_wait(tmp_path: Path) -> None:
    """Like /dev/kmsg, an open pipe has no end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    handle = os.open(pipe, os.O_RDWR)
    os.write(handle, LOG.encode())
    answers: list[object] = []
    reader = threading.Thread(target=lambda: answers.append(driver.read_xids(str(pipe))), daemon=True)
    reader.start()
    reader.join(10)
    os.close(handle)
    assert [each["xid"] for each in answers[0]] == [79, 43, 31]  # type: ignore[attr-defined]
