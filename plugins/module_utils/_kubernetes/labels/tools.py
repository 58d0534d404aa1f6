# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tools that label nodes with features: which of them run in a cluster, what keeps this collection from deploying one, and AMD's labels after it.

The tools are ``nfd`` (node feature discovery), ``gfd`` (NVIDIA's GPU feature discovery) and ``amd_labeller`` (AMD's node labeller).
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Sequence

from ..objects import Object, get_labels, get_name
from .ladder import matches_any
from .record import LabelError, Labels, read_record

TITLES = {"nfd": "Node feature discovery", "gfd": "GPU feature discovery", "amd_labeller": "AMD's node labeller"}
MANAGED_LABEL = "app.kubernetes.io/managed-by"
INSTANCE_LABEL = "app.kubernetes.io/instance"
# Words in the images and commands of the DaemonSets.
_WORDS: Mapping[str, re.Pattern[str]] = {
    "nfd": re.compile(r"nfd-worker|node-feature-discovery"),
    "gfd": re.compile(r"gpu-feature-discovery"),
    "amd_labeller": re.compile(r"k8s-node-labeller|k8s-device-plugin:labeller|amdgpu-labeller"),
}
# What AMD's labeller writes; it removes none of it when it ends.
AMD_LABELS = ("amd.com/gpu.*", "beta.amd.com/gpu.*")
# The labels of AMD's labeller that change with the driver or the partitions, with the entry of the device.
AMD_DRIVER_LABEL, AMD_STYLE_LABEL = "amd.com/gpu.driver-version", "amd.com/gpu.compute-memory-partition"
# Keys of the device plugin's ConfigMap that are the configuration of all nodes.
COMMON_KEYS = ("default", "config.yaml")


class Tool(NamedTuple):
    """A tool that runs in the cluster, and whether this collection has deployed it."""

    name: str
    where: str
    managed: bool


def find_tools(daemon_sets: Iterable[Object], release: str, namespace: str) -> list[Tool]:
    """Return the tools of the DaemonSets. *release* and *namespace* are those of this collection's release of NFD's chart."""
    found = []
    for each in daemon_sets:
        labels, own = get_labels(each), (each.get("metadata") or {}).get("namespace")
        pod = ((each.get("spec") or {}).get("template") or {}).get("spec") or {}
        text = " ".join(_list_words(pod.get("containers") or []))
        for name, words in _WORDS.items():
            if words.search(text):
                of_release = name == "nfd" and (labels.get(INSTANCE_LABEL), own) == (release, namespace)
                managed = of_release or labels.get(MANAGED_LABEL) == "gpu.kubernetes"
                found.append(Tool(name, f"{own}/{get_name(each)}", managed))
    return found


def _list_words(containers: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for each in containers:
        yield str(each.get("image") or "")
        yield from map(str, each.get("command") or [])
        yield from map(str, each.get("args") or [])


def find_conflicts(components: Sequence[str], tools: Iterable[Tool], config_keys: Iterable[str]) -> Iterator[str]:
    """Yield why a component is not deployed: sentences. *config_keys* are the keys of the device plugin's ConfigMap."""
    found = list(tools)
    for tool in found:
        if tool.name in components and not tool.managed:
            yield (
                f"{TITLES[tool.name]} runs already, as DaemonSet {tool.where}, and two of them change each other's labels; remove that one, or take "
                f"{tool.name} out of gpu_feature_discovery_components."
            )
    if "gfd" not in components:
        return
    if "nfd" not in components and not any(tool.name == "nfd" for tool in found):
        yield (
            "GPU feature discovery writes its labels to a file that node feature discovery publishes, which does not run in this cluster; add nfd to "
            "gpu_feature_discovery_components."
        )
    own = sorted(set(config_keys) - set(COMMON_KEYS))
    if own:
        yield (
            f"nodes have configurations of the device plugin of their own ({', '.join(own)}), and GPU feature discovery would label them by that of all "
            "nodes; take gfd out of gpu_feature_discovery_components: the role gpu_node_labels sets the same labels for them."
        )


def find_stale_nodes(nodes: Iterable[Object], devices: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the nodes whose labels of AMD's labeller contradict the facts of the host, so that its pod has to restart.

    The labeller reads driver and partitions once, when it starts. *devices* is the fact ``gpu_devices`` by node.
    """
    return [get_name(node) for node in nodes if _is_stale(get_labels(node), devices.get(get_name(node)) or {})]


def _is_stale(labels: Mapping[str, str], facts: Mapping[str, Any]) -> bool:
    version = ((facts.get("drivers") or {}).get("amdgpu") or {}).get("version")
    styles = {device.get("partition_style") for device in facts.get("devices") or [] if device.get("vendor") == "amd"}
    desired = {AMD_DRIVER_LABEL: version, AMD_STYLE_LABEL: styles.pop() if len(styles) == 1 else ""}
    return any(value and _simplify(labels.get(label, value)) != _simplify(value) for label, value in desired.items())


def _simplify(text: str) -> str:
    """Return the text without what a labeller may change in a value: case, and characters that labels cannot have."""
    return re.sub(r"[^a-z0-9]", "", text.lower())


def list_leftovers(nodes: Iterable[Object]) -> dict[str, Labels]:
    """Return the labels that AMD's labeller has left on nodes, each with None, by node; not those that this collection has recorded as its own."""
    found = {}
    for node in nodes:
        own = _list_recorded(node)
        labels: Labels = {
            label: None for label in get_labels(node) if matches_any(label, AMD_LABELS) and label not in own
        }
        if labels:
            found[get_name(node)] = labels
    return found


def _list_recorded(node: Object) -> set[str]:
    try:
        return {label for labels in read_record(node).values() for label in labels}
    except LabelError:
        # A node whose record cannot be read is left alone.
        return set(get_labels(node))
