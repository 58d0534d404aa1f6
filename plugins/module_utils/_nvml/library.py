# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds libnvidia-ml and calls it, of any version.

Source of names and layouts: the interface that NVIDIA publishes as ``nvml.h``.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Sequence

SONAME = "libnvidia-ml.so.1"
# Folders of drivers that the dynamic loader does not search: containers, GKE, Talos, WSL.
FOLDERS: tuple[str, ...] = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/wsl/lib",
    "/home/kubernetes/bin/nvidia/lib64",
    "/usr/local/glibc/usr/lib",
    "/run/nvidia/driver/usr/lib/x86_64-linux-gnu",
    "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
    "/run/nvidia/driver/usr/lib64",
)

SUCCESS = 0
NO_PERMISSION = 4
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
VERSION_MISMATCH = 18
TEXT_LENGTH = 96


class LibraryMissing(Exception):
    """No libnvidia-ml could be loaded; the message says which one, or why it was rejected."""


class NvmlError(Exception):
    """NVML did not start: ``code`` is its return code, ``library_version`` its version if known."""

    def __init__(self, code: int, text: str, library_version: str | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.library_version = library_version


class PciInfo(ctypes.Structure):
    """nvmlPciInfo_t, revision 3; older revisions fill its beginning."""

    _fields_ = [
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("device_id", ctypes.c_uint),
        ("subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    ]


class Memory(ctypes.Structure):
    """nvmlMemory_t, bytes; ``used`` includes what the driver reserves."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class MemoryV2(ctypes.Structure):
    """nvmlMemory_v2_t, bytes; ``used`` is without what the driver reserves."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


class Utilization(ctypes.Structure):
    """nvmlUtilization_t, per cent of the last sample period."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Temperature(ctypes.Structure):
    """nvmlTemperature_v1_t, degrees Celsius."""

    _fields_ = [("version", ctypes.c_uint), ("sensor", ctypes.c_uint), ("degrees", ctypes.c_int)]


def make_versioned(structure: Any, revision: int) -> Any:
    """A structure with its size and revision in its first field, as NVML requires of newer ones."""
    return structure(version=ctypes.sizeof(structure) | revision << 24)


def load_library(path: str | None, folders: Sequence[str] = FOLDERS) -> ctypes.CDLL:
    """The library at ``path``, else the loader's own, else the first in ``folders``.

    Raises LibraryMissing.
    """
    candidates = [path] if path else [SONAME, *(os.path.join(folder, SONAME) for folder in folders)]
    reason = ""
    for candidate in candidates:
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            if os.path.exists(candidate):
                reason = f" ({error})"
    raise LibraryMissing(f"{path or SONAME} cannot be loaded{reason}")


class Nvml:
    """A loaded libnvidia-ml. Functions that it lacks return FUNCTION_NOT_FOUND, as NVML's own dispatch does."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, names: Sequence[str], *arguments: Any) -> int:
        """Calls the first of ``names`` that the library has; returns NVML's code."""
        for name in names:
            function = getattr(self._library, name, None)
            if function is not None:
                return int(function(*arguments))
        return FUNCTION_NOT_FOUND

    def get_error_text(self, code: int) -> str:
        """NVML's message for a code."""
        function = getattr(self._library, "nvmlErrorString", None)
        if function is None:
            return f"NVML error {code}"
        function.restype = ctypes.c_char_p
        return bytes(function(code) or b"").decode("ascii", "replace") or f"NVML error {code}"

    def read_text(self, name: str, *handle: Any) -> tuple[int, str | None]:
        """(code, text) of a function that fills a buffer."""
        buffer = ctypes.create_string_buffer(TEXT_LENGTH)
        code = self.call([name], *handle, buffer, ctypes.c_uint(TEXT_LENGTH))
        return code, buffer.value.decode("utf-8", "replace") if code == SUCCESS else None

    def read_number(self, names: Sequence[str], *arguments: Any) -> tuple[int, int | None]:
        """(code, value) of a function whose last parameter is an unsigned int to fill."""
        value = ctypes.c_uint()
        code = self.call(names, *arguments, ctypes.byref(value))
        return code, value.value if code == SUCCESS else None

    def start(self) -> None:
        """Initialises NVML. Raises NvmlError with NVML's reason."""
        code = self.call(["nvmlInit_v2", "nvmlInit"])
        if code != SUCCESS:
            raise NvmlError(code, self.get_error_text(code), self.read_text("nvmlSystemGetNVMLVersion")[1])

    def stop(self) -> None:
        """Ends NVML."""
        self.call(["nvmlShutdown"])
