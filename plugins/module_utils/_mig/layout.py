# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requested layout: parsed, in its canonical form, and by GPU. Each refusal is a clause without a full stop, for a sentence with the host."""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, NamedTuple, Sequence

from .._nvml.partitions import Gpu, Partition

EVERY = "all"
PROFILE = re.compile(r"(?:(?P<compute>[1-9])c\.)?(?P<base>(?P<slices>[1-9])g\.[1-9][0-9]*gb(?:[+-][a-z0-9.]+)?)\Z")
MOST_GPUS = 64
SINGLE, MIXED = "single", "mixed"


class LayoutError(Exception):
    """The layout is invalid, or does not fit the GPUs; the text is a clause with the remedy."""


class Slot(NamedTuple):
    """A desired GPU instance, with the compute slices of each of its compute instances. Empty: one that has all slices."""

    profile: str
    compute: tuple[int, ...] = ()


class Desired(NamedTuple):
    """The desired state of one GPU."""

    mode: bool
    slots: tuple[Slot, ...] = ()


class Entry(NamedTuple):
    """One entry of a layout. ``gpus`` is None for all."""

    gpus: tuple[int, ...] | None
    profiles: tuple[tuple[str, int], ...]


def parse_layout(raw: Any) -> tuple[Entry, ...]:
    """The layout of a user's variable in its canonical form, which is sorted. Raises LayoutError."""
    if not isinstance(raw, (list, tuple)):
        raise LayoutError("the layout is not a list; write it as [{gpus: all, profiles: {1g.10gb: 7}}]")
    return tuple(_parse_entry(number, entry) for number, entry in enumerate(raw, 1))


def _parse_entry(number: int, entry: Any) -> Entry:
    where = f"entry {number} of the layout"
    if not isinstance(entry, Mapping) or set(entry) != {"gpus", "profiles"}:
        raise LayoutError(f"{where} does not have exactly the keys gpus and profiles")
    profiles = entry["profiles"]
    if not isinstance(profiles, Mapping):
        raise LayoutError(f"the profiles of {where} are not a mapping of names to counts, such as {{1g.10gb: 7}}")
    for name, count in profiles.items():
        _check_profile(where, name, count)
    return Entry(_parse_gpus(where, entry["gpus"]), tuple(sorted((str(name), int(n)) for name, n in profiles.items())))


def _parse_gpus(where: str, gpus: Any) -> tuple[int, ...] | None:
    if gpus == EVERY:
        return None
    numbers = gpus if isinstance(gpus, (list, tuple)) else []
    if not numbers or not all(_is_count(each) and each < MOST_GPUS for each in numbers):
        raise LayoutError(f"the gpus of {where} are neither all nor a list of GPU indices, such as [0, 1]")
    if len(set(numbers)) != len(numbers):
        raise LayoutError(f"{where} names a GPU twice")
    return tuple(sorted(numbers))


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_profile(where: str, name: Any, count: Any) -> None:
    match = PROFILE.match(name) if isinstance(name, str) else None
    if match is None:
        raise LayoutError(
            f"{where} has the profile {name!r}; write profiles as nvidia-smi mig -lgip shows them, such as 1g.10gb or 1g.10gb+me"
        )
    compute, slices = match["compute"], int(match["slices"])
    if compute and int(compute) >= slices:
        raise LayoutError(
            f"{where} has the profile {name}, whose compute instance is not a part of its GPU instance; write {match['base']}"
        )
    if not _is_count(count) or count == 0:
        raise LayoutError(
            f"the count of {name} in {where} is {count!r}; write a number from 1, or leave the profile out"
        )


def select(layout: Sequence[Entry], gpus: Sequence[Gpu]) -> dict[int, Desired]:
    """The desired state of each GPU that has MIG, by index. All of them, because a GPU that no entry names has MIG mode off. Raises LayoutError."""
    capable = {gpu.index for gpu in gpus if gpu.mode is not None}
    desired = dict.fromkeys(sorted(capable), Desired(mode=False))
    for entry in layout:
        state = Desired(bool(entry.profiles), _build_slots(entry.profiles))
        for index in sorted(capable) if entry.gpus is None else entry.gpus:
            if index not in capable:
                _refuse_gpu(index, gpus, state)
            else:
                desired[index] = state
        if not capable and state.mode:
            raise LayoutError("no GPU of this host has MIG; leave the host out of the strategy mig")
    return desired


