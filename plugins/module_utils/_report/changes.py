# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares two reports."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Mapping

# {kind, host, before, after}; the kinds are those of KINDS, and host is empty for a problem of the cluster
Change = Dict[str, str]

Node = Mapping[str, Any]

#: What of a node is compared, as text.
FIELDS: tuple[tuple[str, Callable[[Node], str]], ...] = (
    ("driver", lambda node: _format(node["driver"]["version"])),
    ("cuda", lambda node: _format(node["driver"]["cuda_version"])),
    ("runtime", lambda node: _join(node["runtime"]["name"], node["runtime"]["version"])),
    ("toolkit", lambda node: _format(node["runtime"].get("toolkit_version"))),
    ("resources", lambda node: _format_amounts(node["kubernetes"].get("resources") or {})),
    ("slices", lambda node: _format_slices(node["gpus"]["devices"])),
    ("smoke_test", lambda node: _format(node["smoke_test"]["result"])),
)
#: In the order in which changes are listed.
KINDS = (
    "problem_new",
    "problem_solved",
    "node_added",
    "node_removed",
    "gpu_added",
    "gpu_removed",
    *(name for name, _read in FIELDS),
)


def compare_reports(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """Return what differs, by kind and host. A node that only one of the reports has is one change. Raises KeyError or TypeError for other data."""
    found = [*_compare_problems(before, after), *_compare_nodes(before, after)]
    return sorted(found, key=lambda change: KINDS.index(change["kind"]))


def _compare_problems(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    old, new = ({_identify(each): each["cause"] for each in report["problems"]} for report in (before, after))
    for key in sorted({*old, *new}):
        if key not in old:
            yield _build("problem_new", key[0], "", new[key])
        elif key not in new:
            yield _build("problem_solved", key[0], old[key], "")


def _identify(problem: Mapping[str, Any]) -> tuple[str, str, str]:
    return problem["host"], problem["code"], problem["cause"]


def _compare_nodes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    old, new = ({node["host"]: node for node in report["nodes"]} for report in (before, after))
    for host in sorted({*old, *new}):
        if host not in old:
            yield _build("node_added", host, "", str(new[host]["gpus"]["count"]))
        elif host not in new:
            yield _build("node_removed", host, str(old[host]["gpus"]["count"]), "")
        else:
            yield from _compare_node(host, old[host], new[host])


def _compare_node(host: str, before: Node, after: Node) -> Iterator[Change]:
    old, new = (
        {str(gpu.get("uuid") or gpu.get("pci_address")): gpu for gpu in node["gpus"]["devices"]}
        for node in (before, after)
    )
    for gpu in sorted({*old, *new}):
        if gpu not in old:
            yield _build("gpu_added", host, "", _join(new[gpu].get("name"), gpu))
        elif gpu not in new:
            yield _build("gpu_removed", host, _join(old[gpu].get("name"), gpu), "")
    for name, read in FIELDS:
        pair = read(before), read(after)
        if pair[0] != pair[1]:
            yield _build(name, host, *pair)


def _build(kind: str, host: str, before: str, after: str) -> Change:
    return {"kind": kind, "host": host, "before": before, "after": after}


def _format(value: Any) -> str:
    return "" if value is None else str(value)


def _join(*parts: Any) -> str:
    return " ".join(str(part) for part in parts if part)


def _format_amounts(amounts: Mapping[str, Any]) -> str:
    return ", ".join(f"{amounts[name]} {name}" for name in sorted(amounts))


def _format_slices(devices: Any) -> str:
    found = (
        (gpu["index"], _format_amounts(gpu.get("mig_slices") or {}))
        for gpu in devices
        if gpu.get("mig_mode") == "enabled"
    )
    return "; ".join(f"GPU {index}: {slices or '-'}" for index, slices in found)
