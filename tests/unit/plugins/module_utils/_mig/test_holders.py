# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that hold GPUs, whose names are untrusted input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._mig import holders
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.partitions import Process
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._mig.gpus import gpu


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("python3", "python3"),
        ("a" * 99, "a" * 15),
        ("\x1b[31mred\n{{ x }}", "?[31mred?{{ x }"),
        ("caf\u00e9", "caf?"),
        (" ", None),
        ("", None),
        (None, None),
    ],
)
def test_name_is_printable_and_bounded(name: str | None, clean: str | None) -> None:
    assert holders.clean(name) == clean


def test_holders_are_found_by_device_and_by_nvml(tmp_path: Path) -> None:
    for pid, device in ((7, "/dev/nvidia0"), (8, "/dev/nvidia1"), (9, "/dev/nvidiactl"), (10, "/dev/nvidia10")):
        folder = tmp_path / "proc" / str(pid) / "fd"
        folder.mkdir(parents=True)
        (folder.parent / "comm").write_text(f"program{pid}\n")
        (folder / "3").symlink_to(device)
        (folder / "4").symlink_to("/dev/nvidia0" if pid == 8 else "/dev/null")
    gpus = [gpu(0, processes=(Process(7, "other"), Process(70, "compute"))), gpu(1)]
    found = holders.read_holders(str(tmp_path), gpus)
    assert [(each["pid"], each["program"], each["gpus"]) for each in found] == [
        (7, "program7", [0]),
        (8, "program8", [0, 1]),
        (70, "compute", [0]),
    ]
    many = gpu(0, processes=tuple(Process(pid, "x") for pid in range(1000)))
    assert len(holders.read_holders(str(tmp_path / "none"), [many])) == holders.MOST


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, ""),
        (1, "a (pid 0)"),
        (2, "a (pid 0), a (pid 1)"),
        (7, "a (pid 0), a (pid 1), a (pid 2), a (pid 3), a (pid 4) and 2 more"),
    ],
)
def test_sentence_names_the_first_holders(count: int, text: str) -> None:
    rows: list[dict[str, Any]] = [{"pid": pid, "program": "a"} for pid in range(count)]
    assert holders.format_holders(rows) == text
