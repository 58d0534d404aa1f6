# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of gpushare's resources and annotations."""

from __future__ import annotations

GPU_MEM = "aliyun.com/gpu-mem"
GPU_COUNT = "aliyun.com/gpu-count"

# Annotations by the extender: the GPU, the pod's request, and whether the device plugin has assigned it.
INDEX = "ALIYUN_COM_GPU_MEM_IDX"
REQUEST = "ALIYUN_COM_GPU_MEM_POD"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
# Annotation by the scheduler plugin of Alibaba's own clusters: JSON of container, GPU and amount.
ALLOCATION = "scheduler.framework.gpushare.allocation"

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
