# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tools label the nodes of a cluster, and which of them this collection may deploy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import RECORD_ANNOTATION
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.tools import (
    find_conflicts,
    find_stale_nodes,
    find_tools,
    list_leftovers,
)


def daemon_set(name: str, labels: Any = None, namespace: str = "tools", **container: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": [{"image": "registry.k8s.io/pause"}, container]}}}
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": spec}


MANAGED = {"app.kubernetes.io/managed-by": "gpu.kubernetes"}
RELEASE = {"app.kubernetes.io/instance": "nfd", "app.kubernetes.io/managed-by": "Helm"}
NFD = {"image": "registry.k8s.io/nfd/node-feature-discovery:v0.19.0", "command": ["nfd-worker"]}
GFD = {"image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.1", "command": ["gpu-feature-discovery"]}
LABELLER = {"image": "rocm/k8s-device-plugin:labeller-latest"}
PLUGIN = {"image": "nvcr.io/nvidia/k8s-device-plugin:v0.20.1", "command": ["nvidia-device-plugin"]}


@pytest.mark.parametrize(
    ("labels", "namespace", "container", "found"),
    [
        (None, "tools", PLUGIN, []),
        (None, "tools", {"image": "rocm/k8s-device-plugin"}, []),
        (RELEASE, "tools", NFD, [("nfd", True)]),
        # A release of that name in another namespace, and the chart of NVIDIA's operator.
        (RELEASE, "other", NFD, [("nfd", False)]),
        ({"app.kubernetes.io/instance": "gpu-operator"}, "tools", NFD, [("nfd", False)]),
        (MANAGED, "tools", GFD, [("gfd", True)]),
        (None, "gpu-operator", GFD, [("gfd", False)]),
        (MANAGED, "tools", LABELLER, [("amd_labeller", True)]),
        (None, "kube-amd-gpu", {"command": ["./k8s-node-labeller"]}, [("amd_labeller", False)]),
    ],
)
def test_find_tools_by_image_or_command(labels: Any, namespace: str, container: Any, found: list[Any]) -> None:
    tools = find_tools([daemon_set("x", labels, namespace, **container)], "nfd", "tools")
    assert [(tool.name, tool.managed) for tool in tools] == found
    assert {tool.where for tool in tools} <= {f"{namespace}/x"}


@pytest.mark.parametrize(
    ("components", "tools", "keys", "words"),
    [
        (["nfd", "gfd", "amd_labeller"], [], ["default"], []),
        (["nfd", "gfd"], [(RELEASE, NFD), (MANAGED, GFD)], ["config.yaml"], []),
        (["gfd"], [(None, NFD)], [], []),
        ([], [(None, NFD), (None, GFD)], ["mine"], []),
        (["nfd"], [(None, NFD)], [], ["Node feature discovery runs already, as DaemonSet tools/x"]),
        (["nfd", "gfd"], [(None, GFD)], [], ["GPU feature discovery runs already"]),
        (["amd_labeller"], [(None, LABELLER)], [], ["take amd_labeller out of gpu_feature_discovery_components"]),
        (["gfd"], [], [], ["add nfd to gpu_feature_discovery_components"]),
        (["nfd", "gfd"], [], ["default", "time_slicing-4-0a1b2c3d"], ["(time_slicing-4-0a1b2c3d)"]),
    ],
)
def test_find_conflicts_has_a_sentence_for_each(
    components: list[str], tools: list[Any], keys: list[str], words: list[str]
) -> None:
    found = find_tools([daemon_set("x", labels, **container) for labels, container in tools], "nfd", "tools")
    sentences = list(find_conflicts(components, found, keys))
    assert (
        [part in sentence for part, sentence in zip(words, sentences)] == [True] * len(sentences) == [True] * len(words)
    )


DRIVER, STYLE = "amd.com/gpu.driver-version", "amd.com/gpu.compute-memory-partition"


@pytest.mark.parametrize(
    ("labels", "version", "styles", "stale"),
    [
        ({DRIVER: "6.14", STYLE: "spx_nps1"}, "6.14", ["spx_nps1"], False),
        ({DRIVER: "6.14-1", STYLE: "SPX_NPS1"}, "6.14+1", ["spx_nps1"], False),
        ({DRIVER: "6.12"}, "6.14", [""], True),
        ({STYLE: "spx_nps1"}, "", ["cpx_nps4", "cpx_nps4"], True),
        # The labeller does not write these labels here, or the values are not single ones.
        ({}, "6.14", ["cpx_nps4"], False),
        ({DRIVER: ""}, "", ["cpx_nps4"], False),
        ({STYLE: "spx_nps1"}, "", ["spx_nps1", "cpx_nps4"], False),
    ],
)
def test_find_stale_nodes_by_driver_and_partitions(labels: Any, version: str, styles: list[str], stale: bool) -> None:
    devices = [{"vendor": "amd", "partition_style": style} for style in styles]
    facts = {"drivers": {"amdgpu": {"version": version}}, "devices": [*devices, {"vendor": "intel"}]}
    nodes = [{"metadata": {"name": name, "labels": labels}} for name in ("here", "beyond-the-run")]
    assert find_stale_nodes(nodes, {"here": facts}) == (["here"] if stale else [])


def test_list_leftovers_keeps_managed_labels() -> None:
    labels = {
        "amd.com/gpu.vram": "64G",
        "amd.com/gpu.family": "AI",
        "beta.amd.com/gpu.family.AI": "1",
        "amd.com/other": "1",
    }
    record = json.dumps({"gpu_node_labels": {"amd.com/gpu.vram": {"set": "64G", "was": None}}})
    nodes = [
        {"metadata": {"name": "ours", "labels": labels, "annotations": {RECORD_ANNOTATION: record}}},
        {"metadata": {"name": "damaged", "labels": {"amd.com/gpu.vram": "1"}, "annotations": {RECORD_ANNOTATION: "["}}},
        {"metadata": {"name": "none", "labels": {"a": "b"}}},
    ]
    assert list_leftovers(nodes) == {
        "ours": {"amd.com/gpu.family": None, "beta.amd.com/gpu.family.AI": None},
    }
