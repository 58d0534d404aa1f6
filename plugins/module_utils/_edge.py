# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of edge frameworks: how a node or a host shows which one it has, and what is different there.

A framework is a row of FRAMEWORKS, and no other code names one. Sources: superedge/superedge v0.9.0, docs of KubeEdge 1.23 and OpenYurt 1.7.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

_PORT = re.compile(r"\Ahttps?://[^/\s]*:(\d+)(?:/|\Z)")


@dataclass(frozen=True)
class Framework:
    """One edge framework. A node or host has it if one of its marks is there. An empty field does not apply to it."""

    name: str
    title: str
    #: Marks of a node: a label with its value, and a part of the kubelet's version.
    labels: tuple[tuple[str, str], ...] = ()
    kubelet_version: str = ""
    #: Marks of a host: ports of the local proxy that the kubelet's kubeconfig names instead of the API server, and a file.
    ports: tuple[int, ...] = ()
    marker: str = ""
    #: Where an agent that replaces the kubelet takes its settings from.
    kubelet_hint: str = ""
    #: Pods stay on a node that cannot be reached: on all nodes, or on those with one of the annotations.
    keeps_pods: bool = False
    keeping_annotations: tuple[str, ...] = ()
    #: What a user has to know, a clause each.
    notes: tuple[str, ...] = ()


_NO_LOGS = "logs of its pods may not reach the API server, so that the smoke test then judges a pod by its phase and termination message"

#: A node has the first one of which it has a mark.
FRAMEWORKS: tuple[Framework, ...] = (
    Framework(
        "superedge",
        "SuperEdge",
        labels=(("superedge.io/node-edge", "enable"),),
        ports=(51003,),
        keeps_pods=True,
        notes=(
            "lite-apiserver answers programs on an offline node from its cache, so keep scheduler extenders on cloud nodes (*_extender_node_selector)",
            _NO_LOGS,
            "a node whose Ready condition is Unknown keeps its pods, and is not judged",
        ),
    ),
    Framework(
        "openyurt",
        "OpenYurt",
        labels=(("openyurt.io/is-edge-worker", "true"),),
        ports=(10261, 10268),
        keeping_annotations=("node.openyurt.io/autonomy-duration", "node.beta.openyurt.io/autonomy"),
        notes=(
            "a NodePool overwrites the labels and taints that it names on its nodes, so leave the keys of this collection out of it",
            _NO_LOGS,
        ),
    ),
    Framework(
        "kubeedge",
        "KubeEdge",
        # Its label and taint node-role.kubernetes.io/edge are those of other clusters, too.
        kubelet_version="-kubeedge-",
        marker="/etc/kubeedge/config/edgecore.yaml",
        kubelet_hint="modules.edged.tailoredKubeletConfig in /etc/kubeedge/config/edgecore.yaml, and restart edgecore",
        keeps_pods=True,
        notes=(
            "edgecore replaces the kubelet, whose settings are modules.edged.tailoredKubeletConfig in /etc/kubeedge/config/edgecore.yaml",
            "its nodes have the taint node-role.kubernetes.io/edge, so set gpu_edge_tolerations",
            "pods that call the API server, such as some device plugins, need KubeEdge's metaServer",
            _NO_LOGS,
        ),
    ),
)


def find_framework(labels: t.Mapping[str, str], kubelet_version: str = "", server: str = "") -> str:
    """Return the name of the framework that manages a node; empty for none.

    ``server`` is the URL of the API server in the kubelet's kubeconfig, if the host was read.
    """
    port = _find_port(server)
    for row in FRAMEWORKS:
        labelled = any(labels.get(key) == value for key, value in row.labels)
        reported = bool(row.kubelet_version) and row.kubelet_version in kubelet_version
        if labelled or reported or port in row.ports:
            return row.name
    return ""


def find_agent(exists: t.Callable[[str], bool]) -> str:
    """Return the name of the framework whose agent replaces the kubelet of this host; empty for none."""
    return next((row.name for row in FRAMEWORKS if row.kubelet_hint and exists(row.marker)), "")


def get_framework(name: str) -> Framework:
    """Return the row of this name, and one with empty fields for a name that is in none."""
    return next((row for row in FRAMEWORKS if row.name == name), Framework("", ""))


def keeps_pods(name: str, annotations: t.Mapping[str, str]) -> bool:
    """Return whether pods of a node with these annotations keep running while the API server does not hear from it."""
    row = get_framework(name)
    return row.keeps_pods or any(annotations.get(key) not in (None, "", "false") for key in row.keeping_annotations)


def list_notes(name: str) -> list[str]:
    """Return what a user has to know of a node of this framework, a clause each that names it."""
    row = get_framework(name)
    return [f"{row.title}: {note}" for note in row.notes]


def _find_port(server: str) -> int:
    found = _PORT.match(server)
    return int(found.group(1)) if found else 0
