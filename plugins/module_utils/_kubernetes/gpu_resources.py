# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a node has of GPUs, by whatever names its device plugins offer them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Callable, Sequence

from .maintenance import GPU_RESOURCES
from .objects import Object, allocatable_of, capacity_of
from .requests import count_allocated, list_resources


def amounts(node: Object, pods: Sequence[Object]) -> dict[str, dict[str, int]]:
    """Units by resource: ``gpu_resources`` has what the node offers, ``gpu_capacity`` what it has, ``gpu_allocated`` what its pods hold."""
    status = node.get("status") or {}
    # Also those that pods hold and the node does not report any more.
    known = {*(status.get("allocatable") or {}), *(status.get("capacity") or {})}.union(*map(list_resources, pods))
    names = sorted(name for name in known if any(fnmatchcase(name, pattern) for pattern in GPU_RESOURCES))

    def each(amount: Callable[[str], int]) -> dict[str, int]:
        return {name: amount(name) for name in names}

    return {
        "gpu_resources": each(lambda name: allocatable_of(node, name)),
        "gpu_capacity": each(lambda name: capacity_of(node, name)),
        "gpu_allocated": each(lambda name: count_allocated(pods, name)),
    }
