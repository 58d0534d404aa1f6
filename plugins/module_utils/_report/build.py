# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the report from observations; checks.py describes their shapes.

The report has no times, temperatures or used memory, so that its file changes only with the cluster.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, Dict, Iterable, Mapping

from .._checks.health import find_health
from .._checks.model import WARN
from .._edge import list_notes
from .._mig.facts import count_profiles
from .._sharing.catalogue import gpu_resources
from .._text import make_printable
from .._vendors import BY_NAME, SERVED
from . import checks

if TYPE_CHECKING:
    from .checks import Cluster, Observation

SCHEMA = "gpu.kubernetes/report/v1"
FAKE = "fake"

# The result of an earlier smoke test is valid while these are equal.
TESTED = ("node", "gpus", "driver", "runtime", "resource_name")

Report = Dict[str, Any]


def build_report(
    observations: Iterable[Observation],
    cluster: Cluster,
    notes: Iterable[str] = (),
    earlier: Mapping[str, Any] | None = None,
) -> Report:
    """Return the report.

    {schema, ok, summary: {nodes, gpus, problems}, resource_name, runtime_class, plugin_images, nodes: [node],
    problems: [{host, code, cause, remedy, sentence}], left_out: [host], notes: [str], fakes: [image]}

    ``earlier`` is the report of an earlier run; anything else is ignored. An unchanged node that was not tested in this run keeps
    its earlier smoke test. If the run is limited, hosts outside it keep their entries.
    """
    known = earlier if earlier and earlier.get("schema") == SCHEMA else {}
    before = {node["host"]: node for node in known.get("nodes") or []}
    found = checks.find_cluster_problems(cluster)
    nodes: dict[str, dict[str, Any]] = {}
    join = checks.index_cluster(cluster)
    for observation in observations:
        node, own = _examine(join(observation), before.get(observation["host"]) or {})
        nodes[node["host"]] = node
        found += own
    expected_hosts = {*(cluster.get("hosts") or []), *nodes}
    found += checks.find_unreachable(expected_hosts - set(nodes))
    if cluster.get("limited"):
        nodes.update({host: node for host, node in before.items() if host not in expected_hosts})
        found += [problem for problem in known.get("problems") or [] if problem["host"] not in {"", *expected_hosts}]
    return _assemble([nodes[host] for host in sorted(nodes)], found, cluster, notes)


def _assemble(nodes: list[dict[str, Any]], found: list[Any], cluster: Cluster, notes: Iterable[str]) -> Report:
    images = sorted(set(cluster.get("plugin_images") or []))
    used = {*images, *(node["smoke_test"].get("image", "") for node in nodes)}
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
        # Those of the cluster first; sorted() is stable, so that the order within a host stays.
        "problems": sorted(found, key=lambda problem: str(problem["host"])),
        "left_out": sorted(cluster.get("left_out") or []),
        "notes": [
            *notes,
            *(note for node in nodes for note in node["notes"]),
            *_list_left_cordoned(cluster),
            *_list_edge_notes(cluster),
        ],
        "fakes": sorted(image for image in used if FAKE in image),
    }


def _list_left_cordoned(cluster: Cluster) -> list[str]:
    """Return a note for each node outside the run that this collection has cordoned and not uncordoned yet."""
    known = {entry["name"] for entry in cluster.get("nodes") or []}
    others = {entry["name"]: entry for entry in cluster.get("others_in_maintenance") or []}
    left = [others[name] for name in sorted(set(others) - known) if checks.is_left_cordoned(others[name])]
    return [
        make_printable(f"node {each['name']}, which is not in this run, {each['maintenance']['message']}")
        for each in left
    ]


def _list_edge_notes(cluster: Cluster) -> list[str]:
    """Return what is different on the nodes of edge frameworks, once for each framework."""
    names = {entry.get("edge") or "" for entry in cluster.get("nodes") or []}
    return [note for name in sorted(names) for note in list_notes(name)]


def _examine(observation: Observation, before: Mapping[str, Any]) -> tuple[dict[str, Any], list[checks.Problem]]:
    """Return (node, problems) of one host; ``before`` is its node in the earlier report, or empty."""
    node = _build_node(observation)
    if node["smoke_test"]["result"] == "not run" and all(node[part] == before.get(part) for part in TESTED):
        node["smoke_test"] = before["smoke_test"]
    found = checks.find_host_problems({**observation, "smoke_test": node["smoke_test"]})
    return {**node, "ok": not found, "notes": _list_notes(node, observation)}, found


