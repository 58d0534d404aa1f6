# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process: results, timeouts, crashes, and clean-up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, NoReturn

import pytest
from lab import wait

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import isolation


@pytest.fixture(autouse=True)
def _every_child_is_reaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delay the end of a killed child, as a busy machine does."""
    monkeypatch.setattr(isolation, "REAP_SECONDS", wait.LIMIT)


def is_gone(pid: int) -> bool:
    """Whether the process has ended; a zombie whose parent is another process counts as ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("answer", [{"a": [1, None, "x"]}, [], None, "x" * 300_000])
def test_call_returns_result(answer: Any) -> None:
    assert isolation.call(lambda: answer, wait.LIMIT) == answer


def test_call_without_answer_raises_hung() -> None:
    start = time.monotonic()
    with pytest.raises(isolation.Hung):
        isolation.call(lambda: time.sleep(wait.LIMIT), 0.2)
    assert time.monotonic() - start >= 0.2


def _abort() -> NoReturn:
    os.abort()


def _raise() -> NoReturn:
    raise RuntimeError("unexpected\n  answer.")


def _raise_silently() -> NoReturn:
    raise KeyError


def _raise_at_length() -> NoReturn:
    raise ValueError("x" * 9000)


def _exit() -> NoReturn:
    os._exit(3)


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (_abort, "was ended by SIGABRT"),
        (_exit, "ended without an answer"),
    ],
)
def test_call_of_crashing_child_raises_crashed(function: Callable[[], Any], how: str) -> None:
    with pytest.raises(isolation.Crashed, match=how):
        isolation.call(function, wait.LIMIT)


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (_raise, r"RuntimeError: unexpected answer in test_isolation\.py, line \d+"),
        (_raise_silently, r"KeyError in test_isolation\.py, line \d+"),
        (_raise_at_length, r"ValueError: x{400,500} in test_isolation\.py, line \d+"),
        (object, r"TypeError: Object of type object is not JSON serializable in encoder\.py, line \d+"),
    ],
)
def test_call_with_exception_raises_failed_in_one_line(function: Callable[[], Any], result: str) -> None:
    with pytest.raises(isolation.Failed) as caught:
        isolation.call(function, wait.LIMIT)
    assert re.fullmatch(result, str(caught.value))


def test_call_with_incomplete_answer_raises_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    def abort_in_the_middle(writer: int, answer: bytes) -> NoReturn:
        os.write(writer, answer[:-3])
        os.abort()

    monkeypatch.setattr(isolation, "_send", abort_in_the_middle)
    with pytest.raises(isolation.Crashed, match="was ended by SIGABRT"):
        isolation.call(lambda: [1, 2, 3], wait.LIMIT)


def children() -> set[int]:
    """The child processes of this one, including zombies."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text(encoding="utf-8").splitlines() if ":" in line)
        except OSError:  # it ended meanwhile
            continue
        if int(fields["PPid"]) == os.getpid():
            found.add(int(status.parent.name))
    return found


@pytest.fixture
def has_no_new_child() -> Callable[[], bool]:
    """Whether there is no new child; other tests may have left some."""
    before = children()
    return lambda: children() <= before


@pytest.mark.parametrize("function", [_abort, _raise, _exit, object, lambda: time.sleep(wait.LIMIT)])
def test_call_with_failure_leaves_no_child(function: Callable[[], Any], has_no_new_child: Callable[[], bool]) -> None:
    with pytest.raises((isolation.Hung, isolation.Crashed, isolation.Failed)):
        isolation.call(function, 0.5)
    assert has_no_new_child()


def test_call_with_interrupt_leaves_no_child(
    monkeypatch: pytest.MonkeyPatch, has_no_new_child: Callable[[], bool]
) -> None:
    def interrupt(*_arguments: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(isolation, "_read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        isolation.call(lambda: time.sleep(wait.LIMIT), wait.LIMIT)
    assert has_no_new_child()


def test_call_of_child_that_does_not_exit_kills_it(
    monkeypatch: pytest.MonkeyPatch, has_no_new_child: Callable[[], bool]
) -> None:
    def answer_and_stay(writer: int, answer: bytes) -> None:
        os.write(writer, answer)
        os.close(writer)
        time.sleep(wait.LIMIT)

    monkeypatch.setattr(isolation, "REAP_SECONDS", 2)  # also for the killed child, on a busy machine
    monkeypatch.setattr(isolation, "_send", answer_and_stay)
    assert isolation.call(lambda: 1, wait.LIMIT) == 1
    assert has_no_new_child()


def test_call_kills_processes_of_the_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"

    def start_and_wait() -> None:
        process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({wait.LIMIT})"])
        (tmp_path / "new").write_text(str(process.pid), encoding="ascii")
        (tmp_path / "new").rename(pid_file)
        process.wait()

    def no_answer(_reader: int, _deadline: float) -> None:
        wait.until(pid_file.exists, pause=0.02)

    monkeypatch.setattr(isolation, "_read", no_answer)
    with pytest.raises(isolation.Hung):
        isolation.call(start_and_wait, 1)
    wait.until(lambda: is_gone(int(pid_file.read_text(encoding="ascii"))), pause=0.02)


def test_child_closes_inherited_files(capfd: pytest.CaptureFixture[str]) -> None:
    def write_and_list_files() -> Any:
        os.write(1, b"noise")
        os.write(2, b"noise")
        return sorted(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in (0, 1, 2))

    reader, writer = os.pipe()
    try:
        assert isolation.call(write_and_list_files, wait.LIMIT) == ["/dev/null"] * 3
        assert capfd.readouterr() == ("", "")
        # The pipe of the parent is not open in the child.
        with pytest.raises(isolation.Failed, match="Bad file descriptor"):
            isolation.call(lambda: os.fstat(writer).st_mode, wait.LIMIT)
    finally:
        os.close(reader)
        os.close(writer)


def test_call_of_child_that_cannot_be_killed_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "REAP_SECONDS", 0.1)
    monkeypatch.setattr(os, "waitpid", lambda *_arguments: (0, 0))
    with pytest.raises(isolation.Hung):
        isolation.call(lambda: time.sleep(wait.LIMIT), 0.1)
    monkeypatch.undo()
    os.waitpid(-1, 0)


def test_call_leaves_no_child(has_no_new_child: Callable[[], bool]) -> None:
    isolation.call(lambda: 1, wait.LIMIT)
    assert has_no_new_child()
