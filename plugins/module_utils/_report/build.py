# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the report from what was seen; see problems.py for the shapes that go in.

The report holds nothing that differs from one run to the next on an unchanged cluster: no time, no temperature, no
used memory. So its file changes only when something of the cluster did.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Dict, Iterable, Mapping

from . import problems

if TYPE_CHECKING:
    from .problems import Cluster, Observation

SCHEMA = "gpu.kubernetes/report/v1"
STAND_IN = "stand-in"

Report = Dict[str, Any]


def build(observations: Iterable[Observation], cluster: Cluster, notes: Iterable[str] = ()) -> Report:
    """Return the report.

    {schema, ok, summary: {nodes, gpus, problems}, resource_name, runtime_class, plugin_images, nodes: [node],
    problems: [{host, code, cause, remedy, sentence}], notes: [str], stand_ins: [image]}
    """
    seen = sorted(observations, key=lambda observation: str(observation["host"]))
    found = problems.cluster_problems(cluster)
    nodes = []
    for observation in seen:
        own = problems.host_problems(observation, cluster)
        found += own
        nodes.append(_node(observation, cluster, not own))
    images = sorted(set(cluster.get("plugin_images") or []))
    return {
        "schema": SCHEMA,
        "ok": not found,
        "summary": {
            "nodes": len(nodes),
            "gpus": sum(node["gpus"]["count"] for node in nodes),
            "problems": len(found),
        },
        "resource_name": cluster.get("resource_name"),
        "runtime_class": dict(cluster.get("runtime_class") or {}),
        "plugin_images": images,
        "nodes": nodes,
        "problems": found,
        "notes": [*notes, *_own_notes(seen, cluster)],
        "stand_ins": sorted({image for image in [*images, cluster.get("smoke_image") or ""] if STAND_IN in image}),
    }


def _own_notes(seen: list[Observation], cluster: Cluster) -> list[str]:
    notes = []
    for observation in seen:
        entry = problems.node_entry(observation, cluster)
        if entry.get("ok") and entry.get("reason"):
            notes.append(f"{observation['host']}: {entry['reason']}")
        test = problems.smoke_entry(observation, cluster)
        if test.get("skipped"):
            notes.append(f"{observation['host']}: smoke test skipped, {test.get('reason') or 'no reason given'}")
    return notes


def _node(seen: Observation, cluster: Cluster, well: bool) -> dict[str, Any]:
    nvml, runtime = seen["nvml"], seen["runtime"]
    entry = problems.node_entry(seen, cluster)
    gpus = nvml.get("gpus") or []
    return {
        "host": seen["host"],
        "node": seen["node"],
        "ok": well,
        "gpus": {"count": len(gpus), "products": products(gpus), "devices": [_device(gpu) for gpu in gpus]},
        "driver": {
            "source": nvml.get("source"),
            "version": nvml.get("driver_version"),
            "cuda_version": nvml.get("cuda_driver_version"),
        },
        "runtime": {
            "name": runtime.get("runtime_name"),
            "version": runtime.get("runtime_version"),
            "default": runtime.get("default_runtime"),
            "handlers": sorted(runtime.get("runtimes") or {}),
            "toolkit_version": (seen.get("toolkit") or {}).get("version"),
            "drift": difference(seen.get("configuration") or {}),
        },
        "kubernetes": {key: entry.get(key) for key in ("ready", "schedulable", "capacity", "allocatable", "expected")},
        "smoke_test": _smoke(problems.smoke_entry(seen, cluster)),
    }


def products(gpus: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count GPUs of one name and memory: [{name, count, memory_total_bytes}] in the order of their first GPU."""
    counted: dict[tuple[Any, Any], dict[str, Any]] = {}
    for gpu in gpus:
        name, memory = gpu.get("name"), gpu.get("memory_total_bytes")
        product = counted.setdefault((name, memory), {"name": name, "count": 0, "memory_total_bytes": memory})
        product["count"] += 1
    return list(counted.values())


def difference(configuration: Mapping[str, Any]) -> list[str]:
    """Return what containerd_config would change, as lines of a unified difference; secrets are masked by it."""
    told = configuration.get("diff") or {}
    before, after = (str(told.get(side) or "").splitlines() for side in ("before", "after"))
    return list(difflib.unified_diff(before, after, "as it is", "as declared", lineterm=""))


def _device(gpu: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("index", "uuid", "name", "pci_address", "memory_total_bytes", "mig_mode", "compute_capability", "lost")
    return {key: gpu.get(key) for key in kept}


def _smoke(test: Mapping[str, Any]) -> dict[str, Any]:
    if not test:
        return {"result": "not run"}
    result = "passed" if test.get("passed") else "skipped" if test.get("skipped") else "failed"
    told = {"reason": test.get("reason"), "log_tail": list(test.get("log_tail") or [])} if result == "failed" else {}
    return {"result": result, **told}