def _list_notes(node: Mapping[str, Any], observation: Observation) -> list[str]:
    entry = observation["kubernetes"]
    reasoned = entry.get("ok") or not entry.get("judged", True)
    remark = entry.get("reason") if reasoned else (entry.get("maintenance") or {}).get("message")
    notes = [f"{node['host']}: {remark}"] if remark and not checks.is_left_cordoned(entry) else []
    if not checks.serves_nvidia(observation):
        titles = " and ".join(BY_NAME[name].title for name in observation["devices"]["vendors"])
        notes.append(
            f"{node['host']}: its GPUs are of {titles}, so it gets no driver, toolkit and runtime of {SERVED.title}"
        )
    if node["smoke_test"]["result"] == "skipped":
        notes.append(f"{node['host']}: smoke test skipped, {node['smoke_test']['reason']}")
    warnings = [cause for cause in find_health(observation["nvml"]) if cause["verdict"] == WARN]
    notes += [f"{node['host']}: {'; '.join(cause['details'])}; {cause['remedy']}" for cause in warnings]
    unlicensed = [str(gpu["index"]) for gpu in observation["nvml"].get("gpus") or [] if _is_unlicensed(gpu)]
    if unlicensed:
        notes.append(
            f"{node['host']}: the vGPU licence of GPU {', '.join(unlicensed)} is missing, without which the driver slows the GPU down; set "
            "nvidia_driver_vgpu_license_token, or read the log of nvidia-gridd"
        )
    return notes


def _is_unlicensed(gpu: Mapping[str, Any]) -> bool:
    found = gpu.get("vgpu_license")
    return gpu.get("virtualization_mode") == "vgpu" and found is not None and not found["licensed"]


def _build_node(observation: Observation) -> dict[str, Any]:
    nvml, runtime, entry = observation["nvml"], observation["runtime"], observation["kubernetes"]
    gpus = nvml.get("gpus") or []
    others = [
        {
            "name": gpu["model"] or f"{BY_NAME[gpu['vendor']].title} {gpu['device_id']}",
            "memory_total_bytes": gpu["memory_bytes"] or None,
        }
        for gpu in (observation.get("devices") or {}).get("devices") or []
        if gpu["vendor"] in observation["devices"]["vendors"]
    ]
    return {
        "host": observation["host"],
        "node": observation["node"],
        "ok": False,  # _examine sets it
        "gpus": {
            "count": len(gpus) + len(others),
            "products": count_products([*gpus, *others]),
            "devices": [_build_device(gpu) for gpu in gpus],
        },
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
            "toolkit_version": (observation.get("toolkit") or {}).get("version"),
            "drift": render_difference(observation.get("configuration") or {}),
        },
        "resource_name": (observation.get("plugin") or {}).get("resource_name"),
        "kubernetes": {
            **{key: entry.get(key) for key in ("ready", "schedulable", "capacity", "allocatable", "expected")},
            # A kubelet reports a resource that the node had once with 0.
            "resources": {
                name: units for name, units in gpu_resources(entry.get("gpu_resources") or {}).items() if units
            },
        },
        "smoke_test": observation["smoke_test"],
    }


def count_products(gpus: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Count GPUs of one name and memory: [{name, count, memory_total_bytes}] in the order of their first GPU."""
    counted: dict[tuple[Any, Any], dict[str, Any]] = {}
    for gpu in gpus:
        name, memory = gpu.get("name"), gpu.get("memory_total_bytes")
        product = counted.setdefault((name, memory), {"name": name, "count": 0, "memory_total_bytes": memory})
        product["count"] += 1
    return list(counted.values())


def render_difference(configuration: Mapping[str, Any]) -> list[str]:
    """Return the changes that a merge of the configuration would make, as lines of a unified diff of each file without context.

    The merge has masked credentials.
    """
    diffs = configuration.get("diff") or []
    lines: list[str] = []
    for each in [diffs] if isinstance(diffs, Mapping) else diffs:
        before, after = (str(each.get(side) or "").splitlines() for side in ("before", "after"))
        file = each.get("before_header") or "file"
        lines += difflib.unified_diff(before, after, f"{file} as it is", f"{file} as declared", lineterm="", n=0)
    return lines


def _build_device(gpu: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("index", "uuid", "name", "pci_address", "memory_total_bytes", "mig_mode", "compute_capability", "lost")
    # Their UUIDs are others after each boot.
    return {**{key: gpu.get(key) for key in keys}, "mig_slices": count_profiles(gpu)}
