# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads and changes MIG through NVML: modes, GPU instances and compute instances.

Each call runs in a process of its own, which has ended when it returns: a client of NVML would block the reset of a GPU.

Source of names, numbers and layouts: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, NamedTuple, Sequence

from . import isolation
from .details import ARCHITECTURES
from .device import PROFILE_COUNTS, PROFILES, Device, Instance, read_processes
from .library import (
    FUNCTION_NOT_FOUND,
    NO_PERMISSION,
    SUCCESS,
    TEXT_LENGTH,
    LibraryMissing,
    Nvml,
    NvmlError,
    PciInfo,
    load_library,
    make_versioned,
)
from .model import find_address
from .partitions import Compute, Gpu, Partition, Placement, Process, Profile, decode_gpu

NOT_SUPPORTED = 3
INSUFFICIENT_RESOURCES = 23
IN_USE = 19
# More than any GPU has, or NVML has numbers for.
PLACEMENTS = 64
INSTANCES = 64
COMPUTE_PROFILES = 16
# A change of mode initializes the GPU.
TIMEOUT = 300.0
#: The newest architecture whose mode changes with a reset only.
PENDING_ARCHITECTURE = next(number for number, name in ARCHITECTURES.items() if name == "ampere")


#: Any, because the types of a list of fields have no common one.
_Text: Any = ctypes.c_char * TEXT_LENGTH


class ProfileV2(ctypes.Structure):
    """nvmlGpuInstanceProfileInfo_v2_t."""

    _fields_ = [(name, ctypes.c_uint) for name in ("version", "id", "peer_to_peer", *PROFILE_COUNTS)] + [
        ("memory_mib", ctypes.c_ulonglong),
        ("name", _Text),
    ]


class PlacementInfo(ctypes.Structure):
    """nvmlGpuInstancePlacement_t, in slices of memory."""

    _fields_ = [("start", ctypes.c_uint), ("size", ctypes.c_uint)]


class ComputeProfile(ctypes.Structure):
    """nvmlComputeInstanceProfileInfo_t."""

    _fields_ = [(name, ctypes.c_uint) for name in ("id", *PROFILE_COUNTS)]


class ComputeInfo(ctypes.Structure):
    """nvmlComputeInstanceInfo_t."""

    _fields_ = [
        ("device", ctypes.c_void_p),
        ("gpu_instance", ctypes.c_void_p),
        ("id", ctypes.c_uint),
        ("profile", ctypes.c_uint),
        ("start", ctypes.c_uint),
        ("size", ctypes.c_uint),
    ]


