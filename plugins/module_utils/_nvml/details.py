# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details of a GPU by NVML, by topics of ``gather_subset``.

Values are of JSON types; a value that a GPU or its driver does not have is ``None``.

Source of names, numbers and layouts: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Iterator, Mapping

from .device import Answer, Device, read_gpu_instances, read_processes
from .library import INSUFFICIENT_SIZE, SUCCESS, Nvml, PciInfo, make_versioned
from .model import find_address
from .vgpu import read_license

BRANDS: Mapping[int, str] = {
    1: "quadro",
    2: "tesla",
    3: "nvs",
    4: "grid",
    5: "geforce",
    6: "titan",
    7: "nvidia_vapps",
    8: "nvidia_vpc",
    9: "nvidia_vcs",
    10: "nvidia_vws",
    11: "nvidia_cloud_gaming",
    12: "quadro_rtx",
    13: "nvidia_rtx",
    14: "nvidia",
    15: "geforce_rtx",
    16: "titan_rtx",
}
ARCHITECTURES: Mapping[int, str] = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
SWITCH: Mapping[int, str] = {0: "disabled", 1: "enabled"}
COMPUTE_MODES: Mapping[int, str] = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
VIRTUALIZATION: Mapping[int, str] = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
CLOCKS: Mapping[str, int] = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}
# Why the clocks are as they are: one bit each.
CLOCK_REASONS: tuple[str, ...] = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
    "board_limit",
    "reliability",
)
LINKS = 36  # more than any GPU has
# nvmlNvlinkVersion_t; 0 is not a version.
LINK_VERSIONS: Mapping[int, str] = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
# The version by compute capability. Some drivers report the numbers of their kernel modules, which are one higher.
LINKS_OF: Mapping[tuple[int | None, ...], str] = {
    (6, 0): "1.0",
    (7, 0): "2.0",
    (7, 5): "2.2",
    (8, 0): "3.0",
    (8, 6): "3.1",
    (9, 0): "4.0",
    (10, 0): "5.0",
    (10, 3): "5.0",
}
REMOTE: Mapping[int, str] = {0: "gpu", 1: "ibmnpu", 2: "switch", 255: "unknown"}
FABRIC_STATES: Mapping[int, str] = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
# NVML_FI_DEV_GET_GPU_RECOVERY_ACTION and its values, of drivers from 570 on.
RECOVERY_FIELD = 230
RECOVERY_ACTIONS: Mapping[int, str] = {
    0: "none",
    1: "gpu_reset",
    2: "node_reboot",
    3: "drain_p2p",
    4: "drain_and_reset",
}
# As ``nvidia-smi topo`` writes them.
LEVELS: Mapping[int, str] = {0: "internal", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
WORDS = 64  # of a set of processors: 4096 of them


class Bar1(ctypes.Structure):
    """nvmlBAR1Memory_t, bytes."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Fabric(ctypes.Structure):
    """nvmlGpuFabricInfo_t."""

    _fields_ = [
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
    ]


class FabricV2(ctypes.Structure):
    """nvmlGpuFabricInfo_v2_t."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_uint),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
        ("health", ctypes.c_uint),
    ]


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t; ``value`` is a union of eight bytes, of which this reads the unsigned int."""

    _fields_ = [
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("code", ctypes.c_int),
        ("value", ctypes.c_uint),
        ("rest", ctypes.c_uint),
    ]


def read_hardware(device: Device) -> dict[str, Any]:
    """What the board is and how it is set."""
    bar1 = Bar1()
    known = device.fill(("nvmlDeviceGetBAR1MemoryInfo",), (), bar1)
    return {
        "brand": _get_name(BRANDS, device.read_number("nvmlDeviceGetBrand")),
        "architecture": _get_name(ARCHITECTURES, device.read_number("nvmlDeviceGetArchitecture")),
        "serial": device.read_text("nvmlDeviceGetSerial"),
        "board_part_number": device.read_text("nvmlDeviceGetBoardPartNumber"),
        "vbios_version": device.read_text("nvmlDeviceGetVbiosVersion"),
        "persistence_mode": _get_name(SWITCH, device.read_number("nvmlDeviceGetPersistenceMode")),
        "compute_mode": _get_name(COMPUTE_MODES, device.read_number("nvmlDeviceGetComputeMode")),
        "virtualization_mode": _get_name(VIRTUALIZATION, device.read_number("nvmlDeviceGetVirtualizationMode")),
        "vgpu_license": read_license(device),
        "bar1": {
            "total_bytes": bar1.total if known else None,
            "used_bytes": bar1.used if known else None,
            "free_bytes": bar1.free if known else None,
        },
        "gpu_instances": read_gpu_instances(device),
    }


def read_health(device: Device) -> dict[str, Any]:
    """Errors of the memory, and what the GPU did about them."""
    current, pending = device.read_numbers("nvmlDeviceGetEccMode", count=2)
    errors = {
        f"{kind}_{since}": device.read_numbers(
            "nvmlDeviceGetTotalEccErrors", ctypes.c_int(error), ctypes.c_int(counter), kind=ctypes.c_ulonglong
        )[0]
        for error, kind in enumerate(("corrected", "uncorrected"))
        for counter, since in enumerate(("volatile", "aggregate"))
    }
    corrected, uncorrected, waiting, failed = device.read_numbers("nvmlDeviceGetRemappedRows", count=4)
    retiring = device.read_number("nvmlDeviceGetRetiredPagesPendingStatus")
    return {
        "ecc": {"mode": _get_name(SWITCH, current), "mode_pending": _get_name(SWITCH, pending), **errors},
        "retired_pages": {
            "single_bit": _count_retired(device, 0),
            "double_bit": _count_retired(device, 1),
            "pending": _to_bool(retiring),
        },
        "row_remapping": {
            "corrected": corrected,
            "uncorrected": uncorrected,
            "pending": _to_bool(waiting),
            "failed": _to_bool(failed),
        },
        "recovery_action": _read_recovery_action(device),
        "fabric": _read_fabric(device),
    }


def read_power(device: Device) -> dict[str, Any]:
    """Limits of the power, in watts."""
    lowest, highest = device.read_numbers("nvmlDeviceGetPowerManagementLimitConstraints", count=2)
    return {
        "power": {
            "limit_watts": _to_watts(device.read_number("nvmlDeviceGetPowerManagementLimit")),
            "limit_enforced_watts": _to_watts(device.read_number("nvmlDeviceGetEnforcedPowerLimit")),
            "limit_default_watts": _to_watts(device.read_number("nvmlDeviceGetPowerManagementDefaultLimit")),
            "limit_min_watts": _to_watts(lowest),
            "limit_max_watts": _to_watts(highest),
        }
    }


def read_clocks(device: Device) -> dict[str, Any]:
    """Clocks in MHz, and what holds them down."""
    found: dict[str, Any] = {}
    for name, kind in CLOCKS.items():
        (found[f"{name}_mhz"],) = device.read_numbers("nvmlDeviceGetClockInfo", ctypes.c_int(kind))
        (found[f"{name}_max_mhz"],) = device.read_numbers("nvmlDeviceGetMaxClockInfo", ctypes.c_int(kind))
    bits = ctypes.c_ulonglong()
    names = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
    known = device.fill(names, (), bits)
    reasons = [name for bit, name in enumerate(CLOCK_REASONS) if bits.value >> bit & 1] if known else None
    return {"clocks": {**found, "event_reasons": reasons}}


def read_pcie(device: Device) -> dict[str, Any]:
    """The link to the host, as it is now and as it could be."""
    return {
        "pcie": {
            "generation": device.read_number("nvmlDeviceGetCurrPcieLinkGeneration"),
            "generation_max": device.read_number("nvmlDeviceGetMaxPcieLinkGeneration"),
            "width": device.read_number("nvmlDeviceGetCurrPcieLinkWidth"),
            "width_max": device.read_number("nvmlDeviceGetMaxPcieLinkWidth"),
            "replays": device.read_number("nvmlDeviceGetPcieReplayCounter"),
        }
    }


def read_topology(device: Device) -> dict[str, Any]:
    """What the GPU is wired to."""
    return {
        "memory_numa_node": device.read_number("nvmlDeviceGetNumaNodeId"),
        "cpu_affinity": _read_processors(device),
        "nvlinks": list(_read_links(device)),
        "fabric": _read_fabric(device),
    }


#: The topics of ``gather_subset``, with their functions.
TOPICS: Mapping[str, Callable[[Device], dict[str, Any]]] = {
    "hardware": read_hardware,
    "health": read_health,
    "power": read_power,
    "clocks": read_clocks,
    "pcie": read_pcie,
    "topology": read_topology,
    "processes": read_processes,
}
#: Topics that are expensive or concern people are gathered only if they are named.
OPT_IN = frozenset(["processes"])


#: The values of each topic, which only NVML has, and not for a lost GPU.
KEYS: Mapping[str, tuple[str, ...]] = {
    "hardware": (
        "brand",
        "architecture",
        "serial",
        "board_part_number",
        "vbios_version",
        "persistence_mode",
        "compute_mode",
        "virtualization_mode",
        "vgpu_license",
        "bar1",
        "gpu_instances",
    ),
    "health": ("ecc", "retired_pages", "row_remapping", "recovery_action", "fabric"),
    "power": ("power",),
    "clocks": ("clocks",),
    "pcie": ("pcie",),
    "topology": ("numa_node", "memory_numa_node", "cpu_affinity", "nvlinks", "fabric", "peers"),
    "processes": ("processes",),
}


def find_ancestor(one: Device, other: Device) -> str | None:
    """The nearest thing that two GPUs share, as ``nvidia-smi topo`` writes it."""
    level = one.read_numbers("nvmlDeviceGetTopologyCommonAncestor", other.handle)[0]
    return _get_name(LEVELS, level)


def _get_name(names: Mapping[int, str], number: int | None) -> str | None:
    return None if number is None else names.get(number)


def _to_bool(number: int | None) -> bool | None:
    return None if number is None else bool(number)


def _to_watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else round(milliwatts / 1000, 2)


def _read_recovery_action(device: Device) -> str | None:
    """What the driver requires to recover the GPU; ``None`` of drivers that do not report it."""
    answer = FieldValue(field=RECOVERY_FIELD)
    known = device.fill(("nvmlDeviceGetFieldValues",), (ctypes.c_int(1),), answer) and answer.code == SUCCESS
    return RECOVERY_ACTIONS.get(answer.value, f"action {answer.value}") if known else None


def _count_retired(device: Device, cause: int) -> int | None:
    """How many pages were retired for a cause; for an empty buffer, the function returns the number."""
    count = ctypes.c_uint(0)

    def query(nvml: Nvml, handle: Any) -> Answer[int]:
        code = nvml.call(["nvmlDeviceGetRetiredPages"], handle, ctypes.c_int(cause), ctypes.byref(count), None)
        return code, count.value if code in (SUCCESS, INSUFFICIENT_SIZE) else None

    return device.query(query)


def _read_processors(device: Device) -> str | None:
    """The processors near the GPU as Linux writes sets: ``0-15,32-47``."""
    words = (ctypes.c_ulong * WORDS)()
    if not device.fill(("nvmlDeviceGetCpuAffinity",), (ctypes.c_uint(WORDS),), words):
        return None
    width = ctypes.sizeof(ctypes.c_ulong) * 8
    return format_ranges(
        [at * width + bit for at, word in enumerate(words) if word for bit in range(width) if word >> bit & 1]
    )


def format_ranges(numbers: list[int]) -> str:
    """Ascending numbers as Linux writes sets."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _read_links(device: Device) -> Iterator[dict[str, Any]]:
    """The NVLinks; numbers without one may lie between them."""
    capability = device.read_numbers("nvmlDeviceGetCudaComputeCapability", count=2, kind=ctypes.c_int)
    for number in range(LINKS):
        link = ctypes.c_uint(number)
        (active,) = device.read_numbers("nvmlDeviceGetNvLinkState", link)
        if active is None:
            continue
        (version,) = device.read_numbers("nvmlDeviceGetNvLinkVersion", link)
        (remote,) = device.read_numbers("nvmlDeviceGetNvLinkRemoteDeviceType", link)
        place = PciInfo()
        names = ("nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo")
        known = active and device.fill(names, (link,), place)
        yield {
            "link": number,
            "active": bool(active),
            "version": find_link_version(version, capability),
            "remote": _get_name(REMOTE, remote) if active else None,
            "remote_pci_address": find_address((place.bus_id or place.bus_id_legacy).decode("ascii"))
            if known
            else None,
        }


def find_link_version(number: int | None, capability: tuple[int | None, ...]) -> str | None:
    """A version of NVLink by its number, in the header's numbering or in that of the kernel modules; *capability* decides which it is."""
    if number is None:
        return None
    own = LINKS_OF.get(capability)
    reported = LINK_VERSIONS.get(number)
    return own if own is not None and own in (reported, LINK_VERSIONS.get(number - 1)) else reported


def _read_fabric(device: Device) -> dict[str, Any] | None:
    """The NVSwitch fabric; ``None`` for a GPU without one."""
    newer = make_versioned(FabricV2, 2)
    older = Fabric()
    if device.fill(("nvmlDeviceGetGpuFabricInfoV",), (), newer):
        found: Any = newer
    elif device.fill(("nvmlDeviceGetGpuFabricInfo",), (), older):
        found = older
    else:
        return None
    return {
        "state": _get_name(FABRIC_STATES, found.state),
        "status": found.status,
        "clique_id": found.clique,
        "cluster_uuid": _format_uuid(bytes(found.cluster)),
    }


def _format_uuid(raw: bytes) -> str | None:
    """A UUID as text; ``None`` for one of zeroes."""
    if not any(raw):
        return None
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
