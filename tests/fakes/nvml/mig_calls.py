# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of NVML's MIG functions by ctypes, for tests of the simulation."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable
from ctypes import byref, c_char, c_uint, c_ulonglong, c_void_p
from typing import Any

#: A fixture that composes the library of a profile.
Compose = Callable[..., str]
SUCCESS, INVALID, NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 0, 2, 3, 4, 6
RESET_REQUIRED, IN_USE, FULL, UNKNOWN = 16, 19, 23, 999


class ProfileV2(ctypes.Structure):
    """nvmlGpuInstanceProfileInfo_v2_t."""

    _fields_ = [
        *((name, c_uint) for name in ("version", "id", "p2p", "slices", "instances", "multiprocessors")),
        *((name, c_uint) for name in ("copy", "decoders", "encoders", "jpegs", "ofas")),
        ("memory_mib", c_ulonglong),
        ("name", c_char * 96),
    ]


class ComputeProfileV2(ctypes.Structure):
    """nvmlComputeInstanceProfileInfo_v2_t."""

    _fields_ = [
        *((name, c_uint) for name in ("version", "id", "slices", "instances", "multiprocessors")),
        *((name, c_uint) for name in ("copy", "decoders", "encoders", "jpegs", "ofas")),
        ("name", c_char * 96),
    ]


class Placement(ctypes.Structure):
    """nvmlGpuInstancePlacement_t, nvmlComputeInstancePlacement_t."""

    _fields_ = [("start", c_uint), ("size", c_uint)]


class InstanceInfo(ctypes.Structure):
    """nvmlGpuInstanceInfo_t."""

    _fields_ = [("device", c_void_p), ("id", c_uint), ("profile", c_uint), ("placement", Placement)]


class ComputeInfo(ctypes.Structure):
    """nvmlComputeInstanceInfo_t."""

    _fields_ = [
        ("device", c_void_p),
        ("instance", c_void_p),
        ("id", c_uint),
        ("profile", c_uint),
        ("placement", Placement),
    ]


@dataclasses.dataclass(frozen=True)
class Profile:
    """A profile as NVML lists it; ``starts`` are memory slices."""

    id: int
    name: str
    slices: int
    instances: int
    starts: tuple[int, ...]
    size: int


