# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who runs: USER@HOST/PID.START.BOOT.NAMESPACE. A second run on the same controller finds by it whether the first one has ended."""

from __future__ import annotations

import getpass
import os
import socket
from typing import Callable

_GONE = ("Z", "X", "x")


def describe_holder(pid: int) -> str:
    """Return the name of the run whose process is *pid*, the same in the whole run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without an entry for its user
        user = f"uid{os.getuid()}"
    run = ".".join((str(pid), read_start(pid), _read("/proc/sys/kernel/random/boot_id")[:8], _read_namespace()))
    return f"{user}@{socket.gethostname()}/{run}"


def has_ended(holder: str, own: str, start_of: Callable[[int], str]) -> bool:
    """Return whether *holder* was a run of the same user on this machine, and its process exists no more.

    False if that cannot be known: for another user, host, boot or container. *start_of* is ``read_start``.
    """
    (who, _slash, run), (here, _slash, own_run) = holder.partition("/"), own.partition("/")
    parts, own_parts = run.split("."), own_run.split(".")
    if who != here or len(parts) != len(own_parts) or parts[2:] != own_parts[2:] or not all(own_parts):
        return False
    return parts[0].isdigit() and start_of(int(parts[0])) != parts[1]


def read_start(pid: int) -> str:
    """Return when the process was started, in the kernel's ticks; empty if there is no such process or no /proc."""
    # The name of the program, in parentheses, can contain spaces.
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return "" if len(fields) < 20 or fields[0] in _GONE else fields[19]


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _read_namespace() -> str:
    """Return the number of this process's PID namespace: containers of one machine can have the same name."""
    try:
        return "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
    except OSError:
        return ""
