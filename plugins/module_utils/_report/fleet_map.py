# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the state of each GPU of a node, and draws it as a cell of the fleet map.

The report has the GPUs, the allocation has what pods hold. Where the allocation does not name the GPUs, the first GPUs of a node are drawn as
used: their number is right, their place is not known.
"""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping, Sequence

FREE, USED, SHARED, SICK, UNKNOWN = STATES = ("free", "used", "shared", "sick", "unknown")
#: Problems of a host after which no pod can use its GPUs.
UNUSABLE = frozenset({"driver_error", "driver_missing", "unreachable"})
#: Problems whose causes name the GPUs that they concern, by their addresses.
FAULTS = frozenset({"hw.ecc", "hw.remap", "hw.recovery", "hw.fabric", "kernel.xid"})
#: What a whole GPU is called in the allocation.
WHOLE = "GPUs"
UNNAMED = ("devices", "units")  # GPUs or parts of them, by their number

CELL = 16  # pixels from one cell to the next
#: A cell of each state as the path of an SVG, relative to its left upper corner.
SHAPES = {
    FREE: "h12v12h-12z",
    USED: "h12v12h-12z",
    SHARED: "v12h12z",
    SICK: "l12 12m0-12l-12 12",
    UNKNOWN: "m0 6h12",
}

Node = Mapping[str, Any]


def count_offered(node: Node) -> int | None:
    """Return how many of the node's GPUs it offers to pods, as a part of what is expected of it; None if the API server has not reported it."""
    offered, count = node["kubernetes"].get("allocatable"), int(node["gpus"]["count"])
    if offered is None:
        return None
    expected = int(node["kubernetes"].get("expected") or count)
    return min(count, count * int(offered) // expected) if expected else 0


def find_states(node: Node, codes: Iterable[str], rows: Sequence[Node] = (), faults: Iterable[str] = ()) -> list[str]:
    """Return the state of each GPU of a node of the report, in the order of its devices.

    ``codes`` are those of the host's problems, ``rows`` the node's rows of the allocation, and ``faults`` the causes of the problems in FAULTS. A GPU is
    used if pods hold all of it, and shared if pods hold a part of it.
    """
    devices = node["gpus"]["devices"]
    if not UNUSABLE.isdisjoint(codes) or node["kubernetes"].get("ready") is False:
        return [SICK] * len(devices)
    faulty = {place for fault in faults for place in _find_named(devices, fault)}
    usable = [place for place, gpu in enumerate(devices) if not gpu.get("lost") and place not in faulty]
    offered = count_offered(node)
    if offered is not None:
        usable = usable[: max(offered, 0)]
    found = dict.fromkeys(usable, UNKNOWN)
    for place, state in _place_units(devices, usable, rows):
        found[place] = state
    return [found.get(place, SICK) for place in range(len(devices))]


def _find_named(devices: Sequence[Node], fault: str) -> Sequence[int]:
    """Return the places of the GPUs whose addresses a cause has, and all if it has none."""
    addresses = [str(gpu.get("pci_address") or "") for gpu in devices]
    return [place for place, address in enumerate(addresses) if address and address in fault] or range(len(devices))


def _place_units(devices: Sequence[Node], usable: Sequence[int], rows: Sequence[Node]) -> Iterator[tuple[int, str]]:
    """Yield the place of a usable GPU and its state."""
    offers = [row for row in rows if row["total"] > 0]
    named = [gpu for row in offers for gpu in row["gpus"]]
    if named:
        places = {devices[place].get("index"): place for place in usable}
        yield from (
            (places[gpu["index"]], _judge(gpu["allocated"], gpu["total"])) for gpu in named if gpu["index"] in places
        )
        return
    whole = [row for row in offers if _is_whole(row, len(devices))]
    parts = [row for row in offers if row not in whole]
    sliced = [place for place in usable if parts and devices[place].get("mig_mode") == "enabled"]
    shared = sliced or (usable if parts else [])
    state = _judge(sum(row["allocated"] for row in parts), sum(row["total"] for row in parts))
    yield from ((place, state) for place in shared)
    held = sum(row["allocated"] for row in whole)
    if whole:
        others = [place for place in usable if place not in shared]
        yield from ((place, USED if number < held else FREE) for number, place in enumerate(others))


def _is_whole(row: Node, gpus: int) -> bool:
    return row["unit"] == WHOLE or (row["unit"] in UNNAMED and row["total"] <= gpus)


def _judge(allocated: int, total: int) -> str:
    if allocated <= 0:
        return FREE
    return USED if allocated >= total else SHARED


def draw_cells(states: Sequence[str]) -> list[tuple[str, str]]:
    """Return (state, path of an SVG) for each state that occurs: one path draws all cells of it."""
    paths: dict[str, str] = {}
    for place, state in enumerate(states):
        paths[state] = paths.get(state, "") + f"M{place * CELL + 2} 2{SHAPES[state]}"
    return list(paths.items())


def count_states(states: Sequence[str]) -> list[tuple[str, int]]:
    """Return (state, number) for each state that occurs, in the order of STATES."""
    return [(state, states.count(state)) for state in STATES if state in states]
