# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Computes what the page of the report shows, from the report and from what is given beside it: the allocation, the cost, an earlier report.

Texts of nodes and pods stay as they are; what renders them has to escape them. Long lists are cut, and each says how many entries it lacks.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, Mapping, Sequence

from .changes import compare_reports
from .fleet_map import FAULTS, count_offered
from .node_rows import MAX_LINES, build_details, build_row, choose_detailed, cut
from .shares import count_shares, index_allocation, sum_namespaces
from .versions import count_products, count_software

#: Groups of problems or of drift, hosts that each of them names, and rows of a table.
MAX_GROUPS = 100
MAX_HOSTS = 200
MAX_ROWS = 300
#: The codes of problems, worst first. Others come last.
SEVERITY = (
    "api",
    "unreachable",
    "gpu_lost",
    "hw.ecc",
    "hw.remap",
    "hw.recovery",
    "hw.fabric",
    "kernel.xid",
    "driver_error",
    "driver_missing",
    "no_gpu",
    "node",
    "smoke_test",
    "runtime",
    "toolkit",
    "runtime_class",
    "cgroup_driver",
    "configuration",
    "drift",
    "restart_due",
    "maintenance",
)
NUMBERS = ("cost", "allocated_hours", "idle_hours", "wasted_hours")

Page = Dict[str, Any]
Node = Mapping[str, Any]
Report = Mapping[str, Any]


def build_page(
    report: Report,
    allocation: Mapping[str, Any] | None = None,
    cost: Mapping[str, Any] | None = None,
    earlier: Report | None = None,
) -> Page:
    """Return what the page shows, as plain data. Raises AttributeError, KeyError, TypeError or ValueError for other data."""
    rows, codes = index_allocation(allocation), _index_codes(report)
    faults = _index_faults(report)
    anchors = choose_detailed([node["host"] for node in report["nodes"]], codes)
    nodes = [
        build_row(node, codes.get(node["host"], ()), rows.get(node["node"], ()), anchors, faults.get(node["host"], ()))
        for node in report["nodes"]
    ]
    return {
        "ok": report["ok"],
        "counts": _count(report, codes),
        "groups": cut(group_problems(report["problems"], anchors), MAX_GROUPS),
        "nodes": nodes,
        "unexamined": cut(sorted(codes.keys() - {"", *(node["host"] for node in nodes)}), MAX_HOSTS),
        "details": list(_list_details(report, rows, nodes)),
        "details_missing": len(nodes) - len(anchors),
        "products": cut(count_products(report["nodes"]), MAX_ROWS),
        "software": cut(count_software(report["nodes"]), MAX_ROWS),
        "allocated": allocation is not None,
        "shares": count_shares(report, allocation),
        "namespaces": cut(sum_namespaces(allocation), MAX_ROWS),
        "findings": cut([each["message"] for each in (allocation or {}).get("findings") or []], MAX_ROWS),
        "drift": cut(group_drift(report["nodes"], anchors), MAX_GROUPS),
        "cost": None if cost is None else sum_cost(cost),
        "changes": None if earlier is None else cut(compare_reports(earlier, report), MAX_ROWS),
        "left_out": cut(report.get("left_out") or [], MAX_HOSTS),
        "notes": cut(report.get("notes") or [], MAX_ROWS),
        "fakes": report.get("fakes") or [],
        "plugin_images": report.get("plugin_images") or [],
        "runtime_class": report.get("runtime_class") or {},
        "schema": report["schema"],
    }


