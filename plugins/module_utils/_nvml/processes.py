# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that use a GPU, by NVML.

Source of names and layouts: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .device import Answer, Device
from .library import INSUFFICIENT_SIZE, SUCCESS, Nvml


class Process(ctypes.Structure):
    """nvmlProcessInfo_v2_t, which revision 3 is too; memory in bytes."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class ProcessV1(ctypes.Structure):
    """nvmlProcessInfo_v1_t."""

    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong)]


def read_processes(device: Device) -> dict[str, Any]:
    """The processes that use the GPU."""
    found: list[dict[str, Any]] | None = None
    for kind, name in (("compute", "Compute"), ("graphics", "Graphics"), ("mps", "MPSCompute")):
        values = _query_processes(device, f"nvmlDeviceGet{name}RunningProcesses")
        if values is not None:
            found = [*(found or []), *({**each, "type": kind} for each in values)]
    return {"processes": found}


def _query_processes(device: Device, name: str) -> list[dict[str, Any]] | None:
    """The processes that a function lists, with a buffer for more than it has reported."""
    # The rows of _v3 differ in drivers 535.43 to 535.86, which also have _v2.
    for names, structure in (((f"{name}_v2", f"{name}_v3"), Process), ((name,), ProcessV1)):
        room = ctypes.c_uint(0)

        def query(nvml: Nvml, handle: Any, names: Any = names, room: Any = room) -> Answer[bool]:
            code = nvml.call(names, handle, ctypes.byref(room), None)
            return code, code in (SUCCESS, INSUFFICIENT_SIZE) or None

        if not device.query(query):
            continue
        count = ctypes.c_uint(room.value + 8 if room.value else 0)
        rows = (structure * max(count.value, 1))()
        if count.value and not device.fill(names, (), count, rows):
            continue
        return [_build_process(row) for row in rows[: count.value]]
    return None


def _build_process(row: Any) -> dict[str, Any]:
    return {
        "pid": row.pid,
        "name": _read_command(row.pid),
        "used_memory_bytes": _drop_unknown(row.used, 64),
        "gpu_instance_id": _drop_unknown(getattr(row, "gpu_instance", None), 32),
        "compute_instance_id": _drop_unknown(getattr(row, "compute_instance", None), 32),
    }


def _drop_unknown(number: int | None, bits: int) -> int | None:
    """The number, or ``None`` for the highest one, which NVML writes for an unknown value."""
    return None if number == 2**bits - 1 else number


def _read_command(pid: int) -> str | None:
    """Name of a process; ``None`` if it is in another container, or has ended."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None
