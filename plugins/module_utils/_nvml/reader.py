# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a node's GPUs through NVML."""

from __future__ import annotations

import ctypes
from typing import Any, Collection, Sequence

from .details import TOPICS, find_ancestor
from .device import Answer, Device
from .library import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NO_PERMISSION,
    SUCCESS,
    Memory,
    MemoryV2,
    Nvml,
    NvmlError,
    PciInfo,
    Temperature,
    Utilization,
    make_versioned,
)
from .model import Facts, Gpu, MigDevice, find_address


def read_gpus(nvml: Nvml, topics: Collection[str] = ()) -> Facts:
    """All GPUs that NVML reports, with the details of *topics* (names of details.TOPICS).

    Raises NvmlError if NVML does not start or cannot count its GPUs.
    """
    nvml.start()
    try:
        code, count = nvml.read_number(["nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"])
        if code != SUCCESS or count is None:
            raise NvmlError(code, nvml.get_error_text(code))
        errors: list[str] = []
        devices: list[Device | None] = []
        gpus = [_read_gpu(nvml, index, topics, devices, errors) for index in range(count)]
        if "topology" in topics:
            gpus = [_add_peers(gpu, devices) for gpu in gpus]
        return Facts(
            source="nvml",
            driver_version=nvml.read_text("nvmlSystemGetDriverVersion")[1],
            cuda_driver_version=_read_cuda_version(nvml),
            nvml_version=nvml.read_text("nvmlSystemGetNVMLVersion")[1],
            gpus=tuple(gpus),
            error=f"{'; '.join(errors)}; look for the cause in the kernel log." if errors else None,
        )
    finally:
        nvml.stop()


def _read_cuda_version(nvml: Nvml) -> str | None:
    # The first answers without libcuda, too: with the version that the driver serves.
    _code, number = nvml.read_number(["nvmlSystemGetCudaDriverVersion", "nvmlSystemGetCudaDriverVersion_v2"])
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def _read_gpu(nvml: Nvml, index: int, topics: Collection[str], devices: list[Device | None], errors: list[str]) -> Gpu:
    """One GPU; *devices* gets its handle, or None if it cannot be opened, and *errors* its error."""
    handle = ctypes.c_void_p()
    code = nvml.call(
        ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"], ctypes.c_uint(index), ctypes.byref(handle)
    )
    if code != SUCCESS:
        devices.append(None)
        errors.append(f"GPU {index} cannot be opened ({nvml.get_error_text(code)}, code {code})")
        # One that fell off the bus may answer with another code, such as 999.
        return Gpu(index=index, lost=code not in (NO_PERMISSION, FUNCTION_NOT_FOUND))
    device = Device(nvml, handle)
    (address, model), uuid = device.query(_query_pci) or (None, None), device.read_text("nvmlDeviceGetUUID")
    minor = device.read_number("nvmlDeviceGetMinorNumber")
    devices.append(None if device.lost else device)
    if device.lost:
        return Gpu(index=index, pci_address=address, pci_device_id=model, uuid=uuid, minor_number=minor, lost=True)
    gpu = _read_working_gpu(device, index)
    values = {key: value for name in topics for key, value in TOPICS[name](device).items()}
    return gpu._replace(
        pci_address=address,
        pci_device_id=model,
        uuid=uuid,
        minor_number=minor,
        details=values,
        lost=gpu.lost or device.lost,
    )


def _add_peers(gpu: Gpu, devices: Sequence[Device | None]) -> Gpu:
    """The GPU with the topology level that it shares with each other one that answers."""
    own = devices[gpu.index or 0]
    if own is None:
        return gpu
    peers = [
        {"index": index, "level": find_ancestor(own, other)}
        for index, other in enumerate(devices)
        if other is not None and other is not own
    ]
    return gpu._replace(details={**gpu.details, "peers": peers})


def _read_working_gpu(device: Device, index: int) -> Gpu:
    total, used, free = device.query(_query_memory) or (None, None, None)
    utilization = device.query(_query_utilization) or (None, None)
    milliwatts = device.read_number("nvmlDeviceGetPowerUsage")
    mig_mode, mig_pending = device.query(_query_mig_mode) or (None, None)
    return Gpu(
        index=index,
        name=device.read_text("nvmlDeviceGetName"),
        memory_total_bytes=total,
        memory_used_bytes=used,
        memory_free_bytes=free,
        mig_mode=mig_mode,
        mig_mode_pending=mig_pending,
        mig_devices=tuple(_read_mig_devices(device)) if mig_mode == "enabled" else (),
        compute_capability=device.query(_query_capability),
        temperature_celsius=device.query(_query_temperature),
        power_draw_watts=None if milliwatts is None else round(milliwatts / 1000, 2),
        utilization_gpu_percent=utilization[0],
        utilization_memory_percent=utilization[1],
        lost=device.lost,
    )


