# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds up hours over segments of time in which nothing changed, whatever source they are from.

A pod's GPUs are not known by their index, so that load is compared by node: the GPUs with load count as allocated ones, and what is allocated beyond
them is wasted. That is the least that can have been wasted. The namespaces of a node share it in proportion to what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Iterable, Iterator, Mapping, NamedTuple, Sequence

from .times import HOUR

UNKNOWN = "unknown"


class Held(NamedTuple):
    """What the pods of a namespace hold of a resource of a node: units of it, named by ``unit``, and the GPUs that these are, such as 0.5."""

    namespace: str
    node: str
    resource: str
    unit: str
    units: float
    gpus: float


class State(NamedTuple):
    """A cluster: GPUs by node and product; what pods hold; by node the GPUs whose load is known, and how many of these have a load.

    A node that is not in ``gpus`` has an unknown number of GPUs.
    """

    gpus: Mapping[str, Mapping[str, float]]
    held: Sequence[Held]
    load: Mapping[str, tuple[float, float]] = {}


class Segment(NamedTuple):
    """A state from a second to another one."""

    start: float
    end: float
    state: State


class NodeState(NamedTuple):
    """A node: its GPUs by product, None if not known; what pods hold of it; the GPUs whose load is known, and those with a load."""

    name: str
    gpus: tuple[tuple[str, float], ...] | None
    held: tuple[Held, ...]
    load: tuple[float, float]


@dataclass
class Hours:
    """GPU hours. ``unmeasured`` are allocated hours of GPUs without a known load."""

    gpu: float = 0.0
    allocated: float = 0.0
    idle: float = 0.0
    wasted: float = 0.0
    unmeasured: float = 0.0

    def add(self, other: Hours) -> None:
        """Add the hours of another one."""
        for name, hours in vars(other).items():
            setattr(self, name, getattr(self, name) + hours)


@dataclass
class Usage:
    """The hours of a window: the seconds that the source covers, and GPU hours by node and product, and by namespace, node and product."""

    seconds: float = 0.0
    #: Whether the load of any GPU is known.
    measured: bool = False
    #: By node the hours in which its number of GPUs is known, and those in which it is not and pods held some.
    sized: dict[str, float] = field(default_factory=dict)
    unsized: dict[str, float] = field(default_factory=dict)
    nodes: dict[tuple[str, str], Hours] = field(default_factory=dict)
    namespaces: dict[tuple[str, str, str], Hours] = field(default_factory=dict)
    #: Hours of units and of GPUs by resource and unit.
    resources: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    @property
    def covered(self) -> float:
        """Return the hours that the source covers."""
        return self.seconds / HOUR


def integrate(
    segments: Iterable[Segment], start: float, end: float, products: Mapping[str, str] | None = None
) -> Usage:
    """Return the hours from *start* to *end*. *products* are those of nodes whose GPUs are in no state."""
    usage = Usage()
    # A node has few states and many segments.
    durations: dict[NodeState, float] = {}
    for segment in segments:
        seconds = min(segment.end, end) - max(segment.start, start)
        if seconds > 0:
            usage.seconds += seconds
            usage.measured = usage.measured or bool(segment.state.load)
            for state in _list_node_states(segment.state):
                durations[state] = durations.get(state, 0.0) + seconds
    for state, seconds in durations.items():
        _add_state(usage, state, seconds / HOUR, products or {})
    return usage


def _list_node_states(state: State) -> Iterator[NodeState]:
    held: dict[str, list[Held]] = {node: [] for node in state.gpus}
    for row in state.held:
        held.setdefault(row.node, []).append(row)
    for node, rows in held.items():
        known = state.gpus.get(node)
        yield NodeState(
            node, None if known is None else tuple(known.items()), tuple(rows), state.load.get(node, (0.0, 0.0))
        )


def _add_state(usage: Usage, state: NodeState, hours: float, products: Mapping[str, str]) -> None:
    node, known = state.name, state.gpus
    hours_of = usage.unsized if known is None else usage.sized
    hours_of[node] = hours_of.get(node, 0.0) + hours
    for row in state.held:
        sums = usage.resources.setdefault((row.resource, row.unit), [0.0, 0.0])
        sums[0] += row.units * hours
        sums[1] += row.gpus * hours
    total = _measure(state)
    for product, part in _list_parts(known or (), products.get(node, UNKNOWN)):
        _add_part(usage, node, product, state.held, total, part * hours)


def _measure(state: NodeState) -> Hours:
    """Return the GPUs of a node by their use, at one moment."""
    measured, busy = state.load
    capacity, allocated = sum(count for _name, count in state.gpus or ()), sum(row.gpus for row in state.held)
    unmeasured = min(allocated, max(0.0, max(capacity, allocated) - measured))
    return Hours(
        gpu=capacity,
        allocated=allocated,
        idle=max(0.0, capacity - allocated),
        wasted=max(0.0, allocated - unmeasured - busy),
        unmeasured=unmeasured,
    )


def _list_parts(known: Sequence[tuple[str, float]], product: str) -> Iterator[tuple[str, float]]:
    """Yield each product of a node with its part of the node's GPUs."""
    total = sum(count for _name, count in known)
    if total <= 0:
        yield (known[0][0] if known else product), 1.0
    else:
        yield from ((name, count / total) for name, count in known if count > 0)


def _add_part(usage: Usage, node: str, product: str, rows: Sequence[Held], total: Hours, factor: float) -> None:
    of_node = usage.nodes.setdefault((node, product), Hours())
    of_node.add(Hours(**{name: value * factor for name, value in vars(total).items()}))
    for row in rows:
        share = row.gpus / total.allocated * factor if total.allocated else 0.0
        of_namespace = usage.namespaces.setdefault((row.namespace, node, product), Hours())
        of_namespace.allocated += row.gpus * factor
        of_namespace.wasted += total.wasted * share
        of_namespace.unmeasured += total.unmeasured * share
