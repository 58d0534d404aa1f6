# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of exporters: how each is deployed, and how one that others have deployed is recognized.

Versions are those of monitoring guides of 2026-11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ARCHIVE, PACKAGE, DAEMON_SET = "archive", "package", "daemonset"


@dataclass(frozen=True)
class Exporter:
    """One exporter of GPU metrics."""

    name: str
    title: str
    #: The name of its GPUs' vendor in the catalogue of vendors. Two exporters of one vendor are not deployed on a host.
    vendor: str
    port: int
    #: Regular expression of its images, in any case.
    images: str
    #: The name of its program, and of its systemd unit without the suffix.
    programs: tuple[str, ...]
    methods: tuple[str, ...]
    version: str
    #: Registry and repository of its image, and the tag; {version} stands for the version.
    registry: str
    repository: str
    tag: str
    #: Whether it can serve TLS, and require passwords.
    secure: bool = True
    #: The released archive; {architecture} stands for the value of ARCHITECTURES.
    archive: str = ""
    #: Where the checksums of a release are.
    checksums: str = ""
    package: str = ""


_RELEASES = "https://github.com/utkuozdemir/nvidia_gpu_exporter/releases/download/v{version}"
#: ansible_facts['architecture'] -> the word in the name of an archive.
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64"}

NVIDIA_GPU_EXPORTER = Exporter(
    "nvidia_gpu_exporter",
    "nvidia_gpu_exporter",
    "nvidia",
    9835,
    r"nvidia[_-]gpu[_-]exporter",
    ("nvidia_gpu_exporter",),
    methods=(ARCHIVE, PACKAGE, DAEMON_SET),
    # Since 2.0.0, NVML is read by all builds; before, by those with -nvml in their name.
    version="2.0.0",
    registry="docker.io",
    repository="utkuozdemir/nvidia_gpu_exporter",
    tag="{version}",
    archive=_RELEASES + "/nvidia_gpu_exporter_{version}_linux_{architecture}.tar.gz",
    checksums=_RELEASES + "/checksums.txt",
    package="nvidia-gpu-exporter",
)
DCGM_EXPORTER = Exporter(
    "dcgm_exporter",
    "dcgm-exporter",
    "nvidia",
    9400,
    r"dcgm-exporter",
    ("dcgm-exporter", "nvidia-dcgm-exporter", "prometheus-dcgm-exporter"),
    methods=(DAEMON_SET,),
    # DCGM's version and the exporter's own.
    version="4.6.0-4.8.3",
    registry="nvcr.io",
    repository="nvidia/k8s/dcgm-exporter",
    tag="{version}-distroless",
)
EXPORTERS: tuple[Exporter, ...] = (
    NVIDIA_GPU_EXPORTER,
    DCGM_EXPORTER,
    Exporter(
        "amd_device_metrics_exporter",
        "AMD's device-metrics-exporter",
        "amd",
        5000,
        r"device-metrics-exporter|amd-metrics-exporter",
        ("amd-metrics-exporter",),
        methods=(DAEMON_SET,),
        version="1.5.1",
        registry="docker.io",
        repository="rocm/device-metrics-exporter",
        tag="v{version}",
        secure=False,
    ),
    Exporter(
        "intel_xpumd",
        "Intel's xpumd",
        "intel",
        8080,
        r"\bxpumd\b|xpumanager",
        ("xpumd",),
        methods=(DAEMON_SET,),
        version="2.0.0",
        registry="ghcr.io",
        repository="intel/xpumanager/xpumd",
        tag="v{version}",
        secure=False,
    ),
)


def get_exporter(name: str) -> Exporter:
    """Return the row of that name. Raises KeyError for another name."""
    return {row.name: row for row in EXPORTERS}[name]


def find_by_image(image: str) -> Exporter | None:
    """Return the exporter whose images have such a name; None if it is none."""
    return next((row for row in EXPORTERS if re.search(row.images, image, re.IGNORECASE)), None)


def find_by_program(names: tuple[str, ...]) -> Exporter | None:
    """Return the exporter with one of the *names* as its program or unit; None if it is none."""
    return next((row for row in EXPORTERS if set(row.programs) & set(names)), None)
