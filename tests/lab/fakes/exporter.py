# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs the fake of nvidia_gpu_exporter as one program, and as an archive of a release, for the role gpu_exporter."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

PROGRAM = "nvidia_gpu_exporter"
_SOURCE = Path(__file__).parent / "gpu-exporter" / "fake_gpu_exporter.py"
# The collection's own reader of NVML, which needs the standard library alone.
_NVML = Path(__file__).parents[3] / "plugins" / "module_utils" / "_nvml"
_MODULES = ("__init__", "details", "device", "library", "model", "reader", "vgpu")
_MAIN = "from fake_gpu_exporter import main\n\nmain()\n"


def build_program(python: str = "/usr/bin/python3") -> bytes:
    """Return the program, which PYTHON runs. Equal for equal sources."""
    sources = {f"nvml/{name}.py": (_NVML / f"{name}.py").read_text() for name in _MODULES}
    sources |= {"fake_gpu_exporter.py": _SOURCE.read_text(), "__main__.py": _MAIN}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path in sorted(sources):
            # With a fixed date.
            archive.writestr(zipfile.ZipInfo(path), sources[path])
    return f"#!{python}\n".encode() + data.getvalue()


def write_archive(path: Path, python: str = "/usr/bin/python3") -> str:
    """Write the archive of a release to PATH, and return its SHA-256 checksum."""
    program = build_program(python)
    with tarfile.open(path, "w:gz") as archive:
        for name, content, mode in (("LICENSE", b"fake\n", 0o644), (PROGRAM, program, 0o755)):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()
