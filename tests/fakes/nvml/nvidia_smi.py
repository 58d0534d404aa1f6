#!/usr/bin/env python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""nvidia-smi (fake): resets GPUs of the simulated NVML, and nothing else. Runs on Python 3.8, alone."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from typing import Any

SUCCESS, IN_USE = 0, 19
#: Of nvidia-smi: a device was not found; any other error.
NOT_FOUND, OTHER = 6, 255
LIBRARY = "libnvidia-ml.so.1"


class Nvml:
    """The simulated library of ``NVML_LIBRARY``, a path, or else the loader's own."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(os.environ.get("NVML_LIBRARY", LIBRARY))
        self.library.nvmlErrorString.restype = ctypes.c_char_p
        self.check(self.library.nvmlInit_v2())

    def check(self, code: int) -> None:
        """Raises RuntimeError with NVML's text of an error."""
        if code != SUCCESS:
            raise RuntimeError(self.text(code))

    def text(self, code: int) -> str:
        """NVML's text of a code."""
        return str(self.library.nvmlErrorString(code).decode())

    def handles(self) -> list[ctypes.c_void_p]:
        """All GPUs by their index."""
        count = ctypes.c_uint()
        self.check(self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        found = []
        for index in range(count.value):
            handle = ctypes.c_void_p()
            self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
            found.append(handle)
        return found

    def find(self, name: str) -> ctypes.c_void_p | None:
        """The GPU with an index, UUID, serial number or PCI address."""
        if name.isdigit() and int(name) < len(self.handles()):
            return self.handles()[int(name)]
        handle = ctypes.c_void_p()
        for function in ("ByUUID", "BySerial", "ByPciBusId_v2"):
            call: Any = getattr(self.library, f"nvmlDeviceGetHandle{function}")
            if call(name.encode(), ctypes.byref(handle)) == SUCCESS:
                return handle
        return None

    def address(self, handle: ctypes.c_void_p) -> str:
        """The PCI address as nvidia-smi writes it, ``00000000:07:00.0``."""
        pci = ctypes.create_string_buffer(68)
        self.check(self.library.nvmlDeviceGetPciInfo_v3(handle, pci))
        return pci.raw[36:].split(b"\0")[0].decode()


def reset(nvml: Nvml, handles: list[ctypes.c_void_p]) -> int:
    """Resets the GPUs that are not in use, and names the others."""
    refused = []
    for handle in handles:
        code = nvml.library.fakeNvmlResetGpu(handle)
        if code == SUCCESS:
            print(f"GPU {nvml.address(handle)} was successfully reset.")
        else:
            refused.append(f"  GPU {nvml.address(handle)}: {nvml.text(code)}")
    if not refused:
        print("All done.")
        return 0
    print("The following GPUs could not be reset:", *refused, sep="\n")
    print(
        f"\n{len(refused)} device is currently being used by one or more other processes (e.g., Fabric Manager, CUDA"
        " application, graphics application such as an X server, or a monitoring application such as another instance of"
        " nvidia-smi). Please first kill all processes using this device and all compute applications running in the system."
    )
    return OTHER


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="nvidia-smi (fake)", description=__doc__, allow_abbrev=False)
    parser.add_argument("-r", "--gpu-reset", action="store_true", required=True)
    parser.add_argument("-i", "--id", help="indices, UUIDs, serial numbers or PCI addresses, with commas between them")
    options = parser.parse_args(arguments)
    try:
        nvml = Nvml()
        names = options.id.split(",") if options.id else []
        found = {name: nvml.find(name) for name in names}
        missing = [name for name, handle in found.items() if handle is None]
        if missing:
            print(f"No devices were found: {', '.join(missing)}")
            return NOT_FOUND
        chosen = [handle for handle in found.values() if handle is not None]
        return reset(nvml, chosen if names else nvml.handles())
    except (OSError, RuntimeError) as error:
        print(f"nvidia-smi (fake): {error}", file=sys.stderr)
        return OTHER


if __name__ == "__main__":
    sys.exit(main())
