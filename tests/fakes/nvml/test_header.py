# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVML interface of the collection and of the simulation, compared with the header that NVIDIA publishes."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import details, device, library, mig, vgpu

# NVIDIA's Go bindings contain the header.
MODULE = "github.com/NVIDIA/go-nvml@v0.13.4-1"
CHECKSUM = "h1:2E7RdOLBxHGSXq8sUw+c5Y0aWmFT7Cj+ZdjYulgUH18="
COLLECTION = Path(details.__file__).parent
SIMULATION = Path(__file__).parent / "src"
#: A function, not a type, of either.
FUNCTION = r"nvml(?:Device|System|Init|Shutdown|GpuInstance|ComputeInstance|ErrorString|EventSet)\w*(?<!_t)"

#: The structures by their names in the header, with the names of their fields in order.
STRUCTURES: Mapping[str, tuple[type[ctypes.Structure], str]] = {
    "nvmlPciInfo_t": (library.PciInfo, "busIdLegacy domain bus device pciDeviceId pciSubSystemId busId"),
    "nvmlMemory_t": (library.Memory, "total free used"),
    "nvmlMemory_v2_t": (library.MemoryV2, "version total reserved free used"),
    "nvmlUtilization_t": (library.Utilization, "gpu memory"),
    "nvmlTemperature_v1_t": (library.Temperature, "version sensorType temperature"),
    "nvmlBAR1Memory_t": (details.Bar1, "bar1Total bar1Free bar1Used"),
    "nvmlGpuFabricInfo_t": (details.Fabric, "clusterUuid status cliqueId state"),
    "nvmlGpuFabricInfo_v2_t": (details.FabricV2, "version clusterUuid status cliqueId state healthMask"),
    "nvmlGpuInstanceProfileInfo_t": (
        device.Profile,
        (
            "id isP2pSupported sliceCount instanceCount multiprocessorCount copyEngineCount decoderCount encoderCount"
            " jpegCount ofaCount memorySizeMB"
        ),
    ),
    "nvmlGpuInstanceInfo_t": (device.Instance, "device id profileId placement.start placement.size"),
    "nvmlGridLicenseExpiry_t": (vgpu.Expiry, "year month day hour min sec status"),
    "nvmlGridLicensableFeature_t": (
        vgpu.Feature,
        "featureCode featureState licenseInfo productName featureEnabled licenseExpiry",
    ),
    "nvmlGridLicensableFeatures_t": (
        vgpu.Features,
        "isGridLicenseSupported licensableFeaturesCount gridLicensableFeatures",
    ),
    "nvmlProcessInfo_v2_t": (device.Process, "pid usedGpuMemory gpuInstanceId computeInstanceId"),
    "nvmlProcessInfo_v1_t": (device.ProcessV1, "pid usedGpuMemory"),
    "nvmlGpuInstanceProfileInfo_v2_t": (
        mig.ProfileV2,
        (
            "version id isP2pSupported sliceCount instanceCount multiprocessorCount copyEngineCount decoderCount encoderCount"
            " jpegCount ofaCount memorySizeMB name"
        ),
    ),
    "nvmlGpuInstancePlacement_t": (mig.PlacementInfo, "start size"),
    "nvmlComputeInstanceProfileInfo_t": (
        mig.ComputeProfile,
        (
            "id sliceCount instanceCount multiprocessorCount sharedCopyEngineCount sharedDecoderCount sharedEncoderCount"
            " sharedJpegCount sharedOfaCount"
        ),
    ),
    "nvmlComputeInstanceInfo_t": (mig.ComputeInfo, "device gpuInstance id profileId placement.start placement.size"),
}
#: Structures of the simulation's abi.h: the header's name, and the names of the fields there and here.
ENGINES = "copyEngineCount decoderCount encoderCount jpegCount ofaCount"
SHARED = " ".join(f"shared{name[0].upper()}{name[1:]}" for name in ENGINES.split())
COUNTS = "sliceCount instanceCount multiprocessorCount"
OWN_COUNTS = "slices instances multiprocessors copy_engines decoders encoders jpegs ofas"
SIMULATED = {
    "placement": ("nvmlGpuInstancePlacement_t", "start size", "start size"),
    "gpu_profile": (
        "nvmlGpuInstanceProfileInfo_t",
        f"id isP2pSupported {COUNTS} {ENGINES} memorySizeMB",
        f"id p2p {OWN_COUNTS} memory_mib",
    ),
    "gpu_profile_v2": (
        "nvmlGpuInstanceProfileInfo_v2_t",
        f"version id isP2pSupported {COUNTS} {ENGINES} memorySizeMB name",
        f"version id p2p {OWN_COUNTS} memory_mib name",
    ),
    "gpu_profile_v3": (
        "nvmlGpuInstanceProfileInfo_v3_t",
        f"version id {COUNTS} {ENGINES} memorySizeMB name capabilities",
        f"version id {OWN_COUNTS} memory_mib name capabilities",
    ),
    "compute_profile": ("nvmlComputeInstanceProfileInfo_t", f"id {COUNTS} {SHARED}", f"id {OWN_COUNTS}"),
    "compute_profile_v3": (
        "nvmlComputeInstanceProfileInfo_v3_t",
        f"version id {COUNTS} {SHARED} name capabilities",
        f"version id {OWN_COUNTS} name capabilities",
    ),
    "gpu_instance_info": (
        "nvmlGpuInstanceInfo_t",
        "device id profileId placement.start placement.size",
        "device id profile_id placement.start placement.size",
    ),
    "compute_instance_info": (
        "nvmlComputeInstanceInfo_t",
        "device gpuInstance id profileId placement.start placement.size",
        "device gpu_instance id profile_id placement.start placement.size",
    ),
    "license_feature": (
        "nvmlGridLicensableFeature_t",
        "featureCode featureState productName featureEnabled licenseExpiry.year licenseExpiry.sec licenseExpiry.status",
        "code licensed product enabled expiry.year expiry.second expiry.status",
    ),
    "license_features": (
        "nvmlGridLicensableFeatures_t",
        "isGridLicenseSupported licensableFeaturesCount gridLicensableFeatures",
        "supported count features",
    ),
    "attributes": (
        "nvmlDeviceAttributes_t",
        f"multiprocessorCount {SHARED} gpuInstanceSliceCount computeInstanceSliceCount memorySizeMB",
        "multiprocessors copy_engines decoders encoders jpegs ofas gpu_slices compute_slices memory_mib",
    ),
}
REASONS = {1 << bit: name for bit, name in enumerate(details.CLOCK_REASONS)}
#: Enumerations: {number: its name here}, and the pattern of the names in the header.
NUMBERS: Mapping[str, tuple[Mapping[int, str], str]] = {
    "brands": (details.BRANDS, "NVML_BRAND_{}"),
    "architectures": (details.ARCHITECTURES, "NVML_DEVICE_ARCH_{}"),
    "modes of virtualization": (details.VIRTUALIZATION, "NVML_GPU_VIRTUALIZATION_MODE_{}"),
    "compute modes": (details.COMPUTE_MODES, "NVML_COMPUTEMODE_{}"),
    "far ends of links": (details.REMOTE, "NVML_NVLINK_DEVICE_TYPE_{}"),
    "states of the fabric": (details.FABRIC_STATES, "NVML_GPU_FABRIC_STATE_{}"),
    "versions of links": (details.LINK_VERSIONS, "NVML_NVLINK_VERSION_{}"),
    "clocks": ({kind: name for name, kind in details.CLOCKS.items()}, "NVML_CLOCK_{}"),
}
#: Names that differ in the header.
OTHER_NAMES = {"NVML_CLOCK_MEMORY": "NVML_CLOCK_MEM"}
CODES = {
    "NVML_SUCCESS": library.SUCCESS,
    "NVML_ERROR_INSUFFICIENT_SIZE": library.INSUFFICIENT_SIZE,
    "NVML_ERROR_DRIVER_NOT_LOADED": library.DRIVER_NOT_LOADED,
    "NVML_ERROR_FUNCTION_NOT_FOUND": library.FUNCTION_NOT_FOUND,
    "NVML_ERROR_GPU_IS_LOST": library.GPU_IS_LOST,
    "NVML_ERROR_NOT_SUPPORTED": mig.NOT_SUPPORTED,
    "NVML_ERROR_NO_PERMISSION": library.NO_PERMISSION,
    "NVML_ERROR_IN_USE": mig.IN_USE,
    "NVML_ERROR_INSUFFICIENT_RESOURCES": mig.INSUFFICIENT_RESOURCES,
    "NVML_DEVICE_ARCH_AMPERE": mig.PENDING_ARCHITECTURE,
    "NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED": 0,
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": library.VERSION_MISMATCH,
    "NVML_NVLINK_MAX_LINKS": details.LINKS,
    "NVML_GRID_LICENSE_FEATURE_MAX_COUNT": vgpu.FEATURES,
    "NVML_GRID_LICENSE_BUFFER_SIZE": vgpu.TEXT_SIZE,
    "NVML_GRID_LICENSE_EXPIRY_VALID": vgpu.EXPIRY_VALID,
    # Values that `details` has as positions in a list, and `binding` as numbers.
    "NVML_MEMORY_ERROR_TYPE_CORRECTED": 0,
    "NVML_MEMORY_ERROR_TYPE_UNCORRECTED": 1,
    "NVML_VOLATILE_ECC": 0,
    "NVML_AGGREGATE_ECC": 1,
    "NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS": 0,
    "NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR": 1,
    "NVML_TEMPERATURE_GPU": 0,
}


