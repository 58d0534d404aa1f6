# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots: hours between them, and the file."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from lab import wait

from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import snapshots
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.errors import CostError
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import Held, State, integrate
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.snapshots import (
    Snapshot,
    decode_snapshot,
    encode_snapshot,
    list_segments,
    read_snapshots,
    remove_snapshots,
    store_snapshot,
)

HOUR = 3600
# 2026-10-25T00:00:00Z, before the end of summer time in Europe.
BEGIN = 1792886400
LIMIT = 100


def take(hour: float, held: float = 1, gpus: float = 8, node: str = "n1", server: str = "https://a:6443") -> Snapshot:
    rows = [Held("team-a", node, "nvidia.com/gpu", "GPUs", held, held)] if held else []
    return Snapshot(BEGIN + int(hour * HOUR), server, State({"n1": {"A100": gpus}}, rows))


def add_up(*taken: Snapshot, start: float = 0, end: float = 24, gap: float = 2) -> dict[str, float]:
    usage = integrate(list_segments(taken, gap * HOUR), BEGIN + start * HOUR, BEGIN + end * HOUR)
    total: dict[str, float] = {"covered": usage.covered, "allocated": 0, "idle": 0, "gpu": 0}
    for hours in usage.nodes.values():
        for name in ("allocated", "idle", "gpu"):
            total[name] += getattr(hours, name)
    return total


# Snapshots by hour -> the hours covered, allocated and of GPUs.
CASES: dict[str, tuple[list[Snapshot], tuple[float, float, float]]] = {
    "one snapshot": ([take(0)], (0, 0, 0)),
    "two snapshots": ([take(0), take(1)], (1, 1, 8)),
    "snapshots that are not sorted": ([take(2), take(0), take(1)], (2, 2, 16)),
    "two at the same time": ([take(0), take(0), take(1)], (1, 1, 8)),
    # A pod that came or went in between was there for half of the time, on average.
    "a pod comes": ([take(0, 0), take(1)], (1, 0.5, 8)),
    "a pod ends": ([take(0), take(1, 0), take(2, 0)], (2, 0.5, 16)),
    "GPUs are added": ([take(0, 1, 4), take(1, 1, 8)], (1, 1, 6)),
    "the longest gap": ([take(0), take(2)], (2, 2, 16)),
    "a gap that is too long": ([take(0), take(1), take(3.5), take(4)], (1.5, 1.5, 12)),
    "a pod that moves": ([take(0), take(1, node="n2"), take(2, node="n2")], (2, 2, 16)),
    # The night in which clocks go back has an hour for each hour.
    "the end of summer time": ([take(hour) for hour in range(5)], (4, 4, 32)),
}


@pytest.mark.parametrize(("taken", "expected"), CASES.values(), ids=CASES)
def test_hours_between_snapshots(taken: list[Snapshot], expected: tuple[float, float, float]) -> None:
    found = add_up(*taken)
    assert (found["covered"], found["allocated"], found["gpu"]) == pytest.approx(expected)


def test_window_cuts_the_time_between_snapshots() -> None:
    assert add_up(take(0), take(2), start=0.5, end=1.75)["allocated"] == pytest.approx(1.25)


def test_snapshot_survives_its_line() -> None:
    snapshot = Snapshot(
        BEGIN,
        "https://a:6443",
        State({"n1": {'A"100\n': 8.0}}, [Held("=1+1", "n1", "aliyun.com/gpu-mem", "GiB", 8.0, 0.5)]),
    )
    line = encode_snapshot(snapshot)
    assert line.count(b"\n") == 1
    assert json.loads(line)["time"] == "2026-10-25T00:00:00Z"
    assert decode_snapshot(line) == snapshot


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "gpu.kubernetes/cost-snapshot/v2"},
        {"time": 5},
        {"time": "yesterday"},
        {"held": [["a", "n1"]]},
        {"held": [["a", "n1", "nvidia.com/gpu", "GPUs", -1, 1]]},
        {"held": [["a", "n1", "nvidia.com/gpu", "GPUs", "many", 1]]},
        {"gpus": {"n1": {"A100": "inf"}}},
        {"gpus": ["n1"]},
    ],
)
def test_other_lines_are_no_snapshots(change: dict[str, Any]) -> None:
    content = {**json.loads(encode_snapshot(take(0))), **change}
    assert decode_snapshot(json.dumps(content).encode()) is None


