# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state for the plan of sharing strategies is read once, and only the parts that hosts require."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import read_sharing_state
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request, build_config

FOLDER = [{"name": "d", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]
GPUSHARE, MAINTENANCE = {"gpushare": "true"}, "gpu-kubernetes/maintenance"


def reason(text: str) -> dict[str, str]:
    return {MAINTENANCE: json.dumps({"was_schedulable": True, "reason": text, "since": ""})}


def slices(*names: str) -> Any:
    found = [{"spec": {"driver": "gpu.nvidia.com", **({"nodeName": name} if name else {})}} for name in names]
    return lambda *_kind, fields: found if fields == "spec.driver=gpu.nvidia.com" else []


def test_hosts_of_nvidias_plugin_require_two_lists_and_what_the_operator_deploys() -> None:
    cluster = FakeCluster([node("w1", 2), node("w2", labels=dict(GPUSHARE))], [pod("a", on="w1", gpus=1)])
    state = read_sharing_state(cluster, {"w1": "", "w9": "exclusive"})
    assert cluster.calls == ["nodes", "pods", "cluster_policies", "gpu_clusters"]
    assert [(row["name"], row["known"], row["gpu_allocated"]) for row in state.nodes] == [
        ("w1", True, {"nvidia.com/gpu": 1}),
        ("w9", False, {}),
    ]
    assert state.labelled == {"mps": [], "gpushare": ["w2"], "nano_gpu": []}
    assert (state.claimed, state.schedulers) == ([], [])


def test_configurations_are_read_if_a_node_names_one() -> None:
    name, label = "mps-4-0123abcd", "nvidia.com/device-plugin.config"
    cluster = FakeCluster([node("w1", 2, labels={label: name}), node("w2", labels={label: "mine"}), node("w3")])
    document = {"version": "v1", "sharing": {"mps": {"resources": []}}}
    data = {name: json.dumps(document), "mps-2-00000000": "{", "mine": json.dumps(document), "default": "version: v1"}
    requested = []

    def objects(*kind: str, **more: Any) -> Any:
        requested.append((kind, more["labels"]["app.kubernetes.io/managed-by"]))
        return [{"data": data}, {}]

    cluster.objects = objects
    state = read_sharing_state(cluster, {"w3": ""})
    assert state.config_names == {"w1": name, "w2": "mine"}
    assert state.configs == {name: document}
    assert state.labelled["mps"] == ["w1"]
    assert requested == [(("v1", "ConfigMap"), "gpu.kubernetes")]


@pytest.mark.parametrize("exists", [True, False])
def test_configurations_of_the_gpu_operator_are_read_from_its_config_map(exists: bool) -> None:
    config = build_config({}, STRATEGIES["mps"], Request(4))
    label = "nvidia.com/device-plugin.config"
    off = {"nvidia.com/gpu.deploy.device-plugin": "false"}
    nodes = [node("w1", labels={label: config.name}), node("w2", labels={label: config.name, **off}), node("w3")]
    cluster = FakeCluster(nodes)
    cluster.policies = [{"spec": {"devicePlugin": {"config": {"name": "configs"}}}, "status": {"namespace": "nvidia"}}]
    data = {
        config.name: json.dumps(config.document),
        "mps-9-00000000": json.dumps({"version": "v1"}),
        "mps-9-00000001": "{",
        "a100": "version: v1",
    }
    requested = []

    def objects(*kind: str, **more: Any) -> Any:
        requested.append((*kind, *more))
        return [{"data": data}] if exists and "labels" not in more else []

    cluster.objects = objects  # type: ignore[method-assign]
    state = read_sharing_state(cluster, {"w1": "", "w2": ""})
    assert state.operator is not None
    assert state.operator.configs == ({config.name: config.document} if exists else None)
    # Its own device plugin has neither these configurations nor these nodes.
    assert (state.config_names, state.labelled["mps"]) == ({"w2": config.name}, ["w2"])
    # Feature discovery of the operator reads the key also where its device plugin does not run.
    assert state.operator.config_names == {"w1": config.name, "w2": config.name, "w3": ""}
    assert (config.name in state.configs) is exists
    assert requested == [("v1", "ConfigMap", "labels"), ("v1", "ConfigMap", "configs", "nvidia")]
    assert [("device_plugin" in row["gpu_operator"]) for row in state.nodes] == [True, False]


@pytest.mark.parametrize(("declared", "labels"), [("gpushare", {}), ("", GPUSHARE)])
def test_plugins_excluded_by_the_label_are_not_staying(declared: str, labels: dict[str, str]) -> None:
    """The DaemonSet controller writes only the name of the node into the affinity of its pods."""
    excluded = {"matchExpressions": [{"key": "gpushare", "operator": "NotIn", "values": ["true"]}]}
    own_node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}

    def require(term: Any) -> Any:
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}

    plugin = {
        "on": "w1",
        "image": "nvcr.io/nvidia/k8s-device-plugin:v1",
        "volumes": FOLDER,
        "affinity": require(own_node),
    }
    pods = [pod(name, namespace="x", owner=name, **plugin) for name in ("leaves", "stays")]
    cluster = FakeCluster([node("w1", 8, labels=dict(labels))], pods)
    cluster.daemon_set_list = [
        {"metadata": {"name": name, "namespace": "x"}, "spec": {"template": {"spec": spec}}}
        for name, spec in (("leaves", {"affinity": require(excluded)}), ("stays", {}))
    ]
    cluster.objects = slices("w9", "", "w1", "w1")  # type: ignore[method-assign]
    state = read_sharing_state(cluster, {"w1": declared})
    [row] = state.nodes
    assert row["staying_plugins"]["gpushare"] == ["x/stays"]
    assert cluster.calls == ["nodes", "pods", "cluster_policies", "gpu_clusters", "daemon_sets"]
    assert state.claimed == ["w1", "w9"]


