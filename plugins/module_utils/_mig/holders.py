# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that hold a GPU, for messages and results. Their names are untrusted input: of printable characters, and of bounded length and number."""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, Sequence

from .._driver import users
from .._nvml.partitions import Gpu, Process

# The kernel's limit for the name of a process.
LENGTH = 15
MOST = 32
NAMED = 5
_UNPRINTABLE = re.compile(r"[^ -~]")


def read_holders(root: str, gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """The processes that have one of the GPUs open, by /proc, and those that NVML reports, with the indices of their GPUs."""
    devices = {f"/dev/nvidia{gpu.minor}": gpu.index for gpu in gpus if gpu.minor is not None}
    found: dict[int, dict[str, Any]] = {}
    for user in users.read_device_users(root, devices):
        found[user["pid"]] = {
            "pid": user["pid"],
            "program": clean(user["command"]),
            "gpus": sorted(devices[name] for name in user["devices"]),
            "container_id": user["container_id"],
            "pod_uid": user["pod_uid"],
        }
    for gpu in gpus:
        for process in gpu.processes:
            holder = found.setdefault(process.pid, _describe(process))
            holder["gpus"] = sorted({*holder["gpus"], gpu.index})
    return [found[pid] for pid in sorted(found)][:MOST]


def _describe(process: Process) -> dict[str, Any]:
    return {"pid": process.pid, "program": clean(process.name), "gpus": [], "container_id": None, "pod_uid": None}


def clean(name: str | None) -> str | None:
    """The name of a program without control characters, of at most LENGTH characters."""
    return _UNPRINTABLE.sub("?", name)[:LENGTH].strip() or None if name else None


def format_holders(holders: Iterable[Mapping[str, Any]]) -> str:
    """The holders for a sentence: ``python3 (pid 4711) and 3 more``; empty without one."""
    names = [f"{holder['program'] or 'a process'} (pid {holder['pid']})" for holder in holders]
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return " and ".join([", ".join(names[:NAMED]), *more])
