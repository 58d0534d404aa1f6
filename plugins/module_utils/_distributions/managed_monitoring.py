# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exporter of a managed cluster: on which nodes it runs, and how Prometheus finds it, by the API server alone."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._exporters.catalogue import DAEMON_SET, get_exporter
from .managed import Object, Owner, list_tolerations

#: The mark of nodes that get the exporter, and the vendor of their GPUs.
EXPORTER_LABEL = "gpu-kubernetes/exporter"
VENDOR = "nvidia"
EXPORTER, OPERATOR = "exporter", "operator"


@dataclass
class Monitoring:
    """What a run would do. ``labels`` has those of each node, and ``pods`` the exporters of others that Prometheus is to find."""

    labels: dict[str, dict[str, str]]
    nodes: list[str] = field(default_factory=list)
    address: str = ""
    selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[dict[str, str]] = field(default_factory=list)
    pods: dict[str, t.Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


def plan_monitoring(
    with_gpus: t.Sequence[tuple[Object, Owner]], selector: t.Mapping[str, str], request: t.Mapping[str, t.Any]
) -> Monitoring:
    """Return the exporter of the nodes *with_gpus*, which have the labels of *selector* if it has any.

    *request* has the ``mode`` (EXPORTER or OPERATOR), the ``provider`` and ``method`` of gpu_exporter, the ``nodes`` of the module
    gpu_exporters_info, and the ``pods`` with exporters of others, empty for those of this collection. Raises KeyError for an unknown exporter.
    """
    plan = Monitoring({name: {} for name in request["nodes"]}, pods=dict(request["pods"]))
    if get_exporter(request["provider"]).vendor != VENDOR:
        plan.refusals.append(
            f"{get_exporter(request['provider']).title} serves no GPUs of NVIDIA, which alone are monitored in a managed cluster, so set"
            " gpu_exporter_provider to nvidia_gpu_exporter or dcgm_exporter."
        )
        return plan
    if request["method"] != DAEMON_SET:
        plan.refusals.append(
            f"gpu_exporter_method is {request['method']}, which needs the hosts, so leave it out or set it to {DAEMON_SET}."
        )
    chosen: list[Object] = []
    left: dict[str, list[str]] = {}
    for node, owner in with_gpus:
        name = str(node["metadata"]["name"])
        found = (request["nodes"].get(name) or {}).get("exporters") or []
        used = next((each for each in found if not each["managed"] and _is_of_vendor(each)), None)
        if used:
            left.setdefault(f"{used['namespace']}/{used['name']} serves the metrics", []).append(name)
        elif not owner.is_plugin_open:
            # The runtime of these nodes ignores the variable by which a pod gets all GPUs.
            left.setdefault(
                "GPUs are visible there only to pods that request them; use the provider's metrics", []
            ).append(name)
        else:
            chosen.append(node)
    plan.notes += [f"No exporter is deployed on {', '.join(names)}, since {reason}." for reason, names in left.items()]
    _choose(plan, chosen, selector, [name for names in left.values() for name in names], request)
    if request["mode"] == OPERATOR and not plan.nodes and not plan.pods:
        plan.refusals.append(
            "No exporter is deployed, so set gpu_prometheus_exporter_pods to the namespace, labels, port and exporter of the pods that serve the metrics, or"
            " gpu_managed_cluster_monitoring to none."
        )
    return plan


def _is_of_vendor(found: t.Mapping[str, t.Any]) -> bool:
    return get_exporter(str(found["exporter"])).vendor == VENDOR


def _choose(
    plan: Monitoring,
    chosen: t.Sequence[Object],
    selector: t.Mapping[str, str],
    left: t.Sequence[str],
    request: t.Mapping[str, t.Any],
) -> None:
    if not chosen:
        return
    if selector and left:
        plan.refusals.append(
            f"gpu_managed_cluster_node_selector also selects {', '.join(left)}, which get no exporter, so give it a label that these nodes do not have, or"
            " set gpu_managed_cluster_monitoring to none."
        )
    plan.nodes = [str(node["metadata"]["name"]) for node in chosen]
    plan.address = str(request["nodes"].get(plan.nodes[0], {}).get("address", ""))
    plan.selector = dict(selector) or {EXPORTER_LABEL: "true"}
    plan.tolerations = list_tolerations(chosen)
    if not selector:
        for name in plan.nodes:
            plan.labels[name] = {EXPORTER_LABEL: "true"}
