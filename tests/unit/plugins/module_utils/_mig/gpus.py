# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs with the profiles of an A100 40 GB, as NVML reports them."""

from __future__ import annotations

from typing import Any, Sequence

from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml.partitions import (
    Compute,
    Gpu,
    Partition,
    Placement,
    Profile,
)

SMALL = tuple(Placement(start, 1) for start in range(7))
PROFILES = (
    Profile("1g.5gb", 19, 1, 7, SMALL),
    Profile("1g.5gb+me", 20, 1, 1, SMALL),
    Profile("1g.10gb", 15, 1, 4, tuple(Placement(start, 2) for start in (0, 2, 4, 6))),
    Profile("2g.10gb", 14, 2, 3, tuple(Placement(start, 2) for start in (0, 2, 4))),
    Profile("3g.20gb", 9, 3, 2, (Placement(0, 4), Placement(4, 4))),
    Profile("4g.20gb", 5, 4, 1, (Placement(0, 4),)),
    Profile("7g.40gb", 0, 7, 1, (Placement(0, 8),)),
)


def partition(number: int, profile: str, start: int, compute: Sequence[int] | None = None) -> Partition:
    """A GPU instance with compute instances of these slices, by default one of all slices."""
    known = next(each for each in PROFILES if each.name == profile)
    sizes = [known.slices] if compute is None else compute
    return Partition(
        number,
        profile,
        known.slices,
        Placement(start, known.placements[0].size),
        tuple(Compute(at, size) for at, size in enumerate(sizes)),
    )


def gpu(index: int = 0, *partitions: Partition, mode: bool | None = True, **more: Any) -> Gpu:
    """A GPU with these instances; MIG mode is on unless *mode* says otherwise, and None means without MIG."""
    row = Gpu(index, f"GPU-{index}", f"0000:0{index}:00.0", index, "A100", True, mode, mode, PROFILES, partitions)
    return row._replace(**more)
