# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a function in a child process, so that a driver that hangs or crashes takes nobody with it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
import traceback
from typing import Any, Callable

# A process that the kernel holds in a driver call cannot be killed; it is left behind after this many seconds.
REAP_SECONDS = 1.0
MAX_OPEN_FILES = 4096
# An exception may quote what it could not read.
MAX_WORDS = 500


class Hung(Exception):
    """The child gave no answer in time."""


class Crashed(Exception):
    """The child ended without an answer; the message says how."""


class Failed(Exception):
    """The function raised an exception: an error of ours, not of the driver; the message tells it and its place."""


def call(function: Callable[[], Any], timeout: float) -> Any:
    """The function's result, which must be of JSON types, as a child process computed it within ``timeout`` seconds.

    Raises Hung, Crashed or Failed. The child has ended then, unless it cannot be killed: nobody waits for such a one.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _serve(function, writer)
    os.close(writer)
    answer = None
    try:
        answer = _read(reader, time.monotonic() + timeout)
    finally:
        os.close(reader)
        status = _reap(child) if answer is not None else None
        if status is None:
            _kill(child)
    if answer is None:
        raise Hung
    try:
        outcome = json.loads(answer.decode("utf-8"))
    except ValueError:  # nothing, or cut off where the child died
        raise Crashed(_how_it_ended(status)) from None
    if "error" in outcome:
        raise Failed(outcome["error"])
    return outcome["result"]


def _serve(function: Callable[[], Any], writer: int) -> None:
    """The child: keeps nothing open that somebody may wait on, answers, and ends without any clean-up of the parent's."""
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.closerange(3, writer)
        os.closerange(writer + 1, MAX_OPEN_FILES)
        _send(writer, _outcome(function))
        os._exit(0)
    except BaseException:  # pylint: disable=broad-except
        os._exit(1)


def _outcome(function: Callable[[], Any]) -> bytes:
    """What the parent is told, as JSON: ``{"result": ...}`` or ``{"error": "what was raised and where"}``."""
    try:
        return json.dumps({"result": function()}).encode("utf-8")
    except BaseException as error:  # pylint: disable=broad-except
        return json.dumps({"error": _tell(error)}).encode("utf-8")


def _tell(error: BaseException) -> str:
    """The exception in one line: ``ValueError: no number in pci.py, line 7``."""
    words = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_WORDS].rstrip(": .")
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{words} in {os.path.basename(place.filename)}, line {place.lineno}"


def _send(writer: int, answer: bytes) -> None:
    while answer:
        answer = answer[os.write(writer, answer) :]


def _read(reader: int, deadline: float) -> bytes | None:
    """Everything up to the end of the stream, or ``None`` at the deadline."""
    answer = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return None
        part = os.read(reader, 65536)
        if not part:
            return answer
        answer += part


def _kill(child: int) -> None:
    """Kills the child and what it started."""
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:  # it has not made its group yet
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
    _reap(child)


def _reap(child: int) -> int | None:
    """The child's wait status, 0 when somebody else took it, or ``None`` when it does not end; init inherits such a child."""
    deadline = time.monotonic() + REAP_SECONDS
    pause = 0.0005
    while True:
        try:
            pid, status = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            return 0
        if pid == child:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _how_it_ended(status: int | None) -> str:
    if status is not None and os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return "ended without an answer"
