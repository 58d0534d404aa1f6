# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the fleet map, and the details of a node."""

from __future__ import annotations

from typing import Any, Collection, Iterable, Iterator, Mapping, Sequence

from .fleet_map import CELL, count_states, draw_cells, find_states
from .render import GIB

#: With more nodes than this, only nodes with problems have details, and not more of them than this.
MAX_DETAILS = 500
MAX_PODS = 20  # pods in the details of a node
MAX_LINES = 40  # lines of a log or of a difference

Node = Mapping[str, Any]


def cut(entries: Sequence[Any], most: int) -> dict[str, Any]:
    """Return the first entries and the number of the others."""
    return {"entries": list(entries[:most]), "missing": max(0, len(entries) - most)}


def choose_detailed(hosts: Sequence[str], sick: Collection[str]) -> dict[str, str]:
    """Return the hosts whose details the page has, each with the ID of its element; ``sick`` are those with problems."""
    chosen = hosts if len(hosts) <= MAX_DETAILS else [host for host in hosts if host in sick][:MAX_DETAILS]
    return {host: f"n{number}" for number, host in enumerate(chosen)}


def build_row(
    node: Node,
    codes: Collection[str],
    rows: Sequence[Node],
    anchors: Mapping[str, str],
    faults: Iterable[str] = (),
) -> dict[str, Any]:
    """Return the node's row of the fleet map; ``codes`` are those of its problems, ``rows`` are its rows of the allocation, ``faults`` as in find_states."""
    states = find_states(node, codes, rows, faults)
    return {
        "host": node["host"],
        "node": node["node"],
        "ok": not codes,
        "anchor": anchors.get(node["host"], ""),
        "states": states,
        "cells": draw_cells(states),
        "width": len(states) * CELL,
        "counts": count_states(states),
    }


def build_details(
    node: Node, row: Mapping[str, Any], rows: Sequence[Node], problems: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what the page lists of one node below its row of the fleet map."""
    driver, runtime, test = node["driver"], node["runtime"], node["smoke_test"]
    return {
        **row,
        "problems": [{"cause": each["cause"], "remedy": each["remedy"]} for each in problems],
        "gpus": [_build_gpu(gpu, state) for gpu, state in zip(node["gpus"]["devices"], row["states"])],
        "driver": driver.get("version"),
        "cuda": driver.get("cuda_version"),
        "runtime": " ".join(str(part) for part in (runtime.get("name"), runtime.get("version")) if part),
        "handlers": ", ".join(runtime.get("handlers") or []),
        "toolkit": runtime.get("toolkit_version"),
        "resources": sorted((node["kubernetes"].get("resources") or {}).items()),
        "smoke": test["result"],
        "smoke_reason": test.get("reason"),
        "log": cut(test.get("log_tail") or [], MAX_LINES),
        "pods": cut(list(_list_holders(rows)), MAX_PODS),
    }


def _build_gpu(gpu: Node, state: str) -> dict[str, Any]:
    memory, slices = gpu.get("memory_total_bytes"), gpu.get("mig_slices") or {}
    return {
        "index": gpu.get("index"),
        "state": state,
        "name": gpu.get("name"),
        "uuid": gpu.get("uuid"),
        "pci": gpu.get("pci_address"),
        "gib": f"{memory / GIB:.0f}" if memory else None,
        "slices": ", ".join(f"{count} x {profile}" for profile, count in slices.items()),
    }


def _list_holders(rows: Iterable[Node]) -> Iterator[dict[str, Any]]:
    """Yield the pods of a node: namespace, name, what they hold, and the GPUs that the allocation names."""
    for row in rows:
        for pod in row.get("pods") or ():
            yield {
                "namespace": pod["namespace"],
                "name": pod["name"],
                "amount": pod["allocated"],
                "resource": row["resource"],
                "gpus": ", ".join(str(gpu["index"]) for gpu in pod["gpus"]),
            }
