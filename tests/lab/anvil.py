# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python for the modules of many runs: a process that has imported what modules import forks one for each, which takes a part of the time.

What Ansible starts as Python is a small program that hands its arguments, environment and files over, and ends as the module does.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import NoReturn

# The ground under every module, and what takes the longest below those that ask an API server.
IMPORTS = ("ansible.module_utils.basic", "kubernetes.client", "kubernetes.dynamic", "yaml")
# Without site and environment it is there at once.
PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
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


def serve(place: str) -> None:
    """Answer requests until the one who started this ends, or says so by closing what this reads."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    print("ready", flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.disable()  # as the forge does
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        client, _address = listener.accept()
        if os.fork() == 0:
            listener.close()
            answer(client)
        client.close()


def answer(client: socket.socket) -> NoReturn:
    """Have a module run in a process of its own, and tell its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _dot, handles, *_rest = socket.recv_fds(client, 1, 3)
    request = json.loads(b"".join(iter(lambda: client.recv(65536), b"")))
    child = os.fork()
    if child == 0:
        client.close()
        play(handles, *request)
    for handle in handles:
        os.close(handle)
    _child, status = os.waitpid(child, 0)
    client.sendall(str(os.waitstatus_to_exitcode(status) & 255).encode())
    os._exit(0)


def play(handles: list[int], arguments: list[str], environment: dict[str, str], folder: str, umask: int) -> NoReturn:
    """Be Python with these arguments from here on; does not return."""
    for number, handle in enumerate(handles):
        os.dup2(handle, number)
        os.close(handle)
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
    serve(sys.argv[1])
