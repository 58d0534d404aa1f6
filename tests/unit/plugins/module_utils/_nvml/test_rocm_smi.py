# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What rocm-smi adds to GPUs of AMD, and that its failure costs nothing else. Its answers are written after its documentation."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from lab import wait

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect, isolation, rocm_smi
from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.rocm_smi import Card

ADDRESS = "0000:c1:00.0"
OLDER = {
    "card0": {
        "PCI Bus": "0000:C1:00.0",
        "VRAM Total Memory (B)": "68702699520",
        "VRAM Total Used Memory (B)": "11194368",
        "Card series": "Instinct MI210",
        "Card model": "0x0c34",
    },
    "system": {"Driver version": "5.16.9"},
}
NEWER = {
    "card0": {"PCI Bus": "0000:C1:00.0", "VRAM Total Memory (B)": "N/A", "Card Series": "0x740f", "GUID": "29921"},
    "card1": {"PCI Bus": "0000:C2:00.0", "VRAM Total Memory (B)": "8", "Card Series": "AMD Instinct MI300X"},
    "card2": {"VRAM Total Memory (B)": "8", "Card Series": "somewhere"},
}


@pytest.mark.parametrize(
    ("output", "cards"),
    [
        (json.dumps(OLDER), {ADDRESS: Card("Instinct MI210", 68702699520)}),
        (
            f"\nWARNING: AMD GPU device(s) is/are in a low-power state.\n\n{json.dumps(NEWER, indent=2)}\n",
            {ADDRESS: Card(None, None), "0000:c2:00.0": Card("AMD Instinct MI300X", 8)},
        ),
    ],
)
def test_cards(output: str, cards: dict[str, Card]) -> None:
    assert rocm_smi.parse(0, output) == cards


@pytest.mark.parametrize(
    ("output", "words"),
    [("", "it said nothing"), ("x\nERROR: no driver\n\n", "ERROR: no driver"), ('{"card0": {', '{"card0": {')],
)
def test_no_answer(output: str, words: str) -> None:
    with pytest.raises(rocm_smi.RocmSmiError) as caught:
        rocm_smi.parse(2, output)
    assert str(caught.value) == f"{words} (exit status 2)"


def gpu(vendor: str = "amd", name: str | None = None, memory: int | None = None) -> dict[str, Any]:
    return {"vendor": vendor, "name": name, "pci_address": ADDRESS, "memory_total_bytes": memory}


def test_what_is_known_stays_and_what_lacks_comes() -> None:
    cards = {ADDRESS: Card("theirs", 7)}
    assert rocm_smi.completed([gpu(), gpu(name="ours"), gpu(memory=1)], cards) == [
        gpu(name="theirs", memory=7),
        gpu(name="ours", memory=7),
        gpu(name="theirs", memory=1),
    ]
    assert rocm_smi.completed([gpu()], {}) == [gpu()]
    assert rocm_smi.lacks([gpu(name="ours")])
    assert not rocm_smi.lacks([gpu("intel"), gpu(name="ours", memory=1)])


@pytest.fixture
def bus(tmp_path: Path) -> str:
    """A bus with a GPU of AMD of which nothing more is known."""
    folder = tmp_path / "devices" / ADDRESS
    folder.mkdir(parents=True)
    for name, value in (("vendor", "0x1002"), ("class", "0x038000"), ("device", "0xffff")):
        (folder / name).write_text(f"{value}\n", encoding="ascii")
    return str(folder.parent)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have a rocm-smi that is this script."""

    def put(script: str) -> str:
        path = tmp_path / "rocm-smi"
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return str(path)

    return put


def test_the_program_is_asked_for_what_the_bus_does_not_tell(bus: str, install: Any) -> None:
    install(f"case \"$*\" in *--showbus*--json*) echo '{json.dumps(OLDER)}' ;; esac")
    assert collect.others(bus, wait.LIMIT) == ([gpu(name="Instinct MI210", memory=68702699520)], [])


@pytest.mark.parametrize(
    ("script", "seconds", "words"),
    [
        ("echo broken; exit 2", wait.LIMIT, "failed (RocmSmiError: broken (exit status 2) in "),
        (f"sleep {wait.LIMIT}", 0.2, "did not answer in time"),
    ],
)
def test_a_failure_of_the_program_is_told_and_costs_nothing_else(
    bus: str, install: Any, monkeypatch: pytest.MonkeyPatch, script: str, seconds: float, words: str
) -> None:
    program, limits, call = install(script), iter([wait.LIMIT, seconds]), isolation.call
    monkeypatch.setattr(isolation, "call", lambda function, _timeout: call(function, next(limits)))
    found, (warning,) = collect.others(bus, wait.LIMIT)
    assert found == [gpu()]
    assert warning.startswith(f"{program} {words}")


def test_a_bus_that_hangs_is_given_up(bus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect.pci, "others", lambda _path: time.sleep(wait.LIMIT))
    assert collect.others(bus, 0.2) == (
        [],
        [f"GPUs of AMD and Intel are not told, for {bus} did not answer in time; look into the kernel log."],
    )


def test_a_bus_without_gpus_of_others_costs_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "vendor").write_text("0x10de\n")
    (tmp_path / "0000:01:00.0" / "class").write_text("0x030200\n")
    monkeypatch.setattr(collect.isolation, "call", lambda *_arguments: pytest.fail("a process was started"))
    assert collect.others(str(tmp_path), wait.LIMIT) == ([], [])