class MigGpu:
    """One GPU of a library. Calls return NVML's code, and after it what they read."""

    def __init__(self, path: str, index: int = 0) -> None:
        self.library = ctypes.CDLL(path)
        assert self.library.nvmlInit_v2() == SUCCESS
        self.handle = c_void_p()
        assert self.library.nvmlDeviceGetHandleByIndex_v2(index, byref(self.handle)) == SUCCESS

    def call(self, name: str, *arguments: Any) -> int:
        """A function's code."""
        return int(getattr(self.library, name)(*arguments))

    def modes(self) -> tuple[int, int]:
        """MIG mode: current, pending."""
        current, pending = c_uint(), c_uint()
        assert self.call("nvmlDeviceGetMigMode", self.handle, byref(current), byref(pending)) == SUCCESS
        return current.value, pending.value

    def set_mode(self, mode: int) -> tuple[int, int]:
        """The code, and the code of the activation."""
        activation = c_uint(77)
        return self.call("nvmlDeviceSetMigMode", self.handle, mode, byref(activation)), activation.value

    def profiles(self) -> list[Profile]:
        """All profiles by NVML's indices."""
        return [profile for index in range(18) if (profile := self._profile(index))]

    def _profile(self, index: int) -> Profile | None:
        info = ProfileV2(version=ctypes.sizeof(ProfileV2) | 2 << 24)
        if self.call("nvmlDeviceGetGpuInstanceProfileInfoV", self.handle, index, byref(info)) != SUCCESS:
            return None
        places = self.placements("nvmlDeviceGetGpuInstancePossiblePlacements_v2", self.handle, info.id)
        name = info.name.decode().removeprefix("MIG ")
        starts = tuple(place[0] for place in places)
        return Profile(info.id, name, info.slices, info.instances, starts, places[0][1])

    def placements(self, function: str, handle: c_void_p, profile: int) -> list[tuple[int, int]]:
        """Start and size of each, read as NVML requires: the count first."""
        count = c_uint()
        assert self.call(function, handle, profile, None, byref(count)) == SUCCESS
        found = (Placement * count.value)()
        assert self.call(function, handle, profile, found, byref(count)) == SUCCESS
        return [(place.start, place.size) for place in found]

    def id_of(self, name: str) -> int:
        """The id of a profile by its name."""
        return next(profile.id for profile in self.profiles() if profile.name == name)

    def capacity(self, name: str) -> tuple[int, int]:
        """How many instances of a profile are left."""
        count = c_uint()
        code = self.call("nvmlDeviceGetGpuInstanceRemainingCapacity", self.handle, self.id_of(name), byref(count))
        return code, count.value

    def create(self, name: str, start: int | None = None, size: int = 1) -> tuple[int, c_void_p]:
        """A GPU instance, placed by the driver or at a memory slice."""
        made, profile = c_void_p(), self.id_of(name)
        if start is None:
            return self.call("nvmlDeviceCreateGpuInstance", self.handle, profile, byref(made)), made
        place = byref(Placement(start, size))
        return self.call("nvmlDeviceCreateGpuInstanceWithPlacement", self.handle, profile, place, byref(made)), made

    def fill(self, name: str) -> tuple[int, c_void_p]:
        """A GPU instance with a compute instance that fills it."""
        code, instance = self.create(name)
        if code == SUCCESS:
            slices = next(profile.slices for profile in self.profiles() if profile.name == name)
            code = self.create_compute(instance, {7: 4}.get(slices, slices - 1))[0]
        return code, instance

    def create_compute(self, instance: c_void_p, profile: int) -> tuple[int, c_void_p]:
        """A compute instance."""
        made = c_void_p()
        return self.call("nvmlGpuInstanceCreateComputeInstance", instance, profile, byref(made)), made

    def info(self, instance: c_void_p) -> InstanceInfo:
        """Of a GPU instance."""
        info = InstanceInfo()
        assert self.call("nvmlGpuInstanceGetInfo", instance, byref(info)) == SUCCESS
        return info

    def compute_info(self, instance: c_void_p) -> ComputeInfo:
        """Of a compute instance."""
        info = ComputeInfo()
        assert self.call("nvmlComputeInstanceGetInfo_v2", instance, byref(info)) == SUCCESS
        return info

    def compute_profile(self, instance: c_void_p, profile: int) -> tuple[int, ComputeProfileV2]:
        """A profile of compute instances."""
        info = ComputeProfileV2(version=ctypes.sizeof(ComputeProfileV2) | 2 << 24)
        return self.call("nvmlGpuInstanceGetComputeInstanceProfileInfoV", instance, profile, 0, byref(info)), info

    def layout(self) -> list[tuple[str, int, int]]:
        """(profile, id, first memory slice) of all GPU instances, by id."""
        found = []
        for profile in self.profiles():
            handles, count = (c_void_p * 8)(), c_uint()
            assert self.call("nvmlDeviceGetGpuInstances", self.handle, profile.id, handles, byref(count)) == SUCCESS
            infos = [self.info(c_void_p(handle)) for handle in handles[: count.value]]
            found += [(profile.name, info.id, info.placement.start) for info in infos]
        return sorted(found, key=lambda each: each[1])

    def mig_devices(self) -> list[str]:
        """The names of the MIG devices, by index, without the GPU's."""
        names = []
        for index in range(8):
            device, name = c_void_p(), ctypes.create_string_buffer(96)
            code = self.call("nvmlDeviceGetMigDeviceHandleByIndex", self.handle, index, byref(device))
            if code == SUCCESS and self.call("nvmlDeviceGetName", device, name, 96) == SUCCESS:
                names.append(name.value.decode().partition(" MIG ")[2])
        return names


def in_a_process(path: str, code: str, index: int = 0) -> str:
    """What a fresh Python prints that has the GPU as ``gpu``."""
    return start_process(path, code, index).communicate()[0]


def start_process(path: str, code: str, index: int = 0) -> subprocess.Popen[str]:
    """A fresh Python that has the GPU as ``gpu``."""
    lines = f"from fakes.nvml.mig_calls import *\ngpu = MigGpu({path!r}, {index})\n{code}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", lines], stdin=pipe, stdout=pipe, text=True, env=environment)