def _query_pci(nvml: Nvml, handle: Any) -> Answer[tuple[str | None, str | None]]:
    """(address, what device it is): the id is the upper half of NVML's number, the vendor the lower."""
    info = PciInfo()
    names = ["nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"]
    code = nvml.call(names, handle, ctypes.byref(info))
    if code != SUCCESS:
        return code, None
    address = find_address((info.bus_id or info.bus_id_legacy).decode("ascii"))
    return code, (address, f"{info.device_id >> 16:04x}" if info.device_id else None)


def _query_memory(nvml: Nvml, handle: Any) -> Answer[tuple[int, int, int]]:
    """(total, used, free) in bytes; drivers before 510 count what they reserve as used."""
    newer = make_versioned(MemoryV2, 2)
    code = nvml.call(["nvmlDeviceGetMemoryInfo_v2"], handle, ctypes.byref(newer))
    if code in (SUCCESS, GPU_IS_LOST):
        return code, (newer.total, newer.used, newer.free) if code == SUCCESS else None
    older = Memory()
    code = nvml.call(["nvmlDeviceGetMemoryInfo"], handle, ctypes.byref(older))
    return code, (older.total, older.used, older.free) if code == SUCCESS else None


def _query_capability(nvml: Nvml, handle: Any) -> Answer[str]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    code = nvml.call(["nvmlDeviceGetCudaComputeCapability"], handle, ctypes.byref(major), ctypes.byref(minor))
    return code, f"{major.value}.{minor.value}" if code == SUCCESS else None


def _query_temperature(nvml: Nvml, handle: Any) -> Answer[int]:
    """Of the GPU's own sensor; the function of the first line is deprecated and may go."""
    code, degrees = nvml.read_number(["nvmlDeviceGetTemperature"], handle, ctypes.c_int(0))
    if code in (SUCCESS, GPU_IS_LOST):
        return code, degrees
    newer = make_versioned(Temperature, 1)
    code = nvml.call(["nvmlDeviceGetTemperatureV"], handle, ctypes.byref(newer))
    return code, newer.degrees if code == SUCCESS else None


def _query_utilization(nvml: Nvml, handle: Any) -> Answer[tuple[int, int]]:
    rates = Utilization()
    code = nvml.call(["nvmlDeviceGetUtilizationRates"], handle, ctypes.byref(rates))
    return code, (rates.gpu, rates.memory) if code == SUCCESS else None


def _query_mig_mode(nvml: Nvml, handle: Any) -> Answer[tuple[str, str]]:
    """(as it is, as it will be after a reset)."""
    current, pending = ctypes.c_uint(), ctypes.c_uint()
    code = nvml.call(["nvmlDeviceGetMigMode"], handle, ctypes.byref(current), ctypes.byref(pending))
    if code != SUCCESS:
        return code, None
    return code, ("enabled" if current.value else "disabled", "enabled" if pending.value else "disabled")


def _read_mig_devices(device: Device) -> list[MigDevice]:
    found: list[MigDevice] = []
    for index in range(device.read_number("nvmlDeviceGetMaxMigDeviceCount") or 0):
        handle = ctypes.c_void_p()
        name = "nvmlDeviceGetMigDeviceHandleByIndex"
        if device.nvml.call([name], device.handle, ctypes.c_uint(index), ctypes.byref(handle)) != SUCCESS:
            continue
        part = Device(device.nvml, handle)
        memory = part.query(_query_memory)
        found.append(
            MigDevice(
                index=index,
                uuid=part.read_text("nvmlDeviceGetUUID"),
                name=part.read_text("nvmlDeviceGetName"),
                gpu_instance_id=part.read_number("nvmlDeviceGetGpuInstanceId"),
                compute_instance_id=part.read_number("nvmlDeviceGetComputeInstanceId"),
                memory_total_bytes=memory[0] if memory else None,
            )
        )
    return found