@pytest.fixture(scope="module")
def header() -> Path:
    """The header, as Go's module proxy has it, with its checksum."""
    done = subprocess.run(["go", "mod", "download", "-json", MODULE], check=True, capture_output=True, text=True)
    module = json.loads(done.stdout)
    assert module["Sum"] == CHECKSUM
    return Path(module["Dir"]) / "pkg" / "nvml" / "nvml.h"


def evaluate(header: Path, folder: Path, expressions: Iterator[str]) -> dict[str, int]:
    """The values of C expressions, compiled with the header."""
    unique = sorted(set(expressions))
    lines = [f'printf("%lld\\n", (long long)({expression}));' for expression in unique]
    source = folder / "ask.c"
    include = f'#include <stdio.h>\n#include <stddef.h>\n#include "{header}"\n'
    source.write_text(f"{include}int main(void) {{\n{chr(10).join(lines)}\nreturn 0;\n}}\n")
    program = folder / "ask"
    subprocess.run(["gcc", "-w", "-o", str(program), str(source)], check=True, capture_output=True)
    reported = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    return dict(zip(unique, map(int, reported), strict=True))


@pytest.mark.parametrize("name", STRUCTURES)
def test_layout(header: Path, tmp_path: Path, name: str) -> None:
    structure, fields = STRUCTURES[name]
    offsets = [f"offsetof({name}, {field})" for field in fields.split()]
    reported = evaluate(header, tmp_path, iter([f"sizeof({name})", *offsets]))
    assert ctypes.sizeof(structure) == reported[f"sizeof({name})"]
    assert [getattr(structure, field).offset for field, *_type in structure._fields_] == [
        reported[offset] for offset in offsets
    ]


