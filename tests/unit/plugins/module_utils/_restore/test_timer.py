# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node restores its former files itself: the timer, the archive that it starts, and the record that the next run reads."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.module_utils._restore import sources
from ansible_collections.gpu.kubernetes.plugins.module_utils._restore.timer import (
    Programs,
    Timer,
    TimerError,
    build_archive,
    sum_seconds,
)


class Systemd:
    """Records the calls of systemctl and systemd-run; ``states`` are the answers of is-active, ``error`` that of systemd-run."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.states: list[str] = []
        self.error = ""

    def run(self, command: Sequence[str]) -> tuple[int, str]:
        self.calls.append(list(command))
        if command[0] == "systemd-run":
            return (1, self.error) if self.error else (0, "")
        if command[1] == "is-active":
            state = self.states.pop(0) if self.states else "inactive"
            return (0 if state == "active" else 3), f"{state}\n"
        return 0, ""

    @property
    def started(self) -> list[str]:
        """The command of the last timer."""
        command = [call for call in self.calls if call[0] == "systemd-run"][-1]
        return command[command.index(sys.executable) :]


@pytest.fixture
def systemd() -> Systemd:
    return Systemd()


@pytest.fixture
def timer(systemd: Systemd, tmp_path: Path) -> Timer:
    programs = Programs("systemctl", "systemd-run", sys.executable)
    return Timer("containerd", StatePaths(str(tmp_path / "state")), programs, systemd.run, lambda _seconds: None)


def former(path: Path, content: bytes | None, mode: int | None = 0o640) -> dict[str, Any]:
    owner = (os.getuid(), os.getgid())
    encoded = None if content is None else base64.b64encode(content).decode()
    return {"path": str(path), "content": encoded, "mode": mode, "uid": owner[0], "gid": owner[1]}


def test_disarmed_timer_leaves_no_files(timer: Timer, systemd: Systemd, tmp_path: Path) -> None:
    timer.arm([former(tmp_path / "a", b"x")], [["systemctl", "restart", "containerd"]], 240)
    (call,) = [call for call in systemd.calls if call[0] == "systemd-run"]
    assert {"--unit=gpu-kubernetes-restore-containerd", "--on-active=240", "--collect"} <= set(call)
    for path in (timer.plan_file, timer.folder):
        assert stat.S_IMODE(os.stat(path).st_mode) == (0o700 if path == timer.folder else 0o600)
    timer.disarm()
    assert ["systemctl", "stop", "gpu-kubernetes-restore-containerd.timer"] in systemd.calls
    assert not os.path.exists(timer.folder)
    count = len(systemd.calls)
    timer.disarm()
    assert len(systemd.calls) == count


def test_fired_timer_restores_files_and_restarts(timer: Timer, systemd: Systemd, tmp_path: Path) -> None:
    """A Python with only the archive runs it."""
    changed, added, same = (tmp_path / name for name in ("changed", "added", "same"))
    changed.write_bytes(b"new")
    added.write_bytes(b"new")
    same.write_bytes(b"same")
    marker = tmp_path / "restarted"
    files = [former(changed, b"old"), former(added, None), former(same, b"same"), former(tmp_path / "lost", b"back")]
    timer.arm(files, [["touch", str(marker)], ["false"]], 240)
    done = subprocess.run(systemd.started, cwd="/", env={"PATH": os.environ["PATH"]}, check=False, capture_output=True)
    assert done.returncode == 1, done.stderr
    assert (changed.read_bytes(), same.read_bytes(), (tmp_path / "lost").read_bytes()) == (b"old", b"same", b"back")
    assert stat.S_IMODE(changed.stat().st_mode) == 0o640
    assert not added.exists()
    assert marker.exists()
    kept = [path.read_bytes() for path in (tmp_path / "state" / "backups").iterdir()]
    assert kept == [b"new", b"new"]
    record = timer.read_record()
    assert record is not None
    assert record["files"] == [str(changed), str(added), str(tmp_path / "lost")]
    assert record["problems"] == ["false: exit status 1"]
    assert record["armed"] <= record["at"]
    # The run learns that its change is undone, and the next one reads the record.
    with pytest.raises(
        TimerError, match=f"containerd is undone: .* restored {changed} and .*false: exit status 1; .*run again"
    ):
        timer.disarm()
    assert timer.read_record() == record
    timer.remove_record()
    assert timer.read_record() is None
    assert not os.path.exists(timer.folder)


def test_armed_timer_forgets_an_earlier_restore(timer: Timer, systemd: Systemd, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"new")
    timer.arm([former(tmp_path / "a", b"old")], [], 240)
    subprocess.run(systemd.started, cwd="/", check=True, capture_output=True)
    timer.arm([former(tmp_path / "a", b"old")], [], 240)
    timer.disarm()
    assert not os.path.exists(timer.folder)


def test_restored_files_of_an_interrupted_rollback_still_restart_the_daemon(
    timer: Timer, systemd: Systemd, tmp_path: Path
) -> None:
    """The run has restored them, and ended before its restart. It could not verify anything, so nothing is undone."""
    (tmp_path / "a").write_bytes(b"old")
    timer.arm([former(tmp_path / "a", b"old")], [["touch", str(tmp_path / "restarted")]], 240)
    subprocess.run(systemd.started, cwd="/", env={"PATH": os.environ["PATH"]}, check=True, capture_output=True)
    assert (tmp_path / "restarted").exists()
    timer.disarm()


#: The seconds of the verification, hosts of the batch, forks, and the seconds until the node restores.
SECONDS = {
    "one-host": (60, 1, 5, 420),
    "one-round": (60, 5, 5, 420),
    "two-rounds": (60, 6, 5, 480),
    "large-batch": (60, 100, 5, 1560),
    "slow-verification": (460, 1, 5, 820),
    "short-verification": (10, 20, 5, 550),
    "no-forks": (60, 1, 0, 420),
}


@pytest.mark.parametrize("case", SECONDS)
def test_sum_seconds_covers_restart_verification_and_other_rounds(case: str) -> None:
    *parameters, expected = SECONDS[case]
    assert sum_seconds(*parameters) == expected


def test_failed_restore_of_a_file_restores_the_others(timer: Timer, systemd: Systemd, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "a").write_bytes(b"new")
    timer.arm([former(tmp_path / "folder", b"x"), former(tmp_path / "a", b"old")], [], 240)
    subprocess.run(systemd.started, cwd="/", check=False, capture_output=True)
    record = timer.read_record()
    assert record is not None
    assert (tmp_path / "a").read_bytes() == b"old"
    assert record["problems"] == [f"{tmp_path / 'folder'} is not a regular file."]


def test_disarm_during_a_restore_waits(timer: Timer, systemd: Systemd, tmp_path: Path) -> None:
    timer.arm([former(tmp_path / "a", b"x")], [], 240)
    systemd.calls.clear()
    systemd.states = ["active", "deactivating", "inactive"]
    timer.disarm()
    assert [call[1] for call in systemd.calls] == ["stop", "is-active", "is-active", "is-active", "reset-failed"]
    timer.arm([former(tmp_path / "a", b"x")], [], 240)
    systemd.states = ["active"] * 1000
    with pytest.raises(TimerError, match="has not ended in 600 seconds"):
        timer.disarm()


def test_failure_of_systemd_raises_and_leaves_no_files(timer: Timer, systemd: Systemd, tmp_path: Path) -> None:
    systemd.error = "Failed to start transient timer unit: Access denied"
    with pytest.raises(TimerError, match="Access denied"):
        timer.arm([former(tmp_path / "a", b"x")], [], 240)
    assert not os.path.exists(timer.folder)


def test_two_timers_share_the_archive(timer: Timer, systemd: Systemd, tmp_path: Path) -> None:
    other = Timer("kubelet", timer.paths, timer.programs, systemd.run)
    for each in (timer, other):
        each.arm([former(tmp_path / each.name, b"x")], [], 240)
    timer.disarm()
    assert sorted(os.listdir(timer.folder)) == ["kubelet.json", "restore.pyz"]


def test_damaged_record_is_reported(timer: Timer) -> None:
    os.makedirs(timer.folder)
    Path(timer.record_file).write_text("{")
    record = timer.read_record()
    assert record is not None
    assert record["problems"] == ["its record is damaged"]


def test_archive_is_equal_for_equal_sources() -> None:
    assert build_archive() == build_archive()


def test_list_snapshots_returns_former_files(tmp_path: Path) -> None:
    state = StatePaths(str(tmp_path / "state"))
    path = tmp_path / "config.toml"
    path.write_bytes(b"old")
    path.chmod(0o640)
    snapshot.apply(snapshot.Snapshot(str(path), state).take(), state)
    path.write_bytes(b"new")
    assert sources.list_snapshots([str(path), str(tmp_path / "none")], state) == [former(path, b"old")]


def test_read_change_record_returns_former_files(tmp_path: Path) -> None:
    record = tmp_path / "change.json"
    assert sources.read_change_record(str(record)) == []
    file = {"path": "/etc/a.yaml", "content": "b2xk", "mode": "0600", "uid": 0, "gid": 0, "checksum": "x"}
    record.write_text(json.dumps({"files": [file], "absent": ["/etc/b.yaml"], "hash": ""}))
    assert sources.read_change_record(str(record)) == [
        {"path": "/etc/a.yaml", "content": "b2xk", "mode": 0o600, "uid": 0, "gid": 0},
        {"path": "/etc/b.yaml", "content": None, "mode": None, "uid": None, "gid": None},
    ]
    record.write_text("{}")
    with pytest.raises(ConfigError, match="is damaged"):
        sources.read_change_record(str(record))


def test_read_kubelet_record_returns_former_files(tmp_path: Path) -> None:
    state = StatePaths(str(tmp_path / "state"))
    path = str(tmp_path / "config.yaml")
    assert sources.read_kubelet_record(path, state) == []
    file = Path(state.record(path, "kubelet"))
    file.parent.mkdir(parents=True)
    content = {
        "file": {"original": "b2xk", "written": ["x"]},
        "values": {},
        "tried": [],
        "former": {"content": "b2xk", "record": None},
    }
    file.write_text(json.dumps({"format": 1, "path": path, "record": content}))
    (found,) = sources.read_kubelet_record(path, state)
    assert (found["path"], found["content"], found["mode"]) == (path, "b2xk", None)
