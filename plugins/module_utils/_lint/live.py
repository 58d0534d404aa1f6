# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the workloads of a cluster, and the facts that rules compare with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable

from .._kube_error import ApiError
from .._kubernetes.objects import FINISHED_PHASES
from .model import Document

if TYPE_CHECKING:
    from .._kube_api import Cluster

WORKLOADS = (
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "ResourceQuota"),
    ("v1", "LimitRange"),
)
# Their pods are like those of an object that is read, or of the kubelet itself.
OWNERS = {"ReplicaSet", "Node", *(kind for _api, kind in WORKLOADS)}
FACTS = (("v1", "Node"), ("v1", "Pod"), ("node.k8s.io/v1", "RuntimeClass"), ("resource.k8s.io/v1", "DeviceClass"))


def read_facts(cluster: Cluster) -> dict[str, list[dict[str, Any]]]:
    """Return the facts of a cluster as fields of a context. Raises ApiError."""
    found = {kind: _list(cluster, api, kind) for api, kind in FACTS}
    return {
        "nodes": found["Node"],
        "pods": [pod for pod in found["Pod"] if (pod.get("status") or {}).get("phase") not in FINISHED_PHASES],
        "runtime_classes": found["RuntimeClass"],
        "device_classes": found["DeviceClass"],
    }


def read_workloads(cluster: Cluster, namespaces: Iterable[str]) -> list[Document]:
    """Return the objects of the cluster that have no owner, and of each owner of another kind one pod. Raises ApiError."""
    found: dict[str, Document] = {}
    for namespace in list(namespaces) or [""]:
        for api, kind in WORKLOADS:
            for each in _list(cluster, api, kind, namespace):
                metadata = each.get("metadata") or {}
                owners = metadata.get("ownerReferences") or []
                if any(owner.get("kind") in OWNERS for owner in owners):
                    continue
                identity = str(owners[0].get("uid") or owners[0].get("name")) if owners else str(metadata.get("uid"))
                found.setdefault(f"{kind} {identity}", Document(cluster.server, each))
    return list(found.values())


def _list(cluster: Cluster, api: str, kind: str, namespace: str = "") -> list[dict[str, Any]]:
    try:
        return cluster.objects(api, kind, namespace=namespace)
    except ApiError as error:
        if error.status == 404:  # a kind that this Kubernetes does not have
            return []
        raise
