# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python for the modules of many runs: a process that has imported what modules import forks one for each, which takes a part of the time.

What Ansible starts as Python is a small program that hands its arguments, environment and files over, and ends as the module does. What is no
module gets the Python itself.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import zipimport
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import NoReturn

# The ground under every module, and what takes the longest below those that ask an API server.
IMPORTS = ("ansible.module_utils.basic", "kubernetes.client", "kubernetes.dynamic", "yaml")
# Without site and environment it is there at once.
PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
if sys.argv[1:] and "/AnsiballZ_" not in sys.argv[1]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({place!r})
umask = os.umask(0o22)
socket.send_fds(server, [b"."], [0, 1, 2])
server.sendall(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd(), umask]).encode())
server.shutdown(socket.SHUT_WR)
os._exit(int(server.recv(16) or 1))
"""


class Anvil:
    """The process, seen from a test."""

    def __init__(self, folder: Path) -> None:
        """Start it, and write the *program* that is Python in *folder*."""
        program = folder / "python"
        self.program = str(program)
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(folder / "socket")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()
        program.write_text(PROGRAM.format(python=sys.executable, place=str(folder / "socket")), encoding="utf-8")
        program.chmod(0o755)

    def close(self) -> None:
        """End it."""
        self._process.communicate()


def remembered(folder: Path, text: bytes, compile_anew: Callable[[], CodeType]) -> CodeType:
    """The code of a text, compiled once for all processes that share a folder."""
    kept = folder / hashlib.sha256(text).hexdigest()
    try:
        return marshal.loads(kept.read_bytes())  # noqa: S302 - nobody else writes there
    except FileNotFoundError:
        code = compile_anew()
    fresh = kept.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(marshal.dumps(code))
    fresh.rename(kept)
    return code


def remember_sources(folder: Path) -> None:
    """Have Python compile once what modules bring along in their archives, not each time that a module runs."""
    compile_anew = zipimport._compile_source  # type: ignore[attr-defined]

    def compile_once(place: str, source: bytes) -> CodeType:
        return remembered(folder, source, lambda: compile_anew(place, source))

    zipimport._compile_source = compile_once  # type: ignore[attr-defined]


def serve(place: str) -> None:
    """Answer requests until the one who started this ends, or says so by closing what this reads."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    print("ready", flush=True)
    gc.disable()  # as the forge does
    events = select.poll()
    events.register(listener, select.POLLIN)
    events.register(sys.stdin)
    modules: dict[int, Module] = {}
    while True:
        for told, _event in events.poll():
            if told == sys.stdin.fileno():
                return
            if told == listener.fileno():
                client = listener.accept()[0]
                try:
                    fresh = Module(client)
                except (OSError, ValueError):  # it was killed before it had asked
                    client.close()
                    continue
                for handle, awaited in fresh.events.items():
                    events.register(handle, awaited)
                    modules[handle] = fresh
            elif module := modules.get(told):
                for handle in module.events:
                    events.unregister(handle)
                    del modules[handle]
                module.end()


class Module:
    """A module in a process of its own, and the program that waits for it."""

    def __init__(self, client: socket.socket) -> None:
        """Start what the program has asked for."""
        _dot, handles, *_rest = socket.recv_fds(client, 1, 3)
        request = json.loads(b"".join(iter(lambda: client.recv(65536), b"")))
        self.client, self.pid = client, os.fork()
        if self.pid == 0:
            play(handles, *request)
        for handle in handles:
            os.close(handle)
        self.process = os.pidfd_open(self.pid)
        #: File descriptors that tell, and of what: that the program was killed, or that the module has ended.
        self.events = {client.fileno(): select.POLLHUP, self.process: select.POLLIN}

    def end(self) -> None:
        """Tell the program how it has ended; if that was killed, so is the module, as Ansible's own would be."""
        signal.pidfd_send_signal(self.process, signal.SIGKILL)
        _pid, status = os.waitpid(self.pid, 0)
        with self.client, contextlib.suppress(OSError):
            self.client.sendall(str(os.waitstatus_to_exitcode(status) & 255).encode())
        os.close(self.process)


def play(handles: list[int], arguments: list[str], environment: dict[str, str], folder: str, umask: int) -> NoReturn:
    """Be Python with these arguments from here on; does not return."""
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(umask)
    status = 1
    try:
        if arguments:
            sys.argv = arguments
            runpy.run_path(arguments[0], run_name="__main__")
        else:
            sys.argv = [""]
            exec(compile(sys.stdin.read(), "<stdin>", "exec"), {"__name__": "__main__"})  # noqa: S102 - what Ansible sends
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    for name in IMPORTS:
        with contextlib.suppress(ImportError):
            __import__(name)
    with tempfile.TemporaryDirectory(prefix="gpu-kubernetes-") as sources:
        remember_sources(Path(sources))
        serve(sys.argv[1])