class MigError(Exception):
    """NVML does not answer or refuses a call; the text is a clause without a full stop. ``code`` is NVML's, 0 if it gave none."""

    def __init__(self, text: str, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


class Creation(NamedTuple):
    """A GPU instance to create, with the compute slices of its compute instances."""

    profile: int
    placement: tuple[int, int]
    compute: tuple[int, ...]


class Change(NamedTuple):
    """What happens to the instances of one GPU: ``remove`` and ``complete`` name GPU instances, the latter with missing compute instances."""

    remove: tuple[int, ...] = ()
    complete: tuple[tuple[int, tuple[int, ...]], ...] = ()
    create: tuple[Creation, ...] = ()


class Mig:
    """MIG of this node through the library at ``path``, or the loader's own. All methods raise MigError."""

    def __init__(self, path: str | None = None, timeout: float = TIMEOUT) -> None:
        self._path = path
        self._timeout = timeout

    def read(self) -> list[Gpu]:
        """All GPUs in the order of their indices."""
        return [decode_gpu(row) for row in self._call(_read_gpus)]

    def set_mode(self, index: int, enabled: bool) -> None:
        """Requests a mode of the GPU. The driver may not apply it before a reset: see ``mode`` and ``pending`` afterwards."""
        self._call(lambda nvml: _set_mode(nvml, index, enabled))

    def change(self, index: int, change: Change) -> None:
        """Removes and creates instances of the GPU. An error leaves those that were finished before it."""
        self._call(lambda nvml: _change(nvml, index, change))

    def _call(self, function: Callable[[Nvml], Any]) -> Any:
        try:
            answer = isolation.call(lambda: _answer(self._path, function), self._timeout)
        except isolation.Hung:
            raise MigError(
                f"the NVIDIA driver did not answer within {self._timeout:g} seconds; look for Xid errors in the kernel log"
            ) from None
        except isolation.Crashed as error:
            raise MigError(f"the call of the NVIDIA driver {error}; look for Xid errors in the kernel log") from None
        except isolation.Failed as error:
            raise MigError(f"gpu.kubernetes itself failed ({error})") from None
        if "error" in answer:
            raise MigError(answer["error"], answer["code"])
        return answer["result"]


def _answer(path: str | None, function: Callable[[Nvml], Any]) -> dict[str, Any]:
    """Runs in the child process; the result has JSON types."""
    try:
        nvml = Nvml(load_library(path))
        nvml.start()
        try:
            return {"result": function(nvml)}
        finally:
            nvml.stop()
    except LibraryMissing as error:
        return {"error": f"{error}; install the NVIDIA driver", "code": 0}
    except NvmlError as error:
        return {"error": f"NVML does not start ({error}, code {error.code})", "code": error.code}
    except MigError as error:
        return {"error": str(error), "code": error.code}


def _check(nvml: Nvml, code: int, action: str) -> None:
    """Raises MigError for a code other than success."""
    if code == NO_PERMISSION:
        raise MigError(f"NVML does not permit to {action}; run as root (become: true), outside a container", code)
    if code == FUNCTION_NOT_FOUND:
        raise MigError(f"the NVIDIA driver is too old to {action}; upgrade it to branch 535 or newer", code)
    if code != SUCCESS:
        raise MigError(f"NVML refuses to {action} ({nvml.get_error_text(code)}, code {code})", code)


# -- reading


def _read_gpus(nvml: Nvml) -> list[Gpu]:
    code, count = nvml.read_number(["nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"])
    _check(nvml, code, "count the GPUs")
    return [_read_gpu(nvml, index) for index in range(count or 0)]


def _open(nvml: Nvml, index: int) -> Device:
    handle = ctypes.c_void_p()
    names = ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"]
    _check(nvml, nvml.call(names, ctypes.c_uint(index), ctypes.byref(handle)), f"open GPU {index}")
    return Device(nvml, handle)


def _read_gpu(nvml: Nvml, index: int) -> Gpu:
    device = _open(nvml, index)
    info = PciInfo()
    known = device.fill(("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"), (), info)
    uuid = device.read_text("nvmlDeviceGetUUID")
    if device.lost or not known or not uuid:
        raise MigError(f"GPU {index} is lost to the driver; look for NVRM in the kernel log and reboot the node")
    mode, pending = device.read_numbers("nvmlDeviceGetMigMode", count=2)
    gpu = Gpu(
        index=index,
        uuid=uuid,
        pci_address=find_address((info.bus_id or info.bus_id_legacy).decode("ascii", "replace")) or "",
        minor=device.read_number("nvmlDeviceGetMinorNumber"),
        name=device.read_text("nvmlDeviceGetName") or "",
        needs_reset=(device.read_number("nvmlDeviceGetArchitecture") or 0) <= PENDING_ARCHITECTURE,
    )
    if mode is None:
        return gpu
    profiles = tuple(_read_profiles(device, index))
    return gpu._replace(
        mode=bool(mode),
        pending=bool(pending),
        profiles=profiles,
        partitions=tuple(_read_partitions(device, index, profiles)) if mode else (),
        processes=tuple(_read_processes(device)),
    )


def _read_profiles(device: Device, index: int) -> Iterator[Profile]:
    """The kinds of GPU instances that the GPU can have. Some drivers report none, or no placements, while MIG is off."""
    nvml = device.nvml
    for number in range(PROFILES):
        info = make_versioned(ProfileV2, 2)
        names = ["nvmlDeviceGetGpuInstanceProfileInfoV"]
        code = nvml.call(names, device.handle, ctypes.c_uint(number), ctypes.byref(info))
        if code == FUNCTION_NOT_FOUND:
            _check(nvml, code, f"name the MIG profiles of GPU {index}")
        if code == SUCCESS:
            name = info.name.decode("ascii", "replace").split(" ")[-1]
            yield Profile(name, info.id, info.slices, info.instances, tuple(_read_placements(device, info.id)))


def _read_placements(device: Device, profile: int) -> list[Placement]:
    rows, count = (PlacementInfo * PLACEMENTS)(), ctypes.c_uint(PLACEMENTS)
    names = ["nvmlDeviceGetGpuInstancePossiblePlacements_v2", "nvmlDeviceGetGpuInstancePossiblePlacements"]
    code = device.nvml.call(names, device.handle, ctypes.c_uint(profile), rows, ctypes.byref(count))
    return [Placement(row.start, row.size) for row in rows[: count.value]] if code == SUCCESS else []


def _read_partitions(device: Device, index: int, profiles: Sequence[Profile]) -> Iterator[Partition]:
    nvml = device.nvml
    for profile in profiles:
        handles, count = (ctypes.c_void_p * INSTANCES)(), ctypes.c_uint(INSTANCES)
        names = ["nvmlDeviceGetGpuInstances"]
        code = nvml.call(names, device.handle, ctypes.c_uint(profile.number), handles, ctypes.byref(count))
        _check(nvml, code, f"list the GPU instances of GPU {index}")
        for handle in list(handles)[: count.value]:
            instance, info = Device(nvml, ctypes.c_void_p(handle)), Instance()
            code = nvml.call(["nvmlGpuInstanceGetInfo"], instance.handle, ctypes.byref(info))
            _check(nvml, code, f"describe a GPU instance of GPU {index}")
            placement = Placement(info.start, info.size)
            yield Partition(info.id, profile.name, profile.slices, placement, tuple(_read_compute(instance)))


def _read_compute_profiles(instance: Device) -> Iterator[ComputeProfile]:
    """The kinds of compute instances that the GPU instance can have."""
    for number in range(COMPUTE_PROFILES):
        profile = ComputeProfile()
        arguments = (ctypes.c_uint(number), ctypes.c_uint(0))  # with shared engines, the only kind
        if instance.fill(("nvmlGpuInstanceGetComputeInstanceProfileInfo",), arguments, profile):
            yield profile


def _read_compute(instance: Device) -> list[Compute]:
    found = []
    for profile in _read_compute_profiles(instance):
        handles, count = (ctypes.c_void_p * INSTANCES)(), ctypes.c_uint(INSTANCES)
        if not instance.fill(("nvmlGpuInstanceGetComputeInstances",), (ctypes.c_uint(profile.id), handles), count):
            continue
        for handle in list(handles)[: count.value]:
            info = ComputeInfo()
            if Device(instance.nvml, ctypes.c_void_p(handle)).fill(("nvmlComputeInstanceGetInfo_v2",), (), info):
                found.append(Compute(info.id, profile.slices))
    return sorted(found)


def _read_processes(device: Device) -> list[Process]:
    rows = read_processes(device)["processes"] or []
    return [Process(row["pid"], row["name"], row["gpu_instance_id"]) for row in rows]


# -- changes


def _set_mode(nvml: Nvml, index: int, enabled: bool) -> None:
    # The status is that of the activation, which the caller reads as the mode.
    status = ctypes.c_uint()
    code = nvml.call(["nvmlDeviceSetMigMode"], _open(nvml, index).handle, ctypes.c_uint(enabled), ctypes.byref(status))
    _check(nvml, code, f"switch MIG mode {'on' if enabled else 'off'} on GPU {index}")


def _change(nvml: Nvml, index: int, change: Change) -> None:
    device = _open(nvml, index)
    for number in change.remove:
        _remove(device, index, number)
    for number, compute in change.complete:
        _create_compute(_open_instance(device, index, number), index, compute)
    for creation in change.create:
        instance = ctypes.c_void_p()
        place = PlacementInfo(*creation.placement)
        names = ["nvmlDeviceCreateGpuInstanceWithPlacement"]
        code = nvml.call(
            names, device.handle, ctypes.c_uint(creation.profile), ctypes.byref(place), ctypes.byref(instance)
        )
        _check(nvml, code, f"create a GPU instance at slice {place.start} of GPU {index}")
        _create_compute(Device(nvml, instance), index, creation.compute)


def _open_instance(device: Device, index: int, number: int) -> Device:
    handle = ctypes.c_void_p()
    code = device.nvml.call(
        ["nvmlDeviceGetGpuInstanceById"], device.handle, ctypes.c_uint(number), ctypes.byref(handle)
    )
    _check(device.nvml, code, f"open GPU instance {number} of GPU {index}")
    return Device(device.nvml, handle)


def _remove(device: Device, index: int, number: int) -> None:
    """Removes a GPU instance, after its compute instances."""
    nvml, instance = device.nvml, _open_instance(device, index, number)
    for compute in _read_compute(instance):
        handle = ctypes.c_void_p()
        names = ["nvmlGpuInstanceGetComputeInstanceById"]
        code = nvml.call(names, instance.handle, ctypes.c_uint(compute.number), ctypes.byref(handle))
        _check(nvml, code, f"open a compute instance of GPU {index}")
        code = nvml.call(["nvmlComputeInstanceDestroy"], handle)
        _check(nvml, code, f"remove compute instance {compute.number} of GPU instance {number} of GPU {index}")
    code = nvml.call(["nvmlGpuInstanceDestroy"], instance.handle)
    _check(nvml, code, f"remove GPU instance {number} of GPU {index}")


def _create_compute(instance: Device, index: int, slices: Sequence[int]) -> None:
    profiles: dict[int, int] = {}
    for profile in _read_compute_profiles(instance):
        profiles.setdefault(profile.slices, profile.id)
    for size in slices:
        handle = ctypes.c_void_p()
        code = NOT_SUPPORTED
        if size in profiles:
            names = ["nvmlGpuInstanceCreateComputeInstance"]
            code = instance.nvml.call(names, instance.handle, ctypes.c_uint(profiles[size]), ctypes.byref(handle))
        _check(instance.nvml, code, f"create a compute instance of {size} slices on GPU {index}")
