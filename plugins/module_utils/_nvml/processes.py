# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who uses a GPU, as NVML tells it.

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


def processes(device: Device) -> dict[str, Any]:
    """Who uses the GPU."""
    found: list[dict[str, Any]] | None = None
    for kind, name in (("compute", "Compute"), ("graphics", "Graphics"), ("mps", "MPSCompute")):
        told = _processes(device, f"nvmlDeviceGet{name}RunningProcesses")
        if told is not None:
            found = [*(found or []), *({**each, "type": kind} for each in told)]
    return {"processes": found}


def _processes(device: Device, name: str) -> list[dict[str, Any]] | None:
    """What a function that lists processes tells; it is asked with room for more than it said there are."""
    # The rows of _v3 are other ones in drivers 535.43 to 535.86, which have _v2 as well.
    for names, structure in (((f"{name}_v2", f"{name}_v3"), Process), ((name,), ProcessV1)):
        room = ctypes.c_uint(0)

        def query(nvml: Nvml, handle: Any, names: Any = names, room: Any = room) -> Answer[bool]:
            code = nvml.call(names, handle, ctypes.byref(room), None)
            return code, code in (SUCCESS, INSUFFICIENT_SIZE) or None

        if not device.ask(query):
            continue
        count = ctypes.c_uint(room.value + 8 if room.value else 0)
        rows = (structure * max(count.value, 1))()
        if count.value and not device.filled(names, (), count, rows):
            continue
        return [_process(row) for row in rows[: count.value]]
    return None


def _process(row: Any) -> dict[str, Any]:
    return {
        "pid": row.pid,
        "name": _command(row.pid),
        "used_memory_bytes": _unless_all_ones(row.used, 64),
        "gpu_instance_id": _unless_all_ones(getattr(row, "gpu_instance", None), 32),
        "compute_instance_id": _unless_all_ones(getattr(row, "compute_instance", None), 32),
    }


def _unless_all_ones(number: int | None, bits: int) -> int | None:
    """NVML writes what it does not know as the highest number."""
    return None if number == 2**bits - 1 else number


def _command(pid: int) -> str | None:
    """Name of a process; it may be of another container, or gone."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None
