# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What MIG reports of a GPU, as data. Named tuples for the reason given in ``model``."""

from __future__ import annotations

from typing import Any, NamedTuple


class Placement(NamedTuple):
    """Slices of the GPU's memory: the first one, and how many."""

    start: int
    size: int


class Profile(NamedTuple):
    """A kind of GPU instance. ``number`` is NVML's id, ``slices`` are compute slices, and a GPU holds at most ``limit`` of them."""

    name: str
    number: int
    slices: int
    limit: int
    placements: tuple[Placement, ...] = ()


class Compute(NamedTuple):
    """A compute instance: its id in the GPU instance, and its compute slices."""

    number: int
    slices: int


class Partition(NamedTuple):
    """A GPU instance with its compute instances. ``slices`` are all of its compute slices."""

    number: int
    profile: str
    slices: int
    placement: Placement
    compute: tuple[Compute, ...] = ()


class Process(NamedTuple):
    """A process that uses a GPU, with the id of the GPU instance in which it runs, if known."""

    pid: int
    name: str | None = None
    partition: int | None = None


class Gpu(NamedTuple):
    """One GPU. ``mode`` is None if it has no MIG; ``needs_reset`` is whether a change of mode waits for a reset of the GPU or a reboot."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used
    uuid: str
    pci_address: str
    minor: int | None = None
    name: str = ""
    needs_reset: bool = False
    mode: bool | None = None
    pending: bool | None = None
    profiles: tuple[Profile, ...] = ()
    partitions: tuple[Partition, ...] = ()
    processes: tuple[Process, ...] = ()


def decode_gpu(row: list[Any]) -> Gpu:
    """The GPU in JSON's form of it, in which tuples are lists."""
    gpu = Gpu(*row)
    return gpu._replace(
        profiles=tuple(_decode_profile(Profile(*each)) for each in gpu.profiles),
        partitions=tuple(_decode_partition(Partition(*each)) for each in gpu.partitions),
        processes=tuple(Process(*each) for each in gpu.processes),
    )


def _decode_profile(profile: Profile) -> Profile:
    return profile._replace(placements=tuple(Placement(*each) for each in profile.placements))


def _decode_partition(partition: Partition) -> Partition:
    return partition._replace(
        placement=Placement(*partition.placement), compute=tuple(Compute(*each) for each in partition.compute)
    )
