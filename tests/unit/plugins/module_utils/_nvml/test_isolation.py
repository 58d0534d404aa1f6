# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The child process: answers, silence, death, and nothing left behind."""

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
    """Let a killed child end as late as a busy machine has it end."""
    monkeypatch.setattr(isolation, "REAP_SECONDS", wait.LIMIT)


def is_gone(pid: int) -> bool:
    """Whether the process has ended; a zombie whose parent is another process counts as ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("answer", [{"a": [1, None, "x"]}, [], None, "x" * 300_000])
def test_answer(answer: Any) -> None:
    assert isolation.call(lambda: answer, wait.LIMIT) == answer


def test_silence_ends_at_the_timeout() -> None:
    start = time.monotonic()
    with pytest.raises(isolation.Hung):
        isolation.call(lambda: time.sleep(wait.LIMIT), 0.2)
    assert time.monotonic() - start >= 0.2


def _die() -> NoReturn:
    os.abort()


def _raise() -> NoReturn:
    raise RuntimeError("unexpected\n  answer.")


def _raise_silently() -> NoReturn:
    raise KeyError


def _raise_at_length() -> NoReturn:
    raise ValueError("x" * 9000)


def _leave() -> NoReturn:
    os._exit(3)


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (_die, "was ended by SIGABRT"),
        (_leave, "ended without an answer"),
    ],
)
def test_death(function: Callable[[], Any], how: str) -> None:
    with pytest.raises(isolation.Crashed, match=how):
        isolation.call(function, wait.LIMIT)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (_raise, r"RuntimeError: unexpected answer in test_isolation\.py, line \d+"),
        (_raise_silently, r"KeyError in test_isolation\.py, line \d+"),
        (_raise_at_length, r"ValueError: x{400,500} in test_isolation\.py, line \d+"),
        (object, r"TypeError: Object of type object is not JSON serializable in encoder\.py, line \d+"),
    ],
)
def test_an_error_of_ours_is_told_in_one_line(function: Callable[[], Any], told: str) -> None:
    with pytest.raises(isolation.Failed) as caught:
        isolation.call(function, wait.LIMIT)
    assert re.fullmatch(told, str(caught.value))


def test_an_answer_that_is_cut_off_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def die_in_the_middle(writer: int, answer: bytes) -> NoReturn:
        os.write(writer, answer[:-3])
        os.abort()

    monkeypatch.setattr(isolation, "_send", die_in_the_middle)
    with pytest.raises(isolation.Crashed, match="was ended by SIGABRT"):
        isolation.call(lambda: [1, 2, 3], wait.LIMIT)


def children() -> set[int]:
    """Processes that this one started, those that ended and were not waited for among them."""
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
def no_child_is_left() -> Callable[[], bool]:
    """Whether there is no child that was not there before; other tests of this process may have some that stay."""
    before = children()
    return lambda: children() <= before


@pytest.mark.parametrize("function", [_die, _raise, _leave, object, lambda: time.sleep(wait.LIMIT)])
def test_no_child_is_left_behind_by_a_failure(
    function: Callable[[], Any], no_child_is_left: Callable[[], bool]
) -> None:
    with pytest.raises((isolation.Hung, isolation.Crashed, isolation.Failed)):
        isolation.call(function, 0.5)
    assert no_child_is_left()


def test_no_child_is_left_behind_by_an_interrupted_parent(
    monkeypatch: pytest.MonkeyPatch, no_child_is_left: Callable[[], bool]
) -> None:
    def interrupt(*_arguments: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(isolation, "_read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        isolation.call(lambda: time.sleep(wait.LIMIT), wait.LIMIT)
    assert no_child_is_left()


def test_a_child_that_answers_and_stays_is_ended(
    monkeypatch: pytest.MonkeyPatch, no_child_is_left: Callable[[], bool]
) -> None:
    def answer_and_stay(writer: int, answer: bytes) -> None:
        os.write(writer, answer)
        os.close(writer)
        time.sleep(wait.LIMIT)

    monkeypatch.setattr(isolation, "REAP_SECONDS", 0.2)
    monkeypatch.setattr(isolation, "_send", answer_and_stay)
    assert isolation.call(lambda: 1, wait.LIMIT) == 1
    assert no_child_is_left()


def test_what_the_child_started_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "pid"

    def start_and_wait() -> None:
        process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({wait.LIMIT})"])
        (tmp_path / "new").write_text(str(process.pid), encoding="ascii")
        (tmp_path / "new").rename(note)
        process.wait()

    def no_answer(_reader: int, _deadline: float) -> None:
        wait.until(note.exists, pause=0.02)

    monkeypatch.setattr(isolation, "_read", no_answer)
    with pytest.raises(isolation.Hung):
        isolation.call(start_and_wait, 1)
    wait.until(lambda: is_gone(int(note.read_text(encoding="ascii"))), pause=0.02)


def test_child_holds_nothing_that_others_wait_on(capfd: pytest.CaptureFixture[str]) -> None:
    def speak() -> Any:
        os.write(1, b"noise")
        os.write(2, b"noise")
        return sorted(os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in (0, 1, 2))

    reader, writer = os.pipe()
    try:
        assert isolation.call(speak, wait.LIMIT) == ["/dev/null"] * 3
        assert capfd.readouterr() == ("", "")
        # The pipe of the parent is not open in the child.
        with pytest.raises(isolation.Failed, match="Bad file descriptor"):
            isolation.call(lambda: os.fstat(writer).st_mode, wait.LIMIT)
    finally:
        os.close(reader)
        os.close(writer)


def test_child_that_cannot_be_killed_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "REAP_SECONDS", 0.1)
    monkeypatch.setattr(os, "waitpid", lambda *_arguments: (0, 0))
    with pytest.raises(isolation.Hung):
        isolation.call(lambda: time.sleep(wait.LIMIT), 0.1)
    monkeypatch.undo()
    os.waitpid(-1, 0)


def test_no_child_is_left_behind(no_child_is_left: Callable[[], bool]) -> None:
    isolation.call(lambda: 1, wait.LIMIT)
    assert no_child_is_left()
