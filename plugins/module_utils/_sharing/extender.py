# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scheduler extenders of sharing strategies: when their pods are restarted, and which of them kube-scheduler calls."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Iterable, Mapping, Sequence

from .catalogue import STRATEGIES, Strategy, matching

#: The annotation of pod templates whose value is the time of the last restart.
RESTARTED = "gpu-kubernetes/restarted"
_TIME = "%Y-%m-%dT%H:%M:%SZ"


def find_restart(found: Sequence[Sequence[Mapping[str, Any]]], days: int, now: str) -> str:
    """Return the value of the annotation RESTARTED: *now* if the pods are to be restarted, else the present value, or empty.

    ``found`` has a list with the strategy's DaemonSet, then lists of its pods. A pod that is older than ``days`` is a reason, 0 for never: both programs
    read their ServiceAccount token once, and it expires after at most a year. A pod from before the last restart is on a node that is not Ready, and is
    not a reason. Times are UTC, as in ``metadata.creationTimestamp``.
    """
    present = next((_annotations_of(item).get(RESTARTED, "") for item in (found[0] if found else ())), "")
    if days <= 0:
        return present
    since = (datetime.strptime(now, _TIME) - timedelta(days=days)).strftime(_TIME)
    old = any(pod["metadata"].get("creationTimestamp", now) < since for pods in found[1:] for pod in pods)
    return now if old and present < since else present


def _annotations_of(daemon_set: Mapping[str, Any]) -> Mapping[str, str]:
    template = (daemon_set.get("spec") or {}).get("template") or {}
    return (template.get("metadata") or {}).get("annotations") or {}


def find_capacities(
    nodes: Iterable[Mapping[str, Any]], resources: Sequence[str], planned: Mapping[str, Sequence[int]] | None = None
) -> dict[str, list[int]]:
    """Return by node its capacity of the resources, in their order, for nodes that have any of the first one.

    ``nodes`` are rows of gpu_nodes_info. ``planned`` are capacities that a run would give nodes; they replace those of the rows.
    """
    found = {}
    for row in nodes:
        units = [int(row["gpu_capacity"].get(name, 0)) for name in resources]
        if units and units[0]:
            found[row["name"]] = units
    return {**found, **{name: [int(each) for each in units] for name, units in (planned or {}).items()}}


def merge_extenders(
    others: Iterable[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]], strategies: Iterable[str]
) -> list[dict[str, Any]]:
    """Return the extenders of kube-scheduler: *others*, without those of the strategies, then the *settings* by strategy.

    ``strategies`` are those whose extenders a run sets or removes. An extender belongs to a strategy if it manages one of its resources, or by the end
    of its address.
    """
    rows = [STRATEGIES[name] for name in strategies]
    kept = [dict(each) for each in others if not any(_belongs(each, row) for row in rows)]
    return kept + [dict(each) for each in settings.values() if each]


def _belongs(extender: Mapping[str, Any], row: Strategy) -> bool:
    managed = {str(each.get("name")): 1 for each in extender.get("managedResources") or []}
    address = str(extender.get("urlPrefix") or "").rstrip("/")
    return bool(matching(managed, row.resources)) or bool(row.extender_path and address.endswith(row.extender_path))