def _list_details(
    report: Report, rows: Mapping[str, Sequence[Mapping[str, Any]]], nodes: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    problems: dict[str, list[Mapping[str, Any]]] = {}
    for problem in report["problems"]:
        problems.setdefault(problem["host"], []).append(problem)
    for node, row in zip(report["nodes"], nodes):
        if row["anchor"]:
            yield build_details(node, row, rows.get(node["node"], ()), problems.get(node["host"], ()))


# -- the verdict


def _index_codes(report: Report) -> dict[str, set[str]]:
    """Return the codes of the problems of each host that has any."""
    found: dict[str, set[str]] = {}
    for problem in report["problems"]:
        found.setdefault(problem["host"], set()).add(problem["code"])
    return found


def _index_faults(report: Report) -> dict[str, list[str]]:
    """Return the causes of each host's problems of single GPUs."""
    found: dict[str, list[str]] = {}
    for problem in report["problems"]:
        if problem["code"] in FAULTS:
            found.setdefault(problem["host"], []).append(problem["cause"])
    return found


def _count(report: Report, codes: Mapping[str, set[str]]) -> dict[str, Any]:
    nodes = report["nodes"]
    hosts = {node["host"] for node in nodes}
    sick = {host for host in codes if host}
    offered = [number for number in map(count_offered, nodes) if number is not None]
    tests = [node["smoke_test"]["result"] for node in nodes]
    worst = min((each["code"] for each in report["problems"]), key=rank, default="")
    return {
        "nodes": len(hosts | sick),
        "nodes_ok": len(hosts - sick),
        "gpus": sum(node["gpus"]["count"] for node in nodes),
        "offered": sum(offered) if offered or not nodes else None,
        "problems": len(report["problems"]),
        "hosts": len(sick),
        "smoke": sum(result != "skipped" for result in tests),
        "smoke_ok": tests.count("passed"),
        "worst": worst,
    }


def rank(code: str) -> tuple[int, str]:
    """Return the rank of a code; the worst has the lowest."""
    return (SEVERITY.index(code) if code in SEVERITY else len(SEVERITY), code)


# -- problems and drift by cause


def group_problems(problems: Iterable[Mapping[str, Any]], anchors: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return [{code, remedy, cause, number, hosts}], worst first. ``cause`` is empty where the causes of the hosts differ; then each host has its own."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for problem in problems:
        groups.setdefault((problem["code"], problem["remedy"]), []).append(problem)
    found = [_build_group(code, remedy, members, anchors) for (code, remedy), members in groups.items()]
    return sorted(found, key=lambda group: (rank(group["code"]), -group["number"], group["remedy"]))


def _build_group(
    code: str, remedy: str, members: Sequence[Mapping[str, Any]], anchors: Mapping[str, str]
) -> dict[str, Any]:
    causes: dict[str, list[str]] = {}
    for member in members:
        causes.setdefault(member["host"], []).append(member["cause"])
    common = len({member["cause"] for member in members}) == 1
    hosts = [{**_link(host, anchors), "causes": [] if common else causes[host]} for host in sorted(causes)[:MAX_HOSTS]]
    return {
        "code": code,
        "remedy": remedy,
        "cause": members[0]["cause"] if common else "",
        "number": len(causes),
        "hosts": {"entries": hosts, "missing": len(causes) - len(hosts)},
    }


def group_drift(nodes: Iterable[Node], anchors: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return [{lines, number, hosts}]: hosts with the same difference are one entry, that of most hosts first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        lines = tuple(node["runtime"].get("drift") or ())
        if lines:
            groups.setdefault(lines, []).append(node["host"])
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[1]))
    return [
        {
            "lines": cut(lines, MAX_LINES),
            "number": len(hosts),
            "hosts": cut([_link(host, anchors) for host in hosts], MAX_HOSTS),
        }
        for lines, hosts in ordered
    ]


def _link(host: str, anchors: Mapping[str, str]) -> dict[str, Any]:
    return {"host": host, "anchor": anchors.get(host, "")}


# -- cost


def sum_cost(cost: Mapping[str, Any]) -> dict[str, Any]:
    """Return {currency, total, entries, missing}: rows by namespace and product, the dearest first.

    Hours are GPU hours. A number that no row has is None, as where utilisation or prices are not known. Idle hours have an empty namespace.
    """
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in cost["rows"]:
        groups.setdefault((str(row["namespace"] or ""), str(row["product"] or "")), []).append(row)
    rows = [
        {"namespace": namespace, "product": product, **_sum_numbers(members)}
        for (namespace, product), members in groups.items()
    ]
    rows.sort(key=lambda row: (-(row["cost"] or 0), row["namespace"], row["product"]))
    return {"currency": str(cost["currency"] or ""), "total": _sum_numbers(rows), **cut(rows, MAX_ROWS)}


def _sum_numbers(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = {name: [float(row[name]) for row in rows if row[name] is not None] for name in NUMBERS}
    return {name: sum(values) if values else None for name, values in known.items()}
