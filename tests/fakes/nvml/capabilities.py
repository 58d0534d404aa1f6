#!/usr/bin/env python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what /proc/driver shows of the MIG partitions of a simulated NVML library, and prints their device nodes."""

from __future__ import annotations

import argparse
import ctypes
import pathlib
import sys

MINORS = pathlib.Path("driver/nvidia-caps/mig-minors")


def write(library: str, root: str) -> None:
    """Brings the tree below ``root``, which takes the place of /proc, in line with the state.

    Raises RuntimeError if the library does not start, or the tree or the lock of the state cannot be written.
    """
    nvml = ctypes.CDLL(library)
    code = nvml.nvmlInit_v2() or nvml.fakeNvmlWriteCapabilities(root.encode())
    if code:
        raise RuntimeError(f"{library} returned {code} for {root}")


def device_lines(root: pathlib.Path, major: int) -> list[str]:
    """A line of tmpfiles.d for the device of each partition that a GPU of the node could have."""
    minors = [line.split()[1] for line in (root / MINORS).read_text(encoding="ascii").splitlines()]
    return [f"c /dev/nvidia-caps/nvidia-cap{minor} 0444 root root - {major}:{minor}" for minor in minors]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", help="path of a composed library")
    parser.add_argument("root", type=pathlib.Path, help="takes the place of /proc")
    parser.add_argument("--devices", type=int, metavar="MAJOR", help="print lines of tmpfiles.d for the devices")
    options = parser.parse_args(arguments)
    write(options.library, str(options.root))
    if options.devices:
        print(*device_lines(options.root, options.devices), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
