# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs that are interrupted at any system call, as by SIGKILL."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
import typing as t
from pathlib import Path

CALLS = (
    *("open", "write", "fsync", "close", "fchmod", "fchown", "chmod", "chown"),
    *("mkdir", "rmdir", "unlink", "replace", "rename", "link", "symlink"),
)
#: Mode and content by path: bytes of a file, target of a link, None of a folder.
Tree = t.Dict[str, t.Tuple[int, t.Union[bytes, str, None]]]


def interrupt_at_each_call(action: t.Callable[[], t.Any], folder: Path) -> t.Iterator[int]:
    """Run *action* once; then bring *folder* into its state before each system call of *action*.

    Yields the number of the first call with this state. Equal states are yielded once; the last one is the final state.
    """
    for number, tree in _states(action, folder):
        _write(folder, tree)
        yield number


def _states(action: t.Callable[[], t.Any], folder: Path) -> list[tuple[int, Tree]]:
    found: list[tuple[int, Tree]] = []
    real = {name: getattr(os, name) for name in CALLS}
    calls = 0

    def record_state() -> None:
        nonlocal calls
        calls += 1
        tree = _read(folder)
        if all(tree != known for _number, known in found):
            found.append((calls, tree))

    def wrap(call: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        def wrapper(*args: t.Any, **kwargs: t.Any) -> t.Any:
            record_state()
            return call(*args, **kwargs)

        return wrapper

    for name, call in real.items():
        setattr(os, name, wrap(call))
    try:
        action()
    finally:
        for name, call in real.items():
            setattr(os, name, call)
    record_state()
    return found


def _read(folder: Path) -> Tree:
    found: Tree = {}
    for place in sorted(folder.rglob("*")):
        mode = place.lstat().st_mode
        content: bytes | str | None = None
        if stat.S_ISREG(mode):
            content = place.read_bytes()
        elif stat.S_ISLNK(mode):
            content = os.readlink(place)
        found[str(place.relative_to(folder))] = (mode, content)
    return found


def _write(folder: Path, tree: Tree) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    for name, (mode, content) in tree.items():
        place = folder / name
        if stat.S_ISLNK(mode):
            os.symlink(str(content), place)
            continue
        if stat.S_ISDIR(mode):
            place.mkdir()
        else:
            assert isinstance(content, bytes), f"{place} is neither a file nor a folder nor a link"
            place.write_bytes(content)
        place.chmod(stat.S_IMODE(mode))


def run_and_kill(action: t.Callable[[], t.Any], after: float) -> bool:
    """Run *action* in a child, and kill it *after* this number of seconds; return whether it was still running."""
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
