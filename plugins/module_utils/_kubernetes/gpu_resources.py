# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPU resources of a node, of all device plugins."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Callable, Sequence

from .drain.plan import GPU_RESOURCES
from .objects import Object, get_allocatable, get_capacity
from .requests import count_allocated, list_resources


def count_gpu_resources(node: Object, pods: Sequence[Object]) -> dict[str, dict[str, int]]:
    """Return units by resource: ``gpu_resources`` has the allocatable, ``gpu_capacity`` the existing, ``gpu_allocated`` the allocated ones."""
    status = node.get("status") or {}
    # Pods may hold a resource that the node no longer reports.
    known = {*(status.get("allocatable") or {}), *(status.get("capacity") or {})}.union(*map(list_resources, pods))
    names = sorted(name for name in known if any(fnmatchcase(name, pattern) for pattern in GPU_RESOURCES))

    def each(amount: Callable[[str], int]) -> dict[str, int]:
        return {name: amount(name) for name in names}

    return {
        "gpu_resources": each(lambda name: get_allocatable(node, name)),
        "gpu_capacity": each(lambda name: get_capacity(node, name)),
        "gpu_allocated": each(lambda name: count_allocated(pods, name)),
    }
