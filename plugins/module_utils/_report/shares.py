# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sums the allocation of GPUs by sharing strategy and by namespace, for the page of the report."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .._sharing.catalogue import OWN_PLUGIN, STRATEGIES, strategy_of

#: The resource of the allocation's ``nodes``: that of the strategy which counts memory.
MEMORY = next(row for row in OWN_PLUGIN if row.measure == "memory").resources[0]
_NVIDIA = [row for row in STRATEGIES.values() if row.by_nvidia]
#: The strategies of NVIDIA's device plugin, by what the allocation calls its units. It calls them devices where it does not know more.
BY_UNIT = {
    "GPUs": tuple(row.name for row in _NVIDIA if not (row.sharing_section or row.mig)),
    "replicas": tuple(row.name for row in _NVIDIA if row.sharing_section),
    "slices": tuple(row.name for row in _NVIDIA if row.mig),
}

Allocation = Mapping[str, Any]
Row = Mapping[str, Any]


def index_allocation(allocation: Allocation | None) -> dict[str, list[Row]]:
    """Return the rows of the allocation by node, each with its resource and unit."""
    found: dict[str, list[Row]] = {}
    for row in _list_rows(allocation):
        found.setdefault(row["name"], []).append(row)
    return found


def _list_rows(allocation: Allocation | None) -> Iterator[Row]:
    if allocation is not None:
        unit = allocation["unit"]
        yield from ({**row, "resource": MEMORY, "unit": unit} for row in allocation["nodes"])
        yield from allocation["resources"]


def name_strategies(resource: str, unit: str) -> tuple[str, ...]:
    """Return the sharing strategies whose pods hold units of that name; several where the unit does not tell, none where it is not known."""
    row = strategy_of(resource)
    return BY_UNIT.get(unit, ()) if row.by_nvidia else (row.name,)


def count_shares(report: Mapping[str, Any], allocation: Allocation | None) -> list[dict[str, Any]]:
    """Return [{strategies, resource, unit, allocated, total, percent, nodes}] by resource and unit.

    Without an allocation, they are what the nodes of the report offer, and ``allocated`` and ``percent`` are None.
    """
    sums: dict[tuple[str, str], list[int]] = {}
    for row in _list_rows(allocation) if allocation is not None else _list_offers(report):
        found = sums.setdefault((row["resource"], row["unit"]), [0, 0, 0])
        found[0] += row["allocated"]
        found[1] += row["total"]
        found[2] += 1
    return [
        {
            "strategies": list(name_strategies(resource, unit)),
            "resource": resource,
            "unit": unit,
            "allocated": None if allocation is None else allocated,
            "total": total,
            "percent": None if allocation is None else allocated * 100 // total if total else 0,
            "nodes": nodes,
        }
        for (resource, unit), (allocated, total, nodes) in sorted(sums.items())
    ]


def _list_offers(report: Mapping[str, Any]) -> Iterator[Row]:
    for node in report["nodes"]:
        for resource, units in (node["kubernetes"].get("resources") or {}).items():
            yield {"resource": resource, "unit": "", "allocated": 0, "total": units}


def sum_namespaces(allocation: Allocation | None) -> list[dict[str, Any]]:
    """Return [{namespace, resource, unit, allocated, pods}], the most of each resource first; empty if the allocation lists no pods."""
    sums: dict[tuple[str, str, str], list[int]] = {}
    for row in _list_rows(allocation):
        for pod in row.get("pods") or ():
            found = sums.setdefault((row["resource"], row["unit"], pod["namespace"]), [0, 0])
            found[0] += pod["allocated"]
            found[1] += 1
    ordered = sorted(sums.items(), key=lambda each: (*each[0][:2], -each[1][0], each[0][2]))
    return [
        {"namespace": namespace, "resource": resource, "unit": unit, "allocated": allocated, "pods": pods}
        for (resource, unit, namespace), (allocated, pods) in ordered
    ]
