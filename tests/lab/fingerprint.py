# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection can change on the nodes and in the cluster, as text, to compare two states.

Two fingerprints of an unchanged cluster are equal. Values that kubelets, controllers and a restart write are left out.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

from . import cluster, nodes
from .settings import Settings
from .wait import LIMIT, poll

GPU_RESOURCES = ("nvidia.com/", "aliyun.com/", "nano-gpu/", "elasticgpu.io/", "amd.com/", "gpu.intel.com/")
# Resources that a program, and not the kubelet, writes into a node's status.
WRITTEN_RESOURCES = ("aliyun.com/gpu-count",)
MOST_LINES = 20
# Backups of files stay where they are by design, and those of useradd. Podman writes hosts, hostname and resolv.conf at each start of a node.
_READ_FILES = r"""
export LC_ALL=C
nvidia() { find /usr/bin /usr/lib/x86_64-linux-gnu -name '*nvidia*' "$@"; }
{
    find /etc /var/lib/gpu-kubernetes -type f
    find /var/lib/kubelet -maxdepth 1 -name config.yaml -o -name kubeadm-flags.env
    nvidia -type f
} 2>/dev/null | grep -Ev '^/etc/(hosts|hostname|resolv\.conf|\.updated|(passwd|group|shadow|gshadow)-)$|\.cache$|^/var/lib/gpu-kubernetes/backups/' \
    | sort | xargs --no-run-if-empty --delimiter='\n' sha256sum
{
    find /etc -type l -printf '%p -> %l\n'
    nvidia -type l -printf '%p -> %l\n'
    find /dev /var/lib -maxdepth 1 -name '*-gpu-*' -o -name nanogpu -o -name egpu
} | sort
dpkg-query --show --showformat 'package ${Package} ${Version} ${db:Status-Status}\n' | sort
apt-mark showhold | sed 's/^/hold /'
sysctl net.ipv4.ip_forward
"""
# Five minutes after a device plugin has left, the kubelet reports its removal once. If that request fails, the kubelet reports the former amount from
# then on (MachineInfo in pkg/kubelet/nodestatus/setters.go, 1.34): an amount counts only while the plugin's socket is there.
_SOCKETS = "find /var/lib/kubelet/device-plugins -type s ! -name kubelet.sock"
_KINDS = (
    *("nodes", "namespaces", "pods", "daemonsets.apps", "deployments.apps", "jobs.batch", "services", "configmaps"),
    *(
        "serviceaccounts",
        "runtimeclasses.node.k8s.io",
        "poddisruptionbudgets.policy",
        "networkpolicies.networking.k8s.io",
    ),
    *(f"validatingadmissionpolic{end}.admissionregistration.k8s.io" for end in ("ies", "ybindings")),
    *(f"{kind}.rbac.authorization.k8s.io" for kind in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")),
)
# A controller signs it for each of kubeadm's tokens, which expire.
_CLUSTER_INFO = ("kube-public", "cluster-info")


def take(settings: Settings) -> dict[str, str]:
    """Return the fingerprint of all nodes and of the cluster: what it is of -> lines.

    Raises LabError where a node or the API server does not answer.
    """
    machines = nodes.run_on_all(lambda node: nodes.execute(node, "sh", "-c", _READ_FILES), settings.nodes)
    sockets = nodes.run_on_all(lambda node: nodes.execute(node, "sh", "-c", _SOCKETS), settings.nodes)
    served = {node.name for node, found in zip(settings.nodes, sockets, strict=True) if found.strip()}
    texts = {node.name: text for node, text in zip(settings.nodes, machines, strict=True)}
    return {**texts, **_objects(settings, served)}


def compare(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return at most MOST_LINES lines that differ: removed lines begin with ``-`` after their key, new ones with ``+``."""
    found: list[str] = []
    for key in sorted({*before, *after}):
        former, present = (each.get(key, "").splitlines() for each in (before, after))
        lines = list(difflib.unified_diff(former, present, lineterm="", n=0))[2:]
        found += [f"{key}: {line}" for line in lines if not line.startswith("@@")]
    return found[:MOST_LINES]


def remaining(before: Mapping[str, str], settings: Settings, seconds: float = LIMIT) -> list[str]:
    """Return the lines that still differ from BEFORE after SECONDS, as ``compare``: pods and kubelets need time.

    Raises as ``take``.
    """
    return poll(lambda: compare(before, take(settings)), lambda found: not found, seconds, pause=5)


def _objects(settings: Settings, served: Collection[str]) -> dict[str, str]:
    """The cluster's objects by kind, without objects in deletion. SERVED are the nodes with device plugins."""
    answer = cluster.kubectl(settings, "get", ",".join(_KINDS), "--all-namespaces", "--output=json")
    found: dict[str, list[str]] = {}
    for item in json.loads(answer)["items"]:
        if "deletionTimestamp" not in item["metadata"]:
            found.setdefault(item["kind"], []).extend(_lines(item, served))
    return {kind: "\n".join(sorted(lines)) for kind, lines in found.items()}


def _lines(item: Mapping[str, Any], served: Collection[str]) -> list[str]:
    metadata, name = item["metadata"], item["metadata"]["name"]
    full_name = "/".join(filter(None, [metadata.get("namespace"), name]))
    if item["kind"] == "Node":
        return [f"{name} {line}" for line in _node(item, name in served)]
    if item["kind"] == "Pod":
        return [f"{metadata['namespace']}/{_without_suffix(metadata)}"]
    if item["kind"] == "ConfigMap" and (metadata["namespace"], name) != _CLUSTER_INFO:
        data = json.dumps([item.get("data"), item.get("binaryData")], sort_keys=True)
        return [f"{full_name} {hashlib.sha256(data.encode()).hexdigest()}"]
    return [full_name]


def _node(item: Mapping[str, Any], served: bool) -> list[str]:
    """Labels, the annotations of this collection, whether the node is schedulable, and its allocatable GPU resources."""
    metadata = item["metadata"]
    amounts = item["status"].get("allocatable", {})
    return [
        *(f"label {key}={value}" for key, value in metadata["labels"].items()),
        *(
            f"annotation {key}={value}"
            for key, value in metadata.get("annotations", {}).items()
            if "gpu-kubernetes" in key
        ),
        *(["unschedulable"] if item["spec"].get("unschedulable") else []),
        *(
            f"offers {key}={amount}"
            for key, amount in amounts.items()
            if key.startswith(GPU_RESOURCES if served else WRITTEN_RESOURCES) and amount != "0"
        ),
    ]


def _without_suffix(metadata: Mapping[str, Any]) -> str:
    """The name of a pod, without the part that its owner has generated."""
    template = metadata.get("labels", {}).get("pod-template-hash", "")
    return metadata.get("generateName", metadata["name"]).rstrip("-").removesuffix(f"-{template}")
