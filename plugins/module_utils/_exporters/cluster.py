# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exporters that run as DaemonSets of a cluster, by node."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, NamedTuple

from .catalogue import Exporter, find_by_image

Object = Mapping[str, Any]

MANAGER_LABEL, MANAGER = "app.kubernetes.io/managed-by", "gpu.kubernetes"
#: The label by which NVIDIA's GPU Operator deploys its exporter on a node, and its values, also while it has paused the pod.
OPERATOR_LABEL = "nvidia.com/gpu.deploy.dcgm-exporter"
OPERATOR_VALUES = ("true", "paused-for-mig-change", "paused-for-driver-upgrade")


class Deployed(NamedTuple):
    """A DaemonSet of an exporter."""

    namespace: str
    name: str
    exporter: Exporter
    #: What has deployed it, as a title; empty if that is unknown.
    owner: str
    managed: bool
    selector: Mapping[str, str]
    port: int


def find_daemon_sets(items: Iterable[Object]) -> list[Deployed]:
    """Return the DaemonSets whose image is an exporter's."""
    return [found for item in items if (found := _read_daemon_set(item)) is not None]


def _read_daemon_set(item: Object) -> Deployed | None:
    metadata, spec = item.get("metadata") or {}, item.get("spec") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or []
    known = [(each, row) for each in containers if (row := find_by_image(str(each.get("image")))) is not None]
    if not known:
        return None
    container, exporter = known[0]
    ports = [port.get("containerPort") for port in container.get("ports") or []]
    labels = metadata.get("labels") or {}
    return Deployed(
        str(metadata.get("namespace")),
        str(metadata.get("name")),
        exporter,
        _find_owner(metadata, str(container.get("image"))),
        labels.get(MANAGER_LABEL) == MANAGER,
        (spec.get("selector") or {}).get("matchLabels") or {},
        int(ports[0]) if ports and isinstance(ports[0], int) else exporter.port,
    )


def _find_owner(metadata: Mapping[str, Any], image: str) -> str:
    labels = metadata.get("labels") or {}
    owners = [str(owner.get("kind")) for owner in metadata.get("ownerReferences") or []]
    if labels.get("app") == "nvidia-dcgm-exporter" or "ClusterPolicy" in owners:
        return "NVIDIA's GPU Operator"
    words = [str(metadata.get("namespace")), str(metadata.get("name")), image, *map(str, labels.values())]
    return "NVSentinel" if any("nvsentinel" in word for word in words) else ""


def describe_nodes(
    nodes: Iterable[Object], deployed: Iterable[tuple[Deployed, Iterable[Object]]]
) -> dict[str, dict[str, Any]]:
    """Return for each node its internal address and its exporters, from the DaemonSets with their pods.

    The address of an exporter is empty while its pod has none.
    """
    found: dict[str, dict[str, Any]] = {
        str((node.get("metadata") or {}).get("name")): {"address": _read_address(node), "exporters": []}
        for node in nodes
    }
    labels = {str(node["metadata"]["name"]): node["metadata"].get("labels") or {} for node in nodes}
    for daemon_set, pods in deployed:
        addresses = {name: "" for name, own in labels.items() if _is_operated(daemon_set, own)}
        for pod in pods:
            node = str((pod.get("spec") or {}).get("nodeName") or "")
            address = str((pod.get("status") or {}).get("podIP") or "")
            addresses[node] = format_address(address, daemon_set.port) if address else addresses.get(node, "")
        for node, address in addresses.items():
            if node in found:
                found[node]["exporters"].append(_describe(daemon_set, address))
    return found


def _is_operated(daemon_set: Deployed, labels: Mapping[str, str]) -> bool:
    return daemon_set.owner == "NVIDIA's GPU Operator" and labels.get(OPERATOR_LABEL) in OPERATOR_VALUES


def _describe(daemon_set: Deployed, address: str) -> dict[str, Any]:
    return {
        "namespace": daemon_set.namespace,
        "name": daemon_set.name,
        "exporter": daemon_set.exporter.name,
        "owner": daemon_set.owner,
        "managed": daemon_set.managed,
        "address": address,
    }


def _read_address(node: Object) -> str:
    addresses = (node.get("status") or {}).get("addresses") or []
    return next((str(each.get("address")) for each in addresses if each.get("type") == "InternalIP"), "")


def format_address(address: str, port: int) -> str:
    """Return address and port, an IPv6 address in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
