# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The compute mode of GPUs, by NVML: who may compute on them.

Each call runs in a process of its own, because a driver may hang.

Source of names and numbers: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Sequence

from . import isolation
from .library import SUCCESS, LibraryMissing, Nvml, NvmlError, load_library

DEFAULT = 0
EXCLUSIVE_PROCESS = 3
# A driver without nvidia-persistenced initializes all GPUs first.
TIMEOUT = 60.0


class ComputeModeError(Exception):
    """The driver did not answer; the message is a clause."""


def list_exclusive(library: str | None) -> list[int]:
    """Return the indices of the GPUs in the mode EXCLUSIVE_PROCESS; none without a driver, which would have the mode.

    Raises ComputeModeError.
    """
    return _isolate(lambda: _visit(library, _read_exclusive, None))


def reset(library: str | None, indices: Sequence[int]) -> list[str]:
    """Set the mode DEFAULT for the GPUs with these indices; return a clause for each that refuses. Raises ComputeModeError."""
    return _isolate(lambda: _visit(library, _set_default, indices))


def _isolate(function: Callable[[], list[Any]]) -> list[Any]:
    try:
        return list(isolation.call(function, TIMEOUT))
    except isolation.Hung:
        raise ComputeModeError(f"the driver does not answer within {TIMEOUT:g} s") from None
    except (isolation.Crashed, isolation.Failed) as error:
        raise ComputeModeError(f"the query of the driver {error}") from error


def _visit(
    library: str | None, function: Callable[[Nvml, int, ctypes.c_void_p], list[Any]], indices: Sequence[int] | None
) -> list[Any]:
    """Return what the function returns for each GPU, or each of *indices*, that NVML opens."""
    try:
        nvml = Nvml(load_library(library))
        nvml.start()
    except (LibraryMissing, NvmlError):
        return []
    try:
        _code, count = nvml.read_number(["nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"])
        found = []
        for index in range(count or 0):
            handle = ctypes.c_void_p()
            names = ["nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"]
            if indices is not None and index not in indices:
                continue
            if nvml.call(names, ctypes.c_uint(index), ctypes.byref(handle)) == SUCCESS:
                found += function(nvml, index, handle)
        return found
    finally:
        nvml.stop()


def _read_exclusive(nvml: Nvml, index: int, handle: ctypes.c_void_p) -> list[Any]:
    _code, mode = nvml.read_number(["nvmlDeviceGetComputeMode"], handle)
    return [index] if mode == EXCLUSIVE_PROCESS else []


def _set_default(nvml: Nvml, index: int, handle: ctypes.c_void_p) -> list[Any]:
    code = nvml.call(["nvmlDeviceSetComputeMode"], handle, ctypes.c_uint(DEFAULT))
    return [] if code == SUCCESS else [f"GPU {index}: {nvml.get_error_text(code)}"]
