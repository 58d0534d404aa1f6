# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has left for pods, as its kubelet computes it.

Sources, of Kubernetes: pkg/kubelet/cm/node_container_manager_linux.go (GetNodeAllocatableReservation), pkg/kubelet/cm/helpers.go
(hardEvictionReservation), pkg/kubelet/nodestatus/setters.go (MachineInfo). Amounts are CPUs and bytes, exactly.
"""

from __future__ import annotations

import struct
import typing as t
from dataclasses import dataclass
from fractions import Fraction

from .._kubernetes import quantities
from .._kubernetes.requests import sum_requests
from .configuration import RESERVED, percentage

#: Resources of a node of which a part can be reserved; the kubelet does not report processes.
RESOURCES = ("cpu", "memory", "ephemeral-storage")
_SIGNALS = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
_HUGE_PAGES = "hugepages-"

Reserved = t.Mapping[str, t.Mapping[str, str]]


@dataclass(frozen=True)
class Part:
    """One resource: capacity, what the kubelet reserves, the allocatable amount expected from that, and the one that the node reports."""

    resource: str
    capacity: Fraction
    reserved: Fraction
    expected: Fraction
    reported: Fraction | None

    @property
    def fits(self) -> bool:
        """Whether the kubelet starts with it."""
        return self.reserved <= self.capacity

    def format(self, amount: Fraction | None) -> str:
        """Return an amount for people."""
        return "nothing" if amount is None else quantities.format_amount(amount, self.resource)


def parts(node: t.Mapping[str, t.Any], reserved: Reserved, resources: t.Sequence[str]) -> list[Part]:
    """Return those of *resources* that the *node* has. *reserved*: {kubeReserved, systemReserved, evictionHard}, each name -> text."""
    status = node.get("status") or {}
    capacity, reported = ({**(status.get(key) or {})} for key in ("capacity", "allocatable"))
    return [
        _part(resource, capacity, reported, reserved)
        for resource in RESOURCES
        if resource in resources and resource in capacity
    ]


def find_excess(known: t.Iterable[Part]) -> list[str]:
    """Return, in words, where more is reserved than there is, with which the kubelet does not start."""
    return [
        f"{part.format(part.reserved)} of {part.resource}, of which it has {part.format(part.capacity)}"
        for part in known
        if not part.fits
    ]


def find_differences(known: t.Iterable[Part]) -> list[str]:
    """Return, in words, where the node reports other allocatable amounts than expected."""
    return [_describe_difference(part) for part in known if part.reported != part.expected]


def find_shortages(known: t.Iterable[Part], pods: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Return, in words, where the *pods* of the node request more than would be left."""
    sums = ((part, sum((sum_requests(pod, part.resource) for pod in pods), Fraction(0))) for part in known)
    return [
        f"{part.format(requested)} of {part.resource}, of which {part.format(part.expected)} would be left"
        for part, requested in sums
        if part.fits and requested > part.expected and (part.reported is None or part.expected < part.reported)
    ]


def _describe_difference(part: Part) -> str:
    reported, expected = part.format(part.reported), part.format(part.expected)
    if reported == expected:  # by less than is shown
        reported, expected = str(part.reported), str(part.expected)
    return f"{reported} of {part.resource} instead of {expected}"


def _part(resource: str, capacity: t.Mapping[str, t.Any], reported: t.Mapping[str, t.Any], reserved: Reserved) -> Part:
    total = _amount(capacity[resource])
    amount = sum((_amount(reserved.get(name, {}).get(resource, "0")) for name in RESERVED), Fraction(0))
    for signal, text in reserved.get("evictionHard", {}).items():
        if _SIGNALS.get(signal) == resource:
            amount += _threshold(text, total)
    expected = max(total - amount, Fraction(0))
    if resource == "memory":
        for name in capacity:
            if name.startswith(_HUGE_PAGES):
                expected = max(expected - _amount(capacity[name]), Fraction(0))
    return Part(resource, total, amount, expected, _amount(reported[resource]) if resource in reported else None)


def _threshold(text: str, capacity: Fraction) -> Fraction:
    try:
        number = percentage(text)
    except ValueError:
        return Fraction(0)
    if number is None:
        return _amount(text)
    if text in ("0%", "100%"):
        return Fraction(0)
    # The kubelet keeps it in 32 bits, multiplies in 64, and truncates.
    return Fraction(int(float(capacity) * _single(_single(number) / 100)))


def _single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _amount(text: t.Any) -> Fraction:
    """Return a quantity, 0 for one that the kubelet cannot read either."""
    try:
        return quantities.parse_quantity(str(text))
    except ValueError:
        return Fraction(0)
