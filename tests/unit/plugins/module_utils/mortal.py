# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that die in the middle of what they do, as under SIGKILL: nothing is cleaned up."""

from __future__ import annotations

import os
import signal
import time
import typing as t


def run_and_die(action: t.Callable[[], t.Any], at: int) -> bool:
    """Run *action* in a child that is gone, without clean-up, before its system call number *at*; False if it ended."""
    child = os.fork()
    if child == 0:
        calls = 0

        def mortal(real: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
            def call(*args: t.Any, **kwargs: t.Any) -> t.Any:
                nonlocal calls
                calls += 1
                if calls == at:
                    os._exit(9)
                return real(*args, **kwargs)

            return call

        for name in ("open", "write", "fsync", "replace", "fchmod", "fchown", "mkdir", "unlink", "rmdir", "close"):
            setattr(os, name, mortal(getattr(os, name)))
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.WEXITSTATUS(os.waitpid(child, 0)[1])
    assert status in {0, 9}
    return status == 9


def run_and_kill(action: t.Callable[[], t.Any], after: float) -> bool:
    """Run *action* in a child that is killed *after* so many seconds; whether that came before its end."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            os._exit(1)
        os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)
