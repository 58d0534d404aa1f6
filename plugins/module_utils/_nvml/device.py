# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One device of NVML, a GPU or a partition of one: its values, GPU instances and processes.

Source of names and layouts: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Optional, Tuple, TypeVar

from .library import GPU_IS_LOST, INSUFFICIENT_SIZE, SUCCESS, Nvml

Value = TypeVar("Value")
Answer = Tuple[int, Optional[Value]]

PROFILES = 32  # more than NVML has numbers for kinds of GPU instances; a GPU knows some of them
MIB = 1024 * 1024


class Device:
    """One handle; ``lost`` is set once NVML reports that the GPU is lost. An unknown value is ``None``."""

    def __init__(self, nvml: Nvml, handle: ctypes.c_void_p) -> None:
        self.nvml = nvml
        self.handle = handle
        self.lost = False

    def query(self, query: Callable[[Nvml, Any], Answer[Value]]) -> Value | None:
        """The value, or ``None`` if the GPU has none."""
        code, value = query(self.nvml, self.handle)
        self.lost = self.lost or code == GPU_IS_LOST
        return value

    def read_number(self, *names: str) -> int | None:
        """An unsigned number, of the first of *names* that the library has."""
        return self.query(lambda nvml, handle: nvml.read_number(names, handle))

    def read_text(self, name: str) -> str | None:
        """A text."""
        return self.query(lambda nvml, handle: nvml.read_text(name, handle))

    def fill(self, names: tuple[str, ...], arguments: tuple[Any, ...], *results: Any) -> bool:
        """Whether the first of *names* that the library has filled the *results*, which follow its *arguments*."""

        def query(nvml: Nvml, handle: Any) -> Answer[bool]:
            code = nvml.call(names, handle, *arguments, *(ctypes.byref(result) for result in results))
            return code, code == SUCCESS

        return bool(self.query(query))

    def read_numbers(
        self, name: str, *arguments: Any, count: int = 1, kind: Any = ctypes.c_uint
    ) -> tuple[int | None, ...]:
        """The *count* numbers of *kind* that a function fills after its *arguments*."""
        results = [kind() for _result in range(count)]
        known = self.fill((name,), arguments, *results)
        return tuple(int(result.value) if known else None for result in results)


# -- GPU instances, the partitions of MIG


#: In this order in NVML's structures of each kind of profile.
PROFILE_COUNTS = (
    "slices",
    "instances",
    "multiprocessors",
    "copy_engines",
    "decoders",
    "encoders",
    "jpeg_engines",
    "ofa_engines",
)


class Profile(ctypes.Structure):
    """nvmlGpuInstanceProfileInfo_t."""

    _fields_ = [(name, ctypes.c_uint) for name in ("id", "peer_to_peer", *PROFILE_COUNTS)] + [
        ("memory_mib", ctypes.c_ulonglong)
    ]


class Instance(ctypes.Structure):
    """nvmlGpuInstanceInfo_t; the last two are its placement in slices of the GPU's memory."""

    _fields_ = [
        ("device", ctypes.c_void_p),
        ("id", ctypes.c_uint),
        ("profile", ctypes.c_uint),
        ("start", ctypes.c_uint),
        ("size", ctypes.c_uint),
    ]


def read_gpu_instances(device: Device) -> list[dict[str, Any]] | None:
    """The GPU instances in the order of their ids; ``None`` if NVML does not report them: it does so for root only."""
    (mode, _pending) = device.read_numbers("nvmlDeviceGetMigMode", count=2)
    if not mode:
        return []
    found: list[dict[str, Any]] = []
    for profile in _read_profiles(device):
        handles = (ctypes.c_void_p * profile.instances)()
        count = ctypes.c_uint(profile.instances)
        if not device.fill(("nvmlDeviceGetGpuInstances",), (ctypes.c_uint(profile.id),), handles, count):
            return None
        found.extend(
            {
                "id": instance.id,
                "profile_id": instance.profile,
                "slices": profile.slices,
                "memory_total_bytes": profile.memory_mib * MIB,
                "placement_start": instance.start,
                "placement_size": instance.size,
            }
            for instance in _read_instances(device, list(handles)[: count.value])
        )
    return sorted(found, key=lambda instance: int(instance["id"]))


def _read_profiles(device: Device) -> Iterator[Profile]:
    """The kinds of GPU instances that the GPU can have."""
    for number in range(PROFILES):
        profile = Profile()
        if device.fill(("nvmlDeviceGetGpuInstanceProfileInfo",), (ctypes.c_uint(number),), profile):
            yield profile


def _read_instances(device: Device, handles: list[int | None]) -> Iterator[Instance]:
    for handle in handles:
        instance = Instance()
        if Device(device.nvml, ctypes.c_void_p(handle)).fill(("nvmlGpuInstanceGetInfo",), (), instance):
            yield instance


# -- processes that use a GPU


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
