# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a GPU has to change for its desired state. Pure functions."""

from __future__ import annotations

from typing import Iterable, Mapping, NamedTuple, Sequence

from .._nvml.mig import Change, Creation
from .._nvml.partitions import Gpu, Partition, Placement, Process, Profile
from .layout import Desired, LayoutError, Slot, count_slots


class GpuPlan(NamedTuple):
    """What one GPU has to change. ``set_mode`` is None if the requested mode is the desired one already."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which is not used
    desired: Desired
    set_mode: bool | None = None
    # Whether the mode in force differs from the desired one.
    changes_mode: bool = False
    # Whether that waits for a reset of the GPU.
    needs_reset: bool = False
    change: Change = Change()

    @property
    def changes(self) -> bool:
        """Whether anything changes."""
        return self.set_mode is not None or self.changes_mode or self.change != Change()


def plan_gpu(gpu: Gpu, desired: Desired) -> GpuPlan:
    """What the GPU has to change. Raises LayoutError if it cannot have the desired instances.

    While MIG is off, some drivers report no profiles; then the instances are planned once it is on.
    """
    plan = GpuPlan(
        gpu.index,
        desired,
        set_mode=desired.mode if gpu.pending != desired.mode else None,
        changes_mode=gpu.mode != desired.mode,
        needs_reset=gpu.mode != desired.mode and gpu.needs_reset,
    )
    known = all(profile.placements for profile in gpu.profiles) and bool(gpu.profiles)
    if desired.mode and not gpu.mode and not known:
        return plan
    profiles = {profile.name: profile for profile in gpu.profiles}
    _check_profiles(gpu, desired.slots, profiles)
    return plan._replace(change=_plan_change(gpu, desired, profiles))


def _check_profiles(gpu: Gpu, slots: Sequence[Slot], profiles: Mapping[str, Profile]) -> None:
    for name in dict.fromkeys(slot.profile for slot in slots):
        if name not in profiles:
            known = ", ".join(sorted(profiles)) or "none"
            raise LayoutError(f"GPU {gpu.index} ({gpu.name}) does not have the profile {name}; it has {known}")
        count = sum(slot.profile == name for slot in slots)
        if count > profiles[name].limit:
            raise LayoutError(
                f"the layout has {count} GPU instances of {name} for GPU {gpu.index}, which holds at most {profiles[name].limit}; reduce the count"
            )


def _plan_change(gpu: Gpu, desired: Desired, profiles: Mapping[str, Profile]) -> Change:
    kept, missing = match_slots(gpu.partitions, desired.slots)
    others = [each.number for each in gpu.partitions if each.number not in {part.number for part, _slot in kept}]
    placed = place(missing, [part.placement for part, _slot in kept], profiles)
    if placed is None:
        kept, others = [], [each.number for each in gpu.partitions]
        placed = place(desired.slots, [], profiles)
    if placed is None:
        requested = ", ".join(f"{count} x {name}" for name, count in count_slots(desired.slots).items())
        raise LayoutError(
            f"{requested} do not fit together on GPU {gpu.index} ({gpu.name}); compare nvidia-smi mig -lgipp, and reduce the layout"
        )
    complete = tuple((part.number, left) for part, slot in kept for left in [_list_missing(part, slot)] if left)
    create = tuple(
        Creation(
            profiles[slot.profile].number, (where.start, where.size), slot.compute or (profiles[slot.profile].slices,)
        )
        for slot, where in placed
    )
    return Change(tuple(others), complete, create)


def _list_compute(slot: Slot, slices: int) -> list[int]:
    return list(slot.compute or (slices,))


def _list_missing(partition: Partition, slot: Slot) -> tuple[int, ...]:
    """The compute instances of the slot that the GPU instance does not have, in slices."""
    left = _list_compute(slot, partition.slices)
    for compute in partition.compute:
        left.remove(compute.slices)
    return tuple(left)


def _fits(partition: Partition, slot: Slot) -> bool:
    left = _list_compute(slot, partition.slices)
    for compute in partition.compute:
        if compute.slices not in left:
            return False
        left.remove(compute.slices)
    return partition.profile == slot.profile


def match_slots(
    partitions: Iterable[Partition], slots: Iterable[Slot]
) -> tuple[list[tuple[Partition, Slot]], list[Slot]]:
    """The GPU instances that can stay, each with its slot, and the slots that are left. Those with more compute instances stay first."""
    left, kept = list(slots), []
    for partition in sorted(partitions, key=lambda each: -len(each.compute)):
        for slot in sorted(left, key=lambda each: len(each.compute)):
            if _fits(partition, slot):
                left.remove(slot)
                kept.append((partition, slot))
                break
    return kept, left


def place(
    slots: Sequence[Slot], occupied: Sequence[Placement], profiles: Mapping[str, Profile]
) -> list[tuple[Slot, Placement]] | None:
    """Placements for all slots beside the occupied ones, the big ones first; None if they do not fit."""
    ordered = sorted(slots, key=lambda slot: (-_size(profiles[slot.profile]), slot))
    return _search(ordered, list(occupied), profiles)


def _size(profile: Profile) -> int:
    return max((placement.size for placement in profile.placements), default=0)


def _search(
    slots: Sequence[Slot], occupied: list[Placement], profiles: Mapping[str, Profile]
) -> list[tuple[Slot, Placement]] | None:
    """The first solution, by trying each placement. At most 8 slots of 8 placements."""
    if not slots:
        return []
    for placement in sorted(profiles[slots[0].profile].placements):
        if any(_overlap(placement, other) for other in occupied):
            continue
        rest = _search(slots[1:], [*occupied, placement], profiles)
        if rest is not None:
            return [(slots[0], placement), *rest]
    return None


def _overlap(one: Placement, other: Placement) -> bool:
    return one.start < other.start + other.size and other.start < one.start + one.size


def find_disturbed(gpu: Gpu, plan: GpuPlan) -> list[Process]:
    """The processes that the plan would disturb: all on a change of mode, else those of removed GPU instances."""
    if plan.changes_mode:
        return list(gpu.processes)
    if not plan.change.remove:
        return []
    return [each for each in gpu.processes if each.partition is None or each.partition in plan.change.remove]
