# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the name of an image says of GPUs. Source: the tags that NVIDIA, PyTorch and TensorFlow publish."""

from __future__ import annotations

import re

#: Regular expressions of repositories whose images use GPUs.
_GPU_IMAGES = re.compile(
    r"(^|/)(nvidia/cuda|rocm/[^/]+|nvidia/(k8s/)?cuda-sample|nvidia/(pytorch|tensorflow|tritonserver|nemo)|vllm/vllm-openai)(:|@|$)|cuda[-_.]?\d|:.*\bcu1\d\d\b"
)
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
_MONTH = re.compile(r"(?:^|/)nvidia/(?:pytorch|tensorflow|tritonserver|jax):(\d\d\.\d\d)")


def uses_gpu(image: str) -> bool:
    """Return whether the image is known to use GPUs."""
    return bool(_GPU_IMAGES.search(image))


def find_cuda(image: str) -> tuple[int, int] | None:
    """Return the CUDA version of the image as (major, minor); None if its name does not tell."""
    for pattern in _VERSIONS:
        match = pattern.search(image)
        if match:
            return int(match.group(1)), int(match.group(2))
    month = _MONTH.search(image)
    return _MONTHS.get(month.group(1)) if month else None
