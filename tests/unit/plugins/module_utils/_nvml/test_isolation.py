# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process: answers, silence, death, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, NoReturn

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import isolation

if TYPE_CHECKING:
    from pathlib import Path


def wait_until_gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether the process ends in time; a zombie whose parent is another one counts as ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("answer", [{"a": [1, None, "x"]}, [], None, "x" * 300_000])
def test_answer(answer: Any) -> None:
    assert isolation.call(lambda: answer, 10) == answer


def test_silence_ends_at_the_timeout() -> None:
    start = time.monotonic()
    with pytest.raises(isolation.Hung):
        isolation.call(lambda: time.sleep(60), 0.2)
    assert 0.2 <= time.monotonic() - start < 5


def _die() -> NoReturn:
    os.abort()


def _raise() -> NoReturn:
    raise RuntimeError("unexpected")


def _leave() -> NoReturn:
    os._exit(3)


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (_die, "was ended by SIGABRT"),
        (_raise, "ended without an answer"),
        (_leave, "ended without an answer"),
        (object, "ended without an answer"),
    ],
)
def test_death(function: Callable[[], Any], how: str) -> None:
    with pytest.raises(isolation.Crashed, match=how):
        isolation.call(function, 10)


def test_what_the_child_started_ends_with_it(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def start_and_wait() -> None:
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        note.write_text(str(process.pid), encoding="ascii")
        process.wait()

    with pytest.raises(isolation.Hung):
        isolation.call(start_and_wait, 1)
    assert wait_until_gone(int(note.read_text(encoding="ascii")))


def test_child_holds_nothing_that_others_wait_on(capfd: pytest.CaptureFixture[str]) -> None:
    def speak() -> Any:
        os.write(1, b"noise")
        os.write(2, b"noise")
        return sorted(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in (0, 1, 2))

    reader, writer = os.pipe()
    try:
        assert isolation.call(speak, 10) == ["/dev/null"] * 3
        assert capfd.readouterr() == ("", "")
        with pytest.raises(isolation.Crashed):  # the pipe of the parent is not open in the child
            isolation.call(lambda: os.fstat(writer).st_mode, 10)
    finally:
        os.close(reader)
        os.close(writer)


def test_child_that_cannot_be_killed_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "REAP_SECONDS", 0.1)
    monkeypatch.setattr(os, "waitpid", lambda *_arguments: (0, 0))
    start = time.monotonic()
    with pytest.raises(isolation.Hung):
        isolation.call(lambda: time.sleep(60), 0.1)
    assert time.monotonic() - start < 5
    monkeypatch.undo()
    os.waitpid(-1, 0)


def test_no_child_is_left_behind() -> None:
    isolation.call(lambda: 1, 10)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