def test_read_snapshots_returns_those_around_the_window() -> None:
    lines = [encode_snapshot(take(hour)) for hour in range(6)]
    found, invalid = read_snapshots([*lines, b"{"], BEGIN + 1.5 * HOUR, BEGIN + 2.5 * HOUR)
    assert [each.time for each in found] == [BEGIN + hour * HOUR for hour in (1, 2, 3)]
    assert invalid == 1


# -- the file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshots.jsonl"


def store(path: Path, hour: float = 0, limit: int = LIMIT, **more: Any) -> list[bytes]:
    check_mode = more.pop("check_mode", False)
    return store_snapshot(str(path), take(hour, **more), limit, check_mode)


def test_file_grows_by_a_line_and_is_private(path: Path) -> None:
    old = os.umask(0)
    try:
        assert store(path) == [encode_snapshot(take(0))]
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    inode = path.stat().st_ino
    assert store(path, 1) == [encode_snapshot(take(hour)) for hour in (0, 1)]
    assert path.read_bytes() == b"".join(encode_snapshot(take(hour)) for hour in (0, 1))
    assert (path.stat().st_mode & 0o777, path.stat().st_ino) == (0o600, inode)


def test_check_mode_writes_nothing(path: Path) -> None:
    assert len(store(path, check_mode=True)) == 1
    assert not path.exists()
    store(path)
    before = path.read_bytes()
    assert len(store(path, 1, check_mode=True)) == 2
    assert path.read_bytes() == before


def test_oldest_snapshots_are_removed(path: Path) -> None:
    for hour in range(5):
        lines = store(path, hour, limit=3)
    assert lines == [encode_snapshot(take(hour)) for hour in (2, 3, 4)]
    assert path.read_bytes() == b"".join(lines)
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_file_has_a_largest_size(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "MAX_BYTES", 2 * len(encode_snapshot(take(0))))
    assert [len(store(path, hour)) for hour in range(4)] == [1, 2, 2, 2]
    # The newest one is kept in any case.
    monkeypatch.setattr(snapshots, "MAX_BYTES", 1)
    assert store(path, 4) == [encode_snapshot(take(4))]


def test_line_of_a_killed_run_is_ignored(path: Path) -> None:
    store(path)
    with path.open("ab") as file:
        file.write(encode_snapshot(take(1))[:-20])
    lines = store(path, 2)
    assert len(lines) == 3
    assert [decode_snapshot(line) is not None for line in lines] == [True, False, True]
    assert store(path, 3)[:3] == lines


@pytest.mark.parametrize("content", [b"root:x:0:0\n", b"{}\n", b'{"schema": "gpu.kubernetes/report/v1"}\n'])
def test_file_of_others_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for act in (store, lambda path: store(path, check_mode=True), lambda path: remove_snapshots(str(path))):
        with pytest.raises(CostError, match="is not a file of snapshots; set gpu_cost_snapshot_path"):
            act(path)
    assert path.read_bytes() == content


def test_another_cluster_is_refused(path: Path) -> None:
    store(path)
    before = path.read_bytes()
    with pytest.raises(
        CostError, match="snapshots of the cluster at https://a:6443, and this run is of https://b:6443"
    ):
        store(path, 1, server="https://b:6443")
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "missing folder"])
def test_path_that_is_no_regular_file_is_refused(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(path.parent / "other")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path = path / "snapshots.jsonl"
    with pytest.raises(CostError, match=r"snapshots\.jsonl on the controller cannot be used \("):
        store(path)


def test_file_is_removed_once(path: Path) -> None:
    store(path)
    assert remove_snapshots(str(path), check_mode=True) is True
    assert path.exists()
    assert remove_snapshots(str(path)) is True
    assert not path.exists()
    assert remove_snapshots(str(path)) is False


def is_waiting(pid: int) -> bool:
    """Whether a process waits for a lock of a file."""
    return any("->" in line and f" {pid} " in line for line in Path("/proc/locks").read_text().splitlines())


def test_run_that_waited_for_another_one_writes_to_its_new_file(path: Path) -> None:
    store(path)
    new = path.with_name("new")
    new.write_bytes(b"".join(encode_snapshot(take(hour)) for hour in (0, 1)))
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = multiprocessing.Process(target=store, args=(path, 2))
        process.start()
        wait.until(lambda: is_waiting(process.pid or 0) or not process.is_alive(), pause=0.05)
        new.rename(path)
        # The process has inherited the open file, and with it the lock.
        fcntl.flock(file, fcntl.LOCK_UN)
    process.join()
    assert path.read_bytes() == b"".join(encode_snapshot(take(hour)) for hour in (0, 1, 2))
