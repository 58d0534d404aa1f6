# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of extended resources: which group of them a strategy or vendor offers, and which are spelt wrongly."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Iterable

from .._gpus.intel import DRIVERS
from .._sharing.catalogue import STRATEGIES
from .._vendors import AMD, INTEL, SERVED

_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage")
_NATIVE_DOMAIN = "kubernetes.io"
#: Retired names, and what replaced them.
RETIRED = {
    "alpha.kubernetes.io/nvidia-gpu": SERVED.resource,
    "radeonopencompute.org/gpu": AMD.resource,
}
#: Whole GPUs of AMD, and partitions by compute and memory mode. Source: the README of its device plugin.
AMD_NAMES = (AMD.resource, *(f"{AMD.domain}/{mode}px_nps{memory}" for mode in "sdtqc" for memory in (1, 2, 4, 8)))
#: GPUs of Intel, by the driver of the node.
INTEL_NAMES = tuple(f"{INTEL.domain}/{driver}" for driver in DRIVERS)
#: Resources of other vendors and schedulers, by the group to which they belong. Source: the documentation of their device plugins.
HAMI = "HAMi"
_OTHER_GROUPS = {
    **dict.fromkeys(AMD_NAMES, AMD.title),
    f"{INTEL.domain}/*": INTEL.title,
    "nvidia.com/gpumem*": HAMI,
    "nvidia.com/gpucores": HAMI,
    "volcano.sh/vgpu-*": "Volcano",
}
# What the near misses of a name are compared with.
_NAMES = (*AMD_NAMES, *INTEL_NAMES, "aliyun.com/gpu-count")
_NEAR = 2


def is_standard(name: str) -> bool:
    """Return whether the name is one of Kubernetes' own."""
    return name in _STANDARD or name.startswith("hugepages-")


def is_extended(name: str) -> bool:
    """Return whether the API server treats the name as that of an extended resource, which is never overcommitted."""
    domain = name.partition("/")[0]
    return "/" in name and not domain.endswith(_NATIVE_DOMAIN) and not name.startswith("requests.")


def find_group(name: str) -> str:
    """Return the strategy or vendor whose pods request the resource; empty if none is known. A pod belongs to one of them."""
    for pattern, group in _OTHER_GROUPS.items():
        if fnmatchcase(name, pattern):
            return group
    for strategy in STRATEGIES.values():
        names = [*strategy.resources, *(each.gpu_count_resource for each in strategy.shared if each.gpu_count_resource)]
        for pattern in names:
            if fnmatchcase(name, pattern):
                # Whole GPUs, shared ones and MIG devices are offered by one device plugin, and a pod still takes one kind.
                return pattern if strategy.by_nvidia else strategy.name
    return ""


def is_served(name: str) -> bool:
    """Return whether NVIDIA's device plugin offers the resource."""
    return any(fnmatchcase(name, pattern) for row in STRATEGIES.values() if row.by_nvidia for pattern in row.resources)


def find_near(name: str, offered: Iterable[str]) -> str:
    """Return the known or offered name that differs by at most two letters and in case; empty for a known name, and if there is none."""
    plain = [
        pattern for row in STRATEGIES.values() for pattern in row.resources if "*" not in pattern and "?" not in pattern
    ]
    known = sorted({*plain, *(each.name for row in STRATEGIES.values() for each in row.shared), *_NAMES, *offered})
    if name in known:
        return ""
    near = [each for each in known if abs(len(name) - len(each)) <= _NEAR]
    distance, nearest = min(((_measure(name.lower(), each.lower()), each) for each in near), default=(_NEAR + 1, ""))
    return nearest if distance <= _NEAR else ""


def _measure(one: str, other: str) -> int:
    """Return how many letters have to be added, removed or replaced."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        last, row = row, [number]
        for place, each in enumerate(other, 1):
            row.append(min(last[place] + 1, row[-1] + 1, last[place - 1] + (letter != each)))
    return row[-1]