@pytest.mark.parametrize(("status", "passes"), [(404, True), (403, False)])
def test_missing_resource_slices_are_accepted_and_errors_are_not(status: int, passes: bool) -> None:
    cluster = FakeCluster([node("w1")])

    def refuse(*_kind: str, fields: str) -> Any:
        raise ApiError("refused", status)

    cluster.objects = refuse  # type: ignore[method-assign]
    if passes:
        assert read_sharing_state(cluster, {"w1": "gpushare"}).claimed == []
    else:
        with pytest.raises(ApiError):
            read_sharing_state(cluster, {"w1": "gpushare"})


@pytest.mark.parametrize(
    ("annotations", "found"),
    [({}, ""), (reason("driver 580"), "driver 580"), ({MAINTENANCE: "{"}, ""), ({MAINTENANCE: "[]"}, "")],
)
def test_reason_of_the_maintenance_is_in_the_row(annotations: dict[str, str], found: str) -> None:
    [row] = read_sharing_state(FakeCluster([node("w1", annotations=annotations)]), {"w1": ""}).nodes
    assert (row["maintenance"] or {"reason": ""})["reason"] == found


def test_labels_of_node_feature_discovery_are_in_the_row() -> None:
    annotations = {"nfd.node.kubernetes.io/feature-labels": "cpu-model.id,nvidia.com/mps.capable"}
    nodes = [node("w1", annotations=annotations), node("w2")]
    rows = read_sharing_state(FakeCluster(nodes), {"w1": "", "w2": "", "w9": ""}).nodes
    names = {"feature.node.kubernetes.io/cpu-model.id", "nvidia.com/mps.capable"}
    assert [row["published_labels"] for row in rows] == [names, set(), set()]


def test_only_static_pods_are_kube_schedulers() -> None:
    scheduler = {"namespace": "kube-system", "labels": {"component": "kube-scheduler"}}
    mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}}
    pods = [
        pod("kube-scheduler-cp2", on="cp2", **scheduler, **mirror),
        pod("kube-scheduler-cp1", on="cp1", **scheduler, **mirror),
        pod("second", on="w1", **scheduler),
        pod("other", on="w1", namespace="kube-system", labels={"component": "etcd"}, **mirror),
        pod("elsewhere", on="w1", labels={"component": "kube-scheduler"}, **mirror),
    ]
    assert read_sharing_state(FakeCluster([node("w1")], pods), {"w1": ""}).schedulers == ["cp1", "cp2"]
