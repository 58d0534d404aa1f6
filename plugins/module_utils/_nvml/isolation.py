# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a function in a child process, so that a driver that hangs or crashes does not affect the caller."""

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
MAX_MESSAGE = 500


class Hung(Exception):
    """The child gave no answer in time."""


class Crashed(Exception):
    """The child ended without an answer; the message says how."""


class Failed(Exception):
    """The function raised an exception, which is an error of this collection; the message has it with its place."""


def call(function: Callable[[], Any], timeout: float) -> Any:
    """The function's result, which must be of JSON types, as a child process computed it within ``timeout`` seconds.

    Raises Hung, Crashed or Failed. The child has ended then, unless it cannot be killed.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _run_child(function, writer)
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
    except ValueError:  # empty or incomplete, because the child died
        raise Crashed(_explain_exit(status)) from None
    if "error" in outcome:
        raise Failed(outcome["error"])
    return outcome["result"]


def _run_child(function: Callable[[], Any], writer: int) -> None:
    """The child: closes inherited files, sends the result, and ends without any clean-up of the parent's."""
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.closerange(3, writer)
        os.closerange(writer + 1, MAX_OPEN_FILES)
        _send(writer, _compute_result(function))
        os._exit(0)
    except BaseException:  # pylint: disable=broad-except
        os._exit(1)


def _compute_result(function: Callable[[], Any]) -> bytes:
    """The result for the parent as JSON: ``{"result": ...}`` or ``{"error": "exception and place"}``."""
    try:
        return json.dumps({"result": function()}).encode("utf-8")
    except BaseException as error:  # pylint: disable=broad-except
        return json.dumps({"error": _format_error(error)}).encode("utf-8")


def _format_error(error: BaseException) -> str:
    """The exception in one line: ``ValueError: no number in pci.py, line 7``."""
    message = " ".join(f"{type(error).__name__}: {error}".split())[:MAX_MESSAGE].rstrip(": .")
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{message} in {os.path.basename(place.filename)}, line {place.lineno}"


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
    """The child's wait status, 0 if it was reaped elsewhere, or ``None`` if it does not end; init inherits such a child."""
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


def _explain_exit(status: int | None) -> str:
    if status is not None and os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return "ended without an answer"
