# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each value is NVML's answer to its own arguments.

The simulation gives one answer to many arguments, so this library has another number for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import details, library, reader

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

MIB = 1024 * 1024
SOURCE = """
typedef unsigned long long wide;
#define ONE(function, number) int function(void *gpu, unsigned *a) { *a = number; return 0; }
#define TWO(function, first, second) \\
    int function(void *gpu, unsigned *a, unsigned *b) { *a = first; *b = second; return 0; }
#define KEYED(function, answer) int function(void *gpu, int key, unsigned *a) { *a = answer; return 0; }

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **gpu) { *gpu = gpu; return 0; }

KEYED(nvmlDeviceGetTemperature, 40 + key)
TWO(nvmlDeviceGetMigMode, 0, 1)

ONE(nvmlDeviceGetBrand, 5)
ONE(nvmlDeviceGetArchitecture, 7)
ONE(nvmlDeviceGetPersistenceMode, 0)
ONE(nvmlDeviceGetComputeMode, 2)
ONE(nvmlDeviceGetVirtualizationMode, 3)
int nvmlDeviceGetBAR1MemoryInfo(void *gpu, wide *bytes)
{ bytes[0] = 256 << 20; bytes[1] = 254 << 20; bytes[2] = 2 << 20; return 0; }

struct feature { int code; unsigned licensed; char a[128], product[128]; unsigned enabled, year; unsigned short rest[5]; unsigned char status; };
int nvmlDeviceGetGridLicensableFeatures_v4(void *gpu, struct { int supported; unsigned count; struct feature features[3]; } *all)
{
    struct feature second = {4, 1, "", "vCS", 1, 2027, {2, 3, 4, 5, 6}, 2};
    all->supported = 1; all->count = 2; all->features[0].licensed = 0; all->features[1] = second;
    return 0;
}

TWO(nvmlDeviceGetEccMode, 1, 0)
int nvmlDeviceGetTotalEccErrors(void *gpu, int error, int counter, wide *count)
{ *count = 5000000000ull + 10 * error + counter + 1; return 0; }
int nvmlDeviceGetRetiredPages(void *gpu, int cause, unsigned *count, wide *pages)
{ int code = *count == 0 && pages == 0 ? 7 : 2; *count = 30 + cause; return code; }
ONE(nvmlDeviceGetRetiredPagesPendingStatus, 1)
int nvmlDeviceGetRemappedRows(void *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed)
{ *corrected = 4; *uncorrected = 6; *pending = 0; *failed = 1; return 0; }
struct field { unsigned id, scope; long long timestamp, latency; int kind, code; union { double d; unsigned number; wide most; } value; };
int nvmlDeviceGetFieldValues(void *gpu, int count, struct field *fields)
{
    fields[0].code = count == 1 && fields[0].id == 230 && fields[0].scope == 0 ? 0 : 3;
    fields[0].value.number = 4;
    return 0;
}

ONE(nvmlDeviceGetPowerManagementLimit, 250500)
ONE(nvmlDeviceGetEnforcedPowerLimit, 240000)
ONE(nvmlDeviceGetPowerManagementDefaultLimit, 300000)
TWO(nvmlDeviceGetPowerManagementLimitConstraints, 100000, 350000)

KEYED(nvmlDeviceGetClockInfo, 1000 + 100 * key)
KEYED(nvmlDeviceGetMaxClockInfo, 2000 + 100 * key)
int nvmlDeviceGetCurrentClocksEventReasons(void *gpu, wide *reasons) { *reasons = 0x44; return 0; }

ONE(nvmlDeviceGetCurrPcieLinkGeneration, 4)
ONE(nvmlDeviceGetMaxPcieLinkGeneration, 6)
ONE(nvmlDeviceGetCurrPcieLinkWidth, 8)
ONE(nvmlDeviceGetMaxPcieLinkWidth, 16)
ONE(nvmlDeviceGetPcieReplayCounter, 77)
"""
# By the numbers of nvml.h: nvmlMemoryErrorType_t has corrected 0 and uncorrected 1; nvmlEccCounterType_t volatile 0 and
# aggregate 1; nvmlPageRetirementCause_t single bit 0 and double bit 1; nvmlClockType_t graphics 0, sm 1, memory 2, video 3.
EXPECTED: dict[str, dict[str, Any]] = {
    "hardware": {
        "brand": "geforce",
        "architecture": "ampere",
        "serial": None,
        "board_part_number": None,
        "vbios_version": None,
        "persistence_mode": "disabled",
        "compute_mode": "prohibited",
        "virtualization_mode": "host_vgpu",
        "vgpu_license": {"product": "vCS", "licensed": True, "expires": "2027-02-03T04:05:06Z"},
        "bar1": {"total_bytes": 256 * MIB, "used_bytes": 2 * MIB, "free_bytes": 254 * MIB},
        "gpu_instances": [],
    },
    "health": {
        "ecc": {
            "mode": "enabled",
            "mode_pending": "disabled",
            "corrected_volatile": 5000000001,
            "corrected_aggregate": 5000000002,
            "uncorrected_volatile": 5000000011,
            "uncorrected_aggregate": 5000000012,
        },
        "retired_pages": {"single_bit": 30, "double_bit": 31, "pending": True},
        "row_remapping": {"corrected": 4, "uncorrected": 6, "pending": False, "failed": True},
        "recovery_action": "drain_and_reset",
        "fabric": None,
    },
    "power": {
        "power": {
            "limit_watts": 250.5,
            "limit_enforced_watts": 240.0,
            "limit_default_watts": 300.0,
            "limit_min_watts": 100.0,
            "limit_max_watts": 350.0,
        }
    },
    "clocks": {
        "clocks": {
            "graphics_mhz": 1000,
            "graphics_max_mhz": 2000,
            "sm_mhz": 1100,
            "sm_max_mhz": 2100,
            "memory_mhz": 1200,
            "memory_max_mhz": 2200,
            "video_mhz": 1300,
            "video_max_mhz": 2300,
            "event_reasons": ["sw_power_cap", "hw_thermal_slowdown"],
        }
    },
    "pcie": {"pcie": {"generation": 4, "generation_max": 6, "width": 8, "width_max": 16, "replays": 77}},
}


@pytest.fixture(scope="module")
def gpu(nvml_builder: NvmlBuilder) -> dict[str, Any]:
    path = nvml_builder.library_from_c("arguments", SOURCE)
    (found,) = reader.read_gpus(library.Nvml(library.load_library(path)), tuple(EXPECTED)).gpus
    return found.as_dict()


@pytest.mark.parametrize("topic", EXPECTED)
def test_read_topic_with_each_argument_returns_its_value(gpu: dict[str, Any], topic: str) -> None:
    assert {key: gpu[key] for key in details.KEYS[topic]} == EXPECTED[topic]


def test_read_gpus_with_mig_arguments_returns_their_values(gpu: dict[str, Any]) -> None:
    assert (gpu["mig_mode"], gpu["mig_mode_pending"], gpu["mig_devices"]) == ("disabled", "enabled", [])
    assert gpu["temperature_celsius"] == 40, "of sensor 0, the GPU's own"
