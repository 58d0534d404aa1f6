# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts products of GPUs and versions of software, and finds the nodes that differ from most of the others."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Mapping, Sequence, Tuple

#: Hosts with an unusual version that are named.
MAX_NAMED = 20

Node = Mapping[str, Any]
# (subject, version parts) -> host -> GPUs of it
Counted = Dict[Tuple[str, Tuple[str, ...]], Dict[str, int]]


def count_products(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """Return [{subject: product, versions: [driver, CUDA], nodes, gpus, outliers, missing}]; see _build_rows."""
    counted: Counted = {}
    for node in nodes:
        driver = node["driver"]
        for product in node["gpus"]["products"]:
            versions = str(driver.get("version") or ""), str(driver.get("cuda_version") or "")
            hosts = counted.setdefault((str(product.get("name") or ""), versions), {})
            hosts[node["host"]] = hosts.get(node["host"], 0) + product["count"]
    return _build_rows(counted)


def count_software(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """Return the same for the container runtimes, whose ``versions`` are [runtime, toolkit]."""
    counted: Counted = {}
    for node in nodes:
        runtime = node["runtime"]
        versions = str(runtime.get("version") or ""), str(runtime.get("toolkit_version") or "")
        counted.setdefault((str(runtime.get("name") or ""), versions), {})[node["host"]] = node["gpus"]["count"]
    return _build_rows(counted)


def _build_rows(counted: Counted) -> list[dict[str, Any]]:
    """Return the rows by subject, the versions of most nodes first.

    ``outliers`` are the hosts of versions that fewer nodes have than the subject's first ones, ``missing`` is the number of those that are not named.
    """
    most: dict[str, int] = {}
    for (subject, _versions), hosts in counted.items():
        most[subject] = max(most.get(subject, 0), len(hosts))
    ordered = sorted(counted.items(), key=lambda each: (each[0][0], -len(each[1]), each[0][1]))
    return [_build_version(subject, versions, hosts, most[subject]) for (subject, versions), hosts in ordered]


def _build_version(subject: str, versions: Sequence[str], hosts: Mapping[str, int], most: int) -> dict[str, Any]:
    unusual = sorted(hosts) if len(hosts) < most else []
    return {
        "subject": subject,
        "versions": list(versions),
        "nodes": len(hosts),
        "gpus": sum(hosts.values()),
        "outliers": unusual[:MAX_NAMED],
        "missing": max(0, len(unusual) - MAX_NAMED),
    }
