# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU instances of MIG, also those without a compute instance, which are not devices yet.

Source of names, numbers and layouts: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any, Iterator

from .device import Device

PROFILES = 32  # more than NVML has numbers for kinds of GPU instances; a GPU knows some of them
MIB = 1024 * 1024


class Profile(ctypes.Structure):
    """nvmlGpuInstanceProfileInfo_t."""

    _fields_ = [
        (name, ctypes.c_uint)
        for name in (
            "id",
            "peer_to_peer",
            "slices",
            "instances",
            "multiprocessors",
            "copy_engines",
            "decoders",
            "encoders",
            "jpeg_engines",
            "ofa_engines",
        )
    ] + [("memory_mib", ctypes.c_ulonglong)]


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