@pytest.mark.parametrize("kind", NUMBERS)
def test_names_of_numbers(header: Path, tmp_path: Path, kind: str) -> None:
    names, pattern = NUMBERS[kind]
    header_names = {number: pattern.format(name.upper().replace(".", "_")) for number, name in names.items()}
    header_names = {number: OTHER_NAMES.get(name, name) for number, name in header_names.items()}
    reported = evaluate(header, tmp_path, iter(header_names.values()))
    assert {number: reported[name] for number, name in header_names.items()} == {
        number: number for number in header_names
    }


def test_codes(header: Path, tmp_path: Path) -> None:
    assert evaluate(header, tmp_path, iter(CODES)) == CODES


def test_reasons_of_clocks(header: Path, tmp_path: Path) -> None:
    header_names = {}
    for number, name in REASONS.items():
        word = "".join(part.title() for part in name.split("_"))
        # Reasons of the hardware have their former name.
        header_names[f"nvmlClocks{'Throttle' if name.startswith('hw') else 'Event'}Reason{word}"] = number
    assert evaluate(header, tmp_path, iter(header_names)) == header_names


@pytest.mark.parametrize("name", SIMULATED)
def test_layout_of_simulation(header: Path, tmp_path: Path, name: str) -> None:
    type_name, fields, own_fields = SIMULATED[name]
    published = [f"sizeof({type_name})", *(f"offsetof({type_name}, {field})" for field in fields.split())]
    simulated = [f"sizeof(struct {name})", *(f"offsetof(struct {name}, {field})" for field in own_fields.split())]
    expected = evaluate(header, tmp_path, iter(published))
    found = evaluate(SIMULATION / "abi.h", tmp_path, iter(simulated))
    assert [found[each] for each in simulated] == [expected[each] for each in published]


def test_codes_of_simulation(header: Path, tmp_path: Path) -> None:
    codes = set(re.findall(r"\b(NVML_(?:SUCCESS|ERROR_\w+)) = ", (SIMULATION / "abi.h").read_text()))
    assert "NVML_ERROR_IN_USE" in codes
    assert evaluate(SIMULATION / "abi.h", tmp_path, iter(codes)) == evaluate(header, tmp_path, iter(codes))


@pytest.mark.parametrize("place", [COLLECTION, SIMULATION], ids=["collection", "simulation"])
def test_functions(header: Path, place: Path) -> None:
    """Each function that is called or simulated is declared in the header."""
    written = "\n".join(path.read_text() for path in sorted(place.glob("*.[cp]*")) if path.is_file())
    names = set(re.findall(rf"\b{FUNCTION}(?=[\"(,)])", written))
    # A prefix of function names that are composed.
    names -= {"nvmlDeviceGet"}
    declared = set(re.findall(r"\bnvml\w+(?=\s*\()", header.read_text()))
    assert len(names) > 20
    assert names - declared == set()


def test_parameters_of_simulation(header: Path) -> None:
    """Each function that is written out has as many parameters as the header's."""
    written = "\n".join(path.read_text() for path in sorted(SIMULATION.glob("*.c")))
    found = dict(re.findall(rf"EXPORT nvmlReturn_t ({FUNCTION})\(([^)]*)\)", written))
    published = dict(re.findall(r"DECLDIR (nvml\w+)\(([^)]*)\)", header.read_text()))
    assert "nvmlGpuInstanceDestroy" in found
    counts = {name: len(parameters.split(",")) for name, parameters in found.items()}
    assert counts == {name: len(published[name].split(",")) for name in found}
