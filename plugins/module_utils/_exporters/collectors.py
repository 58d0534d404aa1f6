# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields that dcgm-exporter collects, as its collectors file lists them, by generation.

Version 4.9 has renamed fields and changed units. Below it, a name with the suffix of a base unit is another name of the old field, in the old unit, so
that it is refused. Source: dcgm_fields.h of DCGM 4.6.0, and the release notes of dcgm-exporter 4.9.0.
"""

from __future__ import annotations

import re

#: The first version of the exporter with the new names.
RENAMED = (4, 9)
BASE_UNITS = ("_RATIO", "_HERTZ", "_JOULES", "_BYTES", "_JOULES_TOTAL")
#: Fields that DCGM 4 has removed. One of them stops the exporter.
REMOVED = ("DCGM_FI_DEV_PCIE_TX_THROUGHPUT", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT")
#: Fields of profiling, which need the capability SYS_ADMIN.
PROFILING = "DCGM_FI_PROF_"
KINDS = ("gauge", "counter", "label")
LINE = re.compile(r"^\s*([A-Z][A-Z0-9_]+)\s*,\s*(\w+)\s*,\s*(\S.*)$")

#: Old name, new name, kind, help. A field without a new name is not collected from 4.9 on, without an old name not before.
FIELDS: tuple[tuple[str, str, str, str], ...] = (
    ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION", "label", "Driver version."),
    ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "gauge", "Load of the GPU."),
    ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", "gauge", "Memory in use."),
    ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES", "gauge", "Free memory."),
    ("DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_RESERVED_BYTES", "gauge", "Memory that the driver reserves."),
    ("", "DCGM_FI_DEV_FB_CAPACITY_BYTES", "gauge", "Memory of the GPU."),
    ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_TEMP_CELSIUS", "gauge", "Temperature of the GPU."),
    ("DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", "gauge", "Temperature of the memory."),
    ("DCGM_FI_DEV_GPU_TEMP_LIMIT", "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS", "gauge", "Degrees below the thermal limit."),
    ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", "gauge", "Power draw."),
    (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL",
        "counter",
        "Energy since the driver was loaded.",
    ),
    ("DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_SM_CLOCK_HERTZ", "gauge", "Clock of the multiprocessors."),
    ("DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", "gauge", "Clock of the memory."),
    (
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS",
        "gauge",
        "Bits that say why clocks are reduced.",
    ),
    (
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "counter",
        "Corrected ECC errors since the driver was loaded.",
    ),
    (
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "counter",
        "Uncorrected ECC errors since the driver was loaded.",
    ),
    (
        "DCGM_FI_DEV_THRESHOLD_SRM",
        "DCGM_FI_DEV_SRAM_EXCEEDED",
        "gauge",
        "Whether uncorrected SRAM errors exceed the threshold.",
    ),
    (
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
        "DCGM_FI_DEV_ROW_REMAP_FAILED",
        "gauge",
        "Whether a memory row could not be remapped.",
    ),
    (
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
        "DCGM_FI_DEV_ROW_REMAP_PENDING",
        "gauge",
        "Whether a remapped row waits for a reset.",
    ),
    (
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
        "counter",
        "Rows remapped after uncorrectable errors.",
    ),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", "counter", "PCIe replays."),
    # dcgm_fields.h of 4.6.0 has the new names already, with the old ones as aliases; these two have kept theirs.
    ("DCGM_FI_DEV_PCIE_LINK_WIDTH", "DCGM_FI_DEV_PCIE_LINK_WIDTH", "gauge", "Width of the PCIe link."),
    (
        "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
        "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH",
        "gauge",
        "Largest width of the PCIe link.",
    ),
    (
        "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
        "DCGM_FI_DEV_GPU_RECOVERY_ACTION",
        "gauge",
        "What the driver requests to recover the GPU.",
    ),
    # Of the exporter itself. The last Xid of the driver is never reset, so that an alert on it would not resolve.
    ("DCGM_EXP_XID_ERRORS_COUNT", "DCGM_EXP_XID_ERRORS_COUNT", "gauge", "Xid errors of the last minutes, by number."),
    ("DCGM_EXP_GPU_HEALTH_STATUS", "DCGM_EXP_GPU_HEALTH_STATUS", "gauge", "Result of DCGM's health watches."),
)


def parse_generation(version: str) -> tuple[int, int] | None:
    """Return the exporter's version as two numbers, of ``4.6.0-4.8.3`` or ``4.8.3``; None if it has another form."""
    found = re.fullmatch(r"(?:\d+\.\d+\.\d+-)?(\d+)\.(\d+)\.\d+(?:-[a-z0-9]+)*", version)
    return (int(found.group(1)), int(found.group(2))) if found else None


def list_fields(generation: tuple[int, int]) -> list[str]:
    """Return the lines of the collectors file for a generation."""
    position = 1 if generation >= RENAMED else 0
    return [", ".join((row[position], row[2], row[3])) for row in FIELDS if row[position]]


def find_problems(lines: list[str], generation: tuple[int, int]) -> list[str]:
    """Return a sentence for each of the user's *lines* that would stop the exporter or have another unit than its name."""
    problems = []
    for line in lines:
        found = LINE.match(line)
        name = found.group(1) if found else ""
        if found is None or found.group(2) not in KINDS:
            problems.append(
                f"{line!r} in gpu_exporter_collectors is not FIELD, {' or '.join(KINDS)}, help; correct it."
            )
        elif name in REMOVED:
            problems.append(
                f"DCGM 4 has removed {name}, and the exporter does not start with it; remove it from gpu_exporter_collectors."
            )
        elif generation < RENAMED and name.endswith(BASE_UNITS):
            problems.append(
                f"{name} in gpu_exporter_collectors has another unit than its name before dcgm-exporter 4.9; use the old name, or set "
                "gpu_exporter_version to a newer one."
            )
    return problems
