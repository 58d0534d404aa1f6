# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All that a node has of GPUs, by whatever names its device plugins offer them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Callable, Iterator, Sequence

from .maintenance import GPU_RESOURCES
from .objects import Object, allocatable_of, allocated_on, capacity_of


def amounts(node: Object, pods: Sequence[Object]) -> dict[str, dict[str, int]]:
    """Units by resource: ``gpu_resources`` has what the node offers, ``gpu_capacity`` what it has, ``gpu_allocated`` what its pods hold."""
    status = node.get("status") or {}
    told = {*(status.get("allocatable") or {}), *(status.get("capacity") or {}), *_asked_for(pods)}
    names = sorted(name for name in told if any(fnmatchcase(name, pattern) for pattern in GPU_RESOURCES))

    def each(amount: Callable[[str], int]) -> dict[str, int]:
        return {name: amount(name) for name in names}

    return {
        "gpu_resources": each(lambda name: allocatable_of(node, name)),
        "gpu_capacity": each(lambda name: capacity_of(node, name)),
        "gpu_allocated": each(lambda name: allocated_on(pods, name)),
    }


def _asked_for(pods: Sequence[Object]) -> Iterator[str]:
    """Resources that pods hold, also where the node has forgotten them."""
    for pod in pods:
        spec = pod.get("spec") or {}
        for container in (*(spec.get("containers") or []), *(spec.get("initContainers") or [])):
            yield from (container.get("resources") or {}).get("limits") or {}
