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

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import isolation


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
        isolation.call(function, 10)


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
        isolation.call(function, 10)
    assert re.fullmatch(told, str(caught.value))


def test_an_answer_that_is_cut_off_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def die_in_the_middle(writer: int, answer: bytes) -> NoReturn:
        os.write(writer, answer[:-3])
        os.abort()

    monkeypatch.setattr(isolation, "_send", die_in_the_middle)
    with pytest.raises(isolation.Crashed, match="was ended by SIGABRT"):
        isolation.call(lambda: [1, 2, 3], 10)


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


@pytest.mark.parametrize("function", [_die, _raise, _leave, object, lambda: time.sleep(60)])
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
        isolation.call(lambda: time.sleep(60), 10)
    assert no_child_is_left()


def test_a_child_that_answers_and_stays_is_ended(
    monkeypatch: pytest.MonkeyPatch, no_child_is_left: Callable[[], bool]
) -> None:
    def answer_and_stay(writer: int, answer: bytes) -> None:
        os.write(writer, answer)
        os.close(writer)
        time.sleep(60)

    monkeypatch.setattr(isolation, "REAP_SECONDS", 0.2)
    monkeypatch.setattr(isolation, "_send", answer_and_stay)
    assert isolation.call(lambda: 1, 10) == 1
    assert no_child_is_left()


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
        # The pipe of the parent is not open in the child.
        with pytest.raises(isolation.Failed, match="Bad file descriptor"):
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


def test_no_child_is_left_behind(no_child_is_left: Callable[[], bool]) -> None:
    isolation.call(lambda: 1, 10)
    assert no_child_is_left()