def _refuse_gpu(index: int, gpus: Sequence[Gpu], state: Desired) -> None:
    """Raise for a GPU that is missing or has no MIG. MIG off is what the latter has anyway."""
    for gpu in gpus:
        if gpu.index == index and not state.mode:
            return
        if gpu.index == index:
            raise LayoutError(f"GPU {index} ({gpu.name}) has no MIG; leave it out of the layout")
    raise LayoutError(f"the layout names GPU {index}, and this host has {len(gpus)} GPUs, whose indices begin with 0")


def _build_slots(profiles: Iterable[tuple[str, int]]) -> tuple[Slot, ...]:
    """The GPU instances for the profiles. Those with smaller compute instances share GPU instances."""
    slots: list[Slot] = []
    for name, count in profiles:
        # parse_layout has matched each name.
        [(compute, base, digit)] = PROFILE.findall(name)
        slices = int(digit)
        size = int(compute or slices)
        each = slices // size
        if size == slices:
            slots += [Slot(base)] * count
        else:
            full, rest = divmod(count, each)
            slots += [Slot(base, (size,) * each)] * full + [Slot(base, (size,) * rest)] * bool(rest)
    return tuple(slots)


def check_strategy(strategy: str | None, desired: Mapping[int, Desired], gpus: Sequence[Gpu]) -> None:
    """Raise LayoutError for what NVIDIA's device plugin does not serve with its MIG strategy (single, mixed, or None for another user of MIG)."""
    kinds = {kind for state in desired.values() for kind in _list_kinds(state.slots)}
    if strategy == MIXED:
        parts = sorted(kind for kind in kinds if "c." in kind)
        if parts:
            raise LayoutError(
                f"with the MIG strategy mixed, NVIDIA's device plugin fails with {parts[0]}, whose compute instance is a part of its GPU"
                " instance; use the strategy single, or a profile with a whole GPU instance"
            )
    if strategy != SINGLE or not kinds:
        return
    without = [gpu.index for gpu in gpus if gpu.index not in desired or not desired[gpu.index].mode]
    if without:
        raise LayoutError(
            f"with the MIG strategy single, NVIDIA's device plugin requires MIG mode on all GPUs of a node, and GPU {without[0]} would have none;"
            " add it to the layout, or use the strategy mixed"
        )
    if len(kinds) > 1:
        raise LayoutError(
            f"with the MIG strategy single, NVIDIA's device plugin requires one profile on all GPUs of a node, and the layout has"
            f" {' and '.join(sorted(kinds))}; use the strategy mixed"
        )


def _list_kinds(slots: Iterable[Slot]) -> list[str]:
    return [name_device(slot.profile, size) for slot in slots for size in slot.compute or (0,)]


def name_device(profile: str, size: int = 0) -> str:
    """The name of a MIG device of this profile whose compute instance has *size* slices; 0 for all."""
    return f"{size}c.{profile}" if size else profile


def count_slots(slots: Iterable[Slot]) -> dict[str, int]:
    """The number of desired MIG devices by name."""
    names = _list_kinds(slots)
    return {name: names.count(name) for name in sorted(set(names))}


def count_devices(partitions: Iterable[Partition]) -> dict[str, int]:
    """The number of MIG devices by name. A GPU instance without a compute instance is none."""
    names = [
        name_device(each.profile, 0 if compute.slices == each.slices else compute.slices)
        for each in partitions
        for compute in each.compute
    ]
    return {name: names.count(name) for name in sorted(set(names))}


def describe(gpu: Gpu) -> Desired:
    """The state of the GPU as a desired one, to which a record returns."""
    slots = (
        Slot(each.profile, () if _is_whole(each) else tuple(sorted(compute.slices for compute in each.compute)))
        for each in gpu.partitions
        if each.compute
    )
    return Desired(bool(gpu.mode), tuple(sorted(slots)))


def _is_whole(partition: Partition) -> bool:
    return [compute.slices for compute in partition.compute] == [partition.slices]
