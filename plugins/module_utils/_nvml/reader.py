# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a node's GPUs from the driver: through NVML, or from nvidia-smi where Python cannot load NVML's library."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
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

SMI_FOLDERS = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/run/nvidia/driver/usr/bin:/home/kubernetes/bin/nvidia/bin:/usr/lib/wsl/lib"
SMI_FIELDS: tuple[str, ...] = (
    "index",
    "uuid",
    "name",
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "memory.used",
    "memory.free",
    "mig.mode.current",
    "compute_cap",
    "temperature.gpu",
    "power.draw",
    "utilization.gpu",
    "utilization.memory",
)
_MIB = 1024 * 1024
_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
_NO_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:GPU\d*:?\s*)?([0-9A-Fa-f:.]+?):? .*lost", re.IGNORECASE
)


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


# -- nvidia-smi


class SmiError(Exception):
    """nvidia-smi failed; the message is its own first line."""


def find_smi(path: str | None) -> str | None:
    """The program at ``path`` if it can be run, else the first on PATH and in the usual folders."""
    if path:
        return shutil.which(path)
    return shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path=SMI_FOLDERS)


def read_gpus_of_smi(program: str) -> Facts:
    """All facts that nvidia-smi has. Raises SmiError. It has no time limit of its own: see isolation."""
    fields = list(SMI_FIELDS)
    while True:
        status, output = _run_smi(program, fields)
        unknown = _UNKNOWN_FIELD.search(output)
        if unknown is None or unknown.group(1) not in fields:
            return parse_smi_output(fields, status, output)
        fields.remove(unknown.group(1))  # an older driver


def _run_smi(program: str, fields: list[str]) -> tuple[int, str]:
    command = [program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    try:
        # module_utils imports no Ansible, so that there is no AnsibleModule.run_command.
        done = subprocess.run(  # pylint: disable=ansible-bad-function
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
    except OSError as error:
        raise SmiError(str(error)) from error
    return done.returncode, done.stdout.decode("utf-8", "replace")


def parse_smi_output(fields: list[str], status: int, output: str) -> Facts:
    """Facts from the program's exit status and output. Raises SmiError when the output holds no GPU and is an error."""
    gpus: list[Gpu] = []
    drivers: list[str] = []
    strange: list[str] = []
    for line in filter(None, map(str.strip, output.splitlines())):
        lost = _NO_HANDLE.search(line)
        values = [value.strip() for value in line.split(",")]
        if lost:
            gpus.append(Gpu(pci_address=find_address(lost.group(1)), lost=True))
        elif len(values) == len(fields):
            row = dict(zip(fields, values))
            gpus.append(_build_smi_gpu(row))
            drivers.extend(filter(None, [_get_text(row, "driver_version")]))
        else:
            strange.append(line)
    if not gpus and (status != 0 or strange) and not output.startswith("No devices were found"):
        raise SmiError(strange[0] if strange else f"exit status {status}")
    return Facts(source="nvidia_smi", driver_version=drivers[0] if drivers else None, gpus=tuple(gpus))


def _build_smi_gpu(row: dict[str, str]) -> Gpu:
    mig = (_get_text(row, "mig.mode.current") or "").lower()
    lost = any("gpu is lost" in value.lower() for value in row.values())
    return Gpu(
        index=_get_integer(row, "index"),
        uuid=_get_text(row, "uuid"),
        name=_get_text(row, "name"),
        pci_address=find_address(row.get("pci.bus_id", "")),
        memory_total_bytes=_get_integer(row, "memory.total", _MIB),
        memory_used_bytes=_get_integer(row, "memory.used", _MIB),
        memory_free_bytes=_get_integer(row, "memory.free", _MIB),
        mig_mode=mig if mig in ("enabled", "disabled") else None,
        compute_capability=_get_text(row, "compute_cap"),
        temperature_celsius=_get_integer(row, "temperature.gpu"),
        power_draw_watts=_get_number(row, "power.draw"),
        utilization_gpu_percent=_get_integer(row, "utilization.gpu"),
        utilization_memory_percent=_get_integer(row, "utilization.memory"),
        lost=lost,
    )


def _get_text(row: dict[str, str], field: str) -> str | None:
    """The value; nvidia-smi writes unknown ones as N/A, ERR! or in brackets."""
    value = row.get(field, "")
    return None if value in ("", "N/A", "ERR!") or value.startswith("[") else value


def _get_number(row: dict[str, str], field: str) -> float | None:
    try:
        return float(_get_text(row, field) or "")
    except ValueError:
        return None


def _get_integer(row: dict[str, str], field: str, unit: int = 1) -> int | None:
    value = _get_number(row, field)
    return None if value is None else int(value * unit)
