# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the workloads of a cluster, and the facts that rules compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Mapping

from .._kube_error import ApiError
from .._kubernetes.api import DRA_VERSIONS, list_known
from .._kubernetes.objects import FINISHED_PHASES
from .model import Document

if TYPE_CHECKING:
    from .._kube_api import Cluster

# Kinds by which controllers make pods, each with its API versions.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "Deployment": ("apps/v1",),
    "ReplicaSet": ("apps/v1",),
    "StatefulSet": ("apps/v1",),
    "DaemonSet": ("apps/v1",),
    "Job": ("batch/v1",),
    "CronJob": ("batch/v1",),
}
WORKLOADS: dict[str, tuple[str, ...]] = {
    "Pod": ("v1",),
    **TEMPLATES,
    "ResourceQuota": ("v1",),
    "LimitRange": ("v1",),
    "ResourceClaimTemplate": DRA_VERSIONS,
}
# Their pods are like those of an object that is read, or of the kubelet itself.
OWNERS = {"Node", *WORKLOADS}
FACTS: dict[str, tuple[str, ...]] = {
    "Node": ("v1",),
    "Pod": ("v1",),
    "RuntimeClass": ("node.k8s.io/v1",),
    "DeviceClass": DRA_VERSIONS,
}


def read_facts(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    """Return the facts of a cluster as fields of a context. Raises ApiError."""
    found = {kind: list_known(cluster, kind, *versions) for kind, versions in FACTS.items()}
    return {
        "nodes": found["Node"],
        "pods": [pod for pod in found["Pod"] if (pod.get("status") or {}).get("phase") not in FINISHED_PHASES],
        "runtime_classes": found["RuntimeClass"],
        "device_classes": found["DeviceClass"],
    }


def read_workloads(
    cluster: Cluster, namespaces: Iterable[str] = (), kinds: Mapping[str, tuple[str, ...]] = WORKLOADS
) -> list[Document]:
    """Return the objects of these kinds that have no owner, and of each owner of another kind one object. Raises ApiError."""
    found: dict[str, Document] = {}
    for namespace in list(namespaces) or [""]:
        for kind, versions in kinds.items():
            for each in sorted(list_known(cluster, kind, *versions, namespace=namespace), key=_rank, reverse=True):
                metadata = each.get("metadata") or {}
                owners = metadata.get("ownerReferences") or []
                if any(owner.get("kind") in OWNERS for owner in owners):
                    continue
                identity = str(owners[0].get("uid") or owners[0].get("name")) if owners else str(metadata.get("uid"))
                found.setdefault(f"{kind} {identity}", Document(cluster.server, each))
    return list(found.values())


def _rank(item: Mapping[str, Any]) -> tuple[bool, str]:
    """Return what is greatest for the object that stands for all of its owner: it has pods, else it is the newest."""
    has_pods = bool((item.get("spec") or {}).get("replicas"))
    return has_pods, str((item.get("metadata") or {}).get("creationTimestamp") or "")


def read_templates(cluster: Cluster) -> list[Document]:
    """Return the objects by which controllers make pods; none for an account that may not list them. Raises ApiError."""
    try:
        return read_workloads(cluster, kinds=TEMPLATES)
    except ApiError as error:
        if error.status != 403:
            raise
        return []
