# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the name of an image and its environment say of GPUs. Source: the tags that the vendors, PyTorch and TensorFlow publish."""

from __future__ import annotations

import re
from typing import Mapping

from .._vendors import AMD, INTEL, SERVED, Vendor

#: Regular expressions of images that use GPUs, by vendor.
_GPU_IMAGES = {
    AMD: re.compile(r"(^|/)rocm/[^/]+(:|@|$)"),
    INTEL: re.compile(r"(^|/)intel/intel-opencl-icd(:|@|$)"),
    SERVED: re.compile(
        r"(^|/)(nvidia/cuda|nvidia/(k8s/)?cuda-sample|nvidia/(pytorch|tensorflow|tritonserver|nemo)|vllm/vllm-openai)(:|@|$)"
        r"|cuda[-_.]?\d|:.*\bcu1\d\d\b"
    ),
}
# The first number that fits, in this order.
_VERSIONS = (
    re.compile(r"(?:^|/)nvidia/cuda:(\d+)\.(\d+)"),
    re.compile(r"cuda[-_]?(\d+)\.(\d+)"),
    re.compile(r"[:.\-_+]cu(\d\d)(\d)(?!\d)"),
)
#: NVIDIA's monthly images (nvcr.io/nvidia/NAME:YY.MM) -> CUDA. Source: NVIDIA's Frameworks Support Matrix.
_MONTHS = {
    "23.10": (12, 2),
    "24.01": (12, 3),
    "24.04": (12, 4),
    "24.07": (12, 5),
    "24.10": (12, 6),
    "25.01": (12, 8),
    "25.04": (12, 9),
    "25.09": (13, 0),
}
_REQUIRED = re.compile(r"(?:^|,)cuda>=(\d+)\.(\d+)")
_MONTH = re.compile(r"(?:^|/)nvidia/(?:pytorch|tensorflow|tritonserver|jax):(\d\d\.\d\d)")


def find_vendor(image: str) -> Vendor | None:
    """Return the vendor whose GPUs the image is known to use; None for an image that is not known to use any."""
    return next((vendor for vendor, pattern in _GPU_IMAGES.items() if pattern.search(image)), None)


def find_cuda(image: str) -> tuple[int, int] | None:
    """Return the CUDA version of the image as (major, minor); None if its name does not tell."""
    for pattern in _VERSIONS:
        match = pattern.search(image)
        if match:
            return int(match.group(1)), int(match.group(2))
    month = _MONTH.search(image)
    return _MONTHS.get(month.group(1)) if month else None


def find_required_cuda(variables: Mapping[str, str]) -> tuple[int, int] | None:
    """Return the CUDA version (major, minor) without which NVIDIA's container runtime does not start a container with these variables, or None.

    NVIDIA_REQUIRE_CUDA has alternatives between blanks, each of conditions between commas.
    Source: NVIDIA Container Toolkit, environment variables.
    """
    if variables.get("NVIDIA_DISABLE_REQUIRE") in ("1", "true"):
        return None
    found = [_REQUIRED.search(each) for each in variables.get("NVIDIA_REQUIRE_CUDA", "").split()]
    versions = [(int(match.group(1)), int(match.group(2))) for match in found if match]
    return min(versions) if versions and len(versions) == len(found) else None
