# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What proves that pods share a GPU: which pods, and whether a node has room for them.

A row is the part of an allocation that is about one node, with its pods. Amounts are whole units of ``aliyun.com/gpu-mem``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Mapping, NamedTuple, Sequence

from .._kubernetes.objects import Object, get_allocatable, get_capacity
from .._kubernetes.smoke import UNKNOWN, Smoke, Verdict, barred, listed
from . import names
from .room import Row, free_by_gpu, full_name, has_room, landing

NAME = "gpushare-smoke-test"
AMOUNTS = (3, 5)
MIB_OF_A_GIB = 1024


class Fault(NamedTuple):
    """Why a node has not passed: a clause with a remedy. ``skipped`` if nothing is at fault, and so nothing proved."""

    reason: str
    skipped: bool = False


@dataclass(frozen=True)
class Sharing:
    """What to prove. ``smoke`` is what all pods have in common, and its timeout is that of one step.

    ``amounts`` are in GiB until `in_units` has made units of gpu-mem of them. ``unit`` is GiB, MiB, or empty for a guess.
    ``too_much`` asks for a pod beside them that no GPU is large enough for.
    """

    smoke: Smoke
    amounts: Sequence[int] = AMOUNTS
    unit: str = ""
    too_much: bool = True

    def in_units(self, unit: str) -> Sharing:
        """Return the same in units of gpu-mem, given what one is."""
        factor = MIB_OF_A_GIB if unit == "MiB" else 1
        return replace(self, amounts=[amount * factor for amount in self.amounts], unit=unit)

    def pod(self, amount: int) -> Smoke:
        """Return what the pod of this amount is made of. It lives until the last step is over, the one that waits for the ends too."""
        return replace(
            self.smoke,
            name=NAME,
            rewritten=True,  # by the published images
            resource=names.GPU_MEM,
            count=amount,
            subject=f"the pod of {self.told(amount)}",
            lifetime=(len(self.amounts) + self.too_much + 1) * self.smoke.timeout,
        )

    def told(self, amount: int) -> str:
        """Return an amount with its unit."""
        return f"{amount} {self.unit}".rstrip()


@dataclass
class Share:
    """A pod of the test with what it asked for and the GPU that it was given; None if it has none."""

    name: str
    amount: int
    phase: str = "Pending"
    gpu_index: int | None = None


@dataclass
class SharingResult(Verdict):
    """The verdict on a node: ``percent`` of the GPU before the first pod and after each, ``pending_reason`` of what was too much."""

    unit: str = ""
    gpu_index: int | None = None
    percent: list[int] = field(default_factory=list)
    pods: list[Share] = field(default_factory=list)
    pending_reason: str = ""


@dataclass
class Trial:
    """A node under test: its number of GPUs, the gpu-mem that it has (healthy or not), and its row as it was last seen."""

    result: SharingResult
    count: int
    capacity: int
    row: Row

    @property
    def node(self) -> str:
        """The node's name."""
        return self.result.node

    @property
    def goes_on(self) -> bool:
        """Say whether nothing has ended the test on this node."""
        return not self.result.reason

    def end(self, fault: Fault) -> None:
        """Keep why the test ends on this node."""
        self.result.reason, self.result.skipped = fault


def trial_of(name: str, node: Object | None, row: Row | None, sharing: Sharing) -> Trial:
    """Return the node as it is before the first pod; one that cannot be tried has its verdict already.

    A node without enough free memory on one GPU is skipped, and so is a cordoned one: nothing is at fault there.
    """
    result = SharingResult(node=name, unit=sharing.unit)
    if node is None:
        result.reason = UNKNOWN
        return Trial(result, 0, 0, {})
    count = get_allocatable(node, names.GPU_COUNT)
    trial = Trial(result, count, get_capacity(node, names.GPU_MEM), row or {})
    if not barred(result, node, sharing.smoke):
        fault = _unable(trial, sharing)
        if fault:
            trial.end(fault)
    return trial


def _unable(trial: Trial, sharing: Sharing) -> Fault | None:
    row, count, wanted = trial.row, trial.count, sum(sharing.amounts)
    if not row:
        return Fault(f"offers 0 {names.GPU_MEM}, so gpushare's device plugin has to be deployed or repaired first")
    if count <= 0:
        return Fault(
            f"offers {names.GPU_MEM} {row['total']} without {names.GPU_COUNT}, so that nothing is known of its single GPUs; restart "
            "gpushare's device plugin there, then its scheduler extender"
        )
    size = row["total"] // count
    if wanted > size:
        return Fault(
            f"has GPUs of {sharing.told(size)}, and the pods ask for {sharing.told(wanted)} together; ask for less",
            True,
        )
    free = free_by_gpu(row, count)
    if not has_room(row, free, wanted):
        return Fault(f"busy: no GPU has {sharing.told(wanted)} free{_held_by(row['pods'])}", True)
    landed = landing(free, sharing.amounts)
    if len(set(landed)) > 1:
        each = " and ".join(f"{sharing.told(amount)} on GPU {index}" for amount, index in zip(sharing.amounts, landed))
        return Fault(f"busy: by what is free, {each} fit best, so that no GPU would be shared", True)
    return None


def _held_by(pods: Sequence[Mapping[str, Any]]) -> str:
    return f"; it is in use by {listed(sorted(map(full_name, pods)))}" if pods else ""


def too_large(trial: Trial) -> int:
    """Return what no GPU of the node has.

    It is one unit more than a GPU has. Where the node as a whole has not that much free, it is one more than the whole node has:
    else kube-scheduler might evict pods of lower priority in vain.
    """
    whole_node, free = max(trial.capacity, int(trial.row["total"])), trial.row["total"] - trial.row["allocated"]
    amount = whole_node // trial.count + 1
    return amount if free >= amount else whole_node + 1
