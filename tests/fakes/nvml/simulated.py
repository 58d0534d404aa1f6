# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the simulated NVML library and PCI trees, for tests. Runs on Python 3.8."""

from __future__ import annotations

import pathlib
import subprocess
from collections.abc import Sequence

from fakes.nvml import compose, nvml_profile, pci_tree

SOURCES = pathlib.Path(__file__).resolve().parent
SONAME = "libnvidia-ml.so.1"


class NvmlBuilder:
    """Builds libraries and PCI trees in a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        # Built once for all: ansible-test runs each test in its own process, in which no fixture outlives the test.
        self.bare = SOURCES / "build" / SONAME
        self._run(["make", "-C", str(SOURCES)])

    @staticmethod
    def _run(command: Sequence[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def _place(self, name: str) -> pathlib.Path:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        return place / SONAME

    def library(self, profile: str, seed: str = "") -> str:
        """A library with the profile of this name; its UUIDs depend on ``seed``."""
        out = self._place(f"{profile}-{seed}")
        if out.exists():
            return str(out)
        arguments = [str(self.bare), profile, str(out)]
        compose.main([*arguments, "--seed", seed] if seed else arguments)
        return str(out)

    def library_of(self, name: str, text: str) -> str:
        """A library with a profile of this text."""
        out = self._place(name)
        compose.write(out, compose.compose(self.bare.read_bytes(), text))
        return str(out)

    def older_library(self, name: str, profile: str, missing: Sequence[str]) -> str:
        """A library without the functions ``missing``, as of an older driver."""
        out = self._place(name)
        script = out.with_name("symbols")
        script.write_text("{ local: " + "".join(f"{symbol}; " for symbol in missing) + "};\n", encoding="ascii")
        link = f"LDFLAGS=-Wl,--version-script={script}"
        self._run(["make", "-C", str(SOURCES), f"OUT={out.parent}", link, "CFLAGS=-O0"])  # each test builds its library
        compose.main([str(out), profile, str(out)])
        return str(out)

    def library_from_c(self, name: str, source: str) -> str:
        """A library compiled from this C source."""
        out = self._place(name)
        file = out.with_name("library.c")
        file.write_text(source, encoding="ascii")
        self._run(["gcc", "-shared", "-fPIC", "-o", str(out), str(file)])
        return str(out)

    def pci(self, profile: str) -> str:
        """A folder like /sys/bus/pci/devices with the profile's GPUs."""
        folder = self.folder / f"pci-{profile}"
        pci_tree.build(nvml_profile.profile_path(profile), folder)
        return str(folder)
