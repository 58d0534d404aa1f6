# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node has left for pods, as its kubelet works it out. Private to this collection.

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
from .settings import RESERVED, percentage

#: Resources of a node of which a part can be kept from pods; the kubelet tells nobody of its processes.
RESOURCES = ("cpu", "memory", "ephemeral-storage")
_SIGNALS = {"memory.available": "memory", "nodefs.available": "ephemeral-storage"}
_HUGE_PAGES = "hugepages-"

Reserved = t.Mapping[str, t.Mapping[str, str]]


@dataclass(frozen=True)
class Part:
    """One resource: what the node has, what the kubelet keeps, what pods get by that, and what the node says that they get."""

    resource: str
    capacity: Fraction
    kept: Fraction
    expected: Fraction
    offered: Fraction | None

    @property
    def fits(self) -> bool:
        """Whether the kubelet starts with it."""
        return self.kept <= self.capacity

    def told(self, amount: Fraction | None) -> str:
        """Return an amount for people."""
        return "nothing" if amount is None else quantities.format_amount(amount, self.resource)


def parts(node: t.Mapping[str, t.Any], reserved: Reserved, resources: t.Sequence[str]) -> list[Part]:
    """Return those of *resources* that the *node* has. *reserved*: {kubeReserved, systemReserved, evictionHard}, each name -> text."""
    status = node.get("status") or {}
    capacity, offered = ({**(status.get(key) or {})} for key in ("capacity", "allocatable"))
    return [
        _part(resource, capacity, offered, reserved)
        for resource in RESOURCES
        if resource in resources and resource in capacity
    ]


def too_much(known: t.Iterable[Part]) -> list[str]:
    """Return, in words, where more is kept than there is, with which the kubelet does not start."""
    return [
        f"{part.told(part.kept)} of {part.resource}, of which it has {part.told(part.capacity)}"
        for part in known
        if not part.fits
    ]


def different(known: t.Iterable[Part]) -> list[str]:
    """Return, in words, where the node offers pods other than it should."""
    return [_instead(part) for part in known if part.offered != part.expected]


def crowded(known: t.Iterable[Part], pods: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Return, in words, where the *pods* of the node ask for more than it would have left."""
    sums = ((part, sum((sum_requests(pod, part.resource) for pod in pods), Fraction(0))) for part in known)
    return [
        f"{part.told(asked)} of {part.resource}, of which {part.told(part.expected)} would be left"
        for part, asked in sums
        if part.fits and asked > part.expected and (part.offered is None or part.expected < part.offered)
    ]


def _instead(part: Part) -> str:
    offered, expected = part.told(part.offered), part.told(part.expected)
    if offered == expected:  # by less than is told
        offered, expected = str(part.offered), str(part.expected)
    return f"{offered} of {part.resource} instead of {expected}"


def _part(resource: str, capacity: t.Mapping[str, t.Any], offered: t.Mapping[str, t.Any], reserved: Reserved) -> Part:
    has = _amount(capacity[resource])
    kept = sum((_amount(reserved.get(name, {}).get(resource, "0")) for name in RESERVED), Fraction(0))
    for signal, text in reserved.get("evictionHard", {}).items():
        if _SIGNALS.get(signal) == resource:
            kept += _threshold(text, has)
    expected = max(has - kept, Fraction(0))
    if resource == "memory":
        for name in capacity:
            if name.startswith(_HUGE_PAGES):
                expected = max(expected - _amount(capacity[name]), Fraction(0))
    return Part(resource, has, kept, expected, _amount(offered[resource]) if resource in offered else None)


def _threshold(text: str, capacity: Fraction) -> Fraction:
    try:
        number = percentage(text)
    except ValueError:
        return Fraction(0)
    if number is None:
        return _amount(text)
    if text in ("0%", "100%"):
        return Fraction(0)
    # The kubelet keeps it in 32 bits, multiplies in 64, and cuts off.
    return Fraction(int(float(capacity) * _single(_single(number) / 100)))


def _single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _amount(text: t.Any) -> Fraction:
    """Return a quantity; one that the kubelet could not read either is nothing."""
    try:
        return quantities.parse_quantity(str(text))
    except ValueError:
        return Fraction(0)
