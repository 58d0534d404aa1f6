# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulation returns what its profiles contain, in every process and from every place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import library, reader

if TYPE_CHECKING:
    from fakes.nvml.simulated import NvmlBuilder

    from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.model import Facts

PROFILES = Path(__file__).resolve().parents[4] / "fakes" / "nvml" / "profiles"
SOUND = sorted(path.stem for path in PROFILES.glob("*.profile") if path.stem not in ("hang", "crash", "lost-gpu"))


def read(path: str) -> Facts:
    return reader.read_gpus(library.Nvml(library.load_library(path)))


def uuids(path: str) -> list[str]:
    return [gpu.uuid or "" for gpu in read(path).gpus]


@pytest.mark.parametrize("name", SOUND)
def test_profile_readers_of_c_and_python_agree(nvml_builder: NvmlBuilder, name: str) -> None:
    from fakes.nvml import nvml_profile

    expected = [
        (gpu.index, gpu.minor, gpu.address, gpu.name, gpu.memory_mib * 1024 * 1024, len(gpu.mig_devices))
        for gpu in nvml_profile.read(PROFILES / f"{name}.profile")
    ]
    try:
        found = read(nvml_builder.library(name)).gpus
    except library.NvmlError:
        assert name in ("no-driver", "version-mismatch")
        return
    assert [
        (gpu.index, gpu.minor_number, gpu.pci_address, gpu.name, gpu.memory_total_bytes, len(gpu.mig_devices))
        for gpu in found
    ] == expected


def test_identity_depends_on_seed_and_address(nvml_builder: NvmlBuilder) -> None:
    one, two = nvml_builder.library("a100-40g", seed="node-1"), nvml_builder.library("a100-40g", seed="node-2")
    assert not set(uuids(one)) & set(uuids(two))
    again = nvml_builder.folder / "elsewhere.so"
    again.write_bytes(Path(one).read_bytes())
    assert uuids(str(again)) == uuids(one)


def test_library_without_profile_has_no_driver(nvml_builder: NvmlBuilder) -> None:
    with pytest.raises(library.NvmlError, match="Driver Not Loaded"):
        read(str(nvml_builder.bare))


def in_a_process(path: str, code: str, **environment: str) -> str:
    """The output of a fresh Python that has the library as ``nvml``."""
    command = f"import ctypes, os\nnvml = ctypes.CDLL({path!r})\n{code}"
    environ = {**{key: value for key, value in os.environ.items() if key != "NVML_PROFILE"}, **environment}
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, env=environ, check=True)
    return done.stdout + done.stderr


COUNT = (
    "count = ctypes.c_uint()\nprint(nvml.nvmlInit_v2(), nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)), count.value)"
)


def test_environment_overrides_profile_file(nvml_builder: NvmlBuilder) -> None:
    path = nvml_builder.library("a100-40g")
    assert in_a_process(path, COUNT).split() == ["0", "0", "8"]
    assert in_a_process(path, COUNT, NVML_PROFILE=str(PROFILES / "t4.profile")).split() == ["0", "0", "1"]
    assert in_a_process(path, COUNT, NVML_PROFILE="/nonexistent").split() == ["9", "1", "0"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("driver_version 1\n", "line 1"),
        ("\n[gpu]\nmemory_mib = much\n", "line 3"),
        ("[gpu]\ncolour = red\n", "line 2"),
        ("cuda_version = twelve\n", "line 1"),
        ("init_result = bad\n", "line 1"),
    ],
)
def test_broken_profile_is_named(nvml_builder: NvmlBuilder, text: str, line: str) -> None:
    output = in_a_process(nvml_builder.library_of("broken-profile", text), COUNT)
    assert "999 1 0" in output
    assert f"{line} is not understood" in output
