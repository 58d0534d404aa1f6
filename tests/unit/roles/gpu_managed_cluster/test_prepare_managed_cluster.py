# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook prepare_managed_cluster on a fake API server with a fake DaemonSet controller: applied, repeated and undone without a host."""

from __future__ import annotations

import copy
import re

import pytest
from fakes import small_cluster
from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

INVENTORY = "[gpu_nodes]\nunreachable.invalid\n"
GPU = "nvidia.com/gpu"
NAME = "nvidia-device-plugin-daemonset"
EXPORTER = ("DaemonSet", "kube-system", "gpu-exporter")
KINDS = {"apiregistration.k8s.io/v1": {"apiservices": ("APIService", False)}}
# Served as in a cluster with the Prometheus Operator.
OPERATOR_KINDS = {
    "monitoring.coreos.com/v1": {
        "prometheuses": ("Prometheus", True),
        "prometheusrules": ("PrometheusRule", True),
        "podmonitors": ("PodMonitor", True),
    },
    "monitoring.coreos.com/v1alpha1": {"scrapeconfigs": ("ScrapeConfig", True)},
}
MARK = {"gpu-kubernetes/device-plugin": "true"}
MONITORING = {"gpu_managed_cluster_monitoring": "operator"}
KARPENTER = {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia", "karpenter.k8s.aws/instance-gpu-name": "a10g"}
#: Nodes by name, with their labels: of a GPU, of AWS alone, with a label of the provider, and without a GPU.
LABELS = {
    "karpenter": KARPENTER,
    "auto": {"eks.amazonaws.com/compute-type": "auto", "eks.amazonaws.com/instance-gpu-manufacturer": "nvidia"},
    "labelled": {**KARPENTER, "accelerator": "provider"},
    "plain": {},
}


def make_cluster():
    objects = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}]
    for name, labels in LABELS.items():
        each = {"apiVersion": "v1", "kind": "Node", **node(name, labels=dict(labels))}
        each["status"]["nodeInfo"] = {"kubeletVersion": "v1.34.1-eks-113cf36", "osImage": "Amazon Linux 2023"}
        each["status"]["addresses"] = [{"type": "InternalIP", "address": "10.0.0.11"}]
        each["spec"]["taints"] = [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]
        objects.append(each)
    cluster = small_cluster.SmallCluster(*objects)
    cluster.react = run_plugin
    return cluster


def run_plugin(cluster):
    """Act as the DaemonSet controller, the kubelets and the plugin, which offers two GPUs on each of its nodes."""
    daemon_set = cluster.objects.get(("DaemonSet", "kube-system", NAME))
    spec = daemon_set["spec"]["template"]["spec"] if daemon_set else {}
    for worker in cluster.all("Node"):
        name = worker["metadata"]["name"]
        pod = ("Pod", "kube-system", f"plugin-{name}")
        tolerated = {each["key"] for each in spec.get("tolerations", [])}
        if daemon_set and "sku" in tolerated and spec["nodeSelector"].items() <= worker["metadata"]["labels"].items():
            template = daemon_set["spec"]["template"]
            cluster.objects[pod] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**template["metadata"], "name": pod[2], "namespace": pod[1], "ownerReferences": [{"name": NAME}]},
                "spec": {**template["spec"], "nodeName": name},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "containerStatuses": [{"name": "x", "ready": True}]},
            }  # fmt: skip
        else:
            cluster.objects.pop(pod, None)
        for kind in ("capacity", "allocatable"):
            worker["status"].setdefault(kind, {})[GPU] = "2" if pod in cluster.objects else "0"


def run_exporter(cluster):
    """Act as the DaemonSet controller and the kubelets of the exporter, too."""
    run_plugin(cluster)
    daemon_set = cluster.objects.get(EXPORTER)
    spec = daemon_set["spec"]["template"]["spec"] if daemon_set else {}
    names = [
        worker["metadata"]["name"]
        for worker in cluster.all("Node")
        if daemon_set and spec["nodeSelector"].items() <= worker["metadata"]["labels"].items()
    ]
    for name in LABELS:
        cluster.objects.pop(("Pod", "kube-system", f"exporter-{name}"), None)
    for name in names:
        cluster.objects["Pod", "kube-system", f"exporter-{name}"] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"exporter-{name}", "namespace": "kube-system", "labels": daemon_set["spec"]["template"]["metadata"]["labels"], "uid": name},
            "spec": {"nodeName": name, "containers": []},
            "status": {"phase": "Running"},
        }  # fmt: skip
    if daemon_set:
        counts = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
        daemon_set["status"] = {
            "observedGeneration": daemon_set["metadata"]["generation"],
            **dict.fromkeys(counts, len(names)),
        }


@pytest.fixture
def operator(monkeypatch):
    """A cluster with the kinds of the Prometheus Operator and with the namespace of its objects."""
    monkeypatch.setattr(small_cluster, "KINDS", {**small_cluster.KINDS, **OPERATOR_KINDS})
    cluster = make_cluster()
    cluster.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}})
    cluster.react = run_exporter
    return cluster


@pytest.fixture
def prepare(run, tmp_path, monkeypatch):
    """Run the playbook against an API server: exit code, and output in one line."""
    monkeypatch.setattr(small_cluster, "KINDS", {**small_cluster.KINDS, **KINDS})

    def play(server, *options, **extra):
        code, output = run(
            INVENTORY,
            ROOT / "playbooks" / "prepare_managed_cluster.yml",
            *options,
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
            gpu_managed_cluster_timeout=60,
            **extra,
        )
        return code, " ".join(output.split())

    return play


def read_labels(server):
    return {each["metadata"]["name"]: each["metadata"]["labels"] for each in server.all("Node")}


def test_labels_plugin_and_monitoring_are_applied_by_the_api_alone_and_undone(prepare, operator):
    with serve_in_thread(operator) as server:
        code, output = prepare(server, **MONITORING)
        assert code == 0, output
        assert "unreachable.invalid" not in output
        assert "No device plugin is deployed on auto, since the device plugin is owned by AWS." in output
        assert "No exporter is deployed on auto, since GPUs are visible there only to pods that request them" in output
        check_labels(server, {**MARK, "gpu-kubernetes/exporter": "true"})
        check_plugin(server)
        check_exporter(server)
        before = copy.deepcopy(server.objects)
        code, output = prepare(server, **MONITORING)
        assert (code, server.objects) == (0, before), output
        assert "changed=0" in output
        # The undo needs no variable of what was deployed.
        code, output = prepare(server, gpu_managed_cluster_state="absent")
        assert (code, read_labels(server)) == (0, LABELS), output
        assert {kind for kind, _namespace, _name in server.objects} == {"Namespace", "Node"}


def check_labels(server, marks):
    assert read_labels(server) == {
        "karpenter": {**KARPENTER, "accelerator": "a10g", **marks},
        "auto": LABELS["auto"],
        "labelled": {**LABELS["labelled"], **marks},
        "plain": {},
    }


def check_plugin(server):
    spec = server.objects["DaemonSet", "kube-system", NAME]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == MARK
    assert {"key": "sku", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    # The nodes' default runtime is that of NVIDIA.
    assert "runtimeClassName" not in spec


def check_exporter(server):
    spec = server.objects[EXPORTER]["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"gpu-kubernetes/exporter": "true"}
    assert {"key": "sku", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    # The nodes' default runtime is that of NVIDIA.
    assert "runtimeClassName" not in spec
    [monitor], [rule] = server.all("PodMonitor"), server.all("PrometheusRule")
    assert rule["spec"]["groups"]
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["kube-system"]}
    assert (
        monitor["spec"]["selector"]["matchLabels"].items()
        <= server.objects[EXPORTER]["spec"]["template"]["metadata"]["labels"].items()
    )
    [port] = spec["containers"][0]["ports"]
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == port["name"]
    assert server.all("ScrapeConfig") == []


@pytest.mark.thorough
def test_check_mode_predicts_monitoring_and_changes_nothing(prepare, operator):
    with serve_in_thread(operator) as server:
        before = copy.deepcopy(server.objects)
        code, output = prepare(server, "--check", **MONITORING)
        assert (code, server.objects) == (0, before), output
        for task in ("Set the label of nodes that get the exporter", "Apply the managed objects"):
            assert re.search(rf"{task}\] \*+ changed", output), output


@pytest.mark.thorough
def test_cluster_without_monitoring_and_its_operator_is_prepared_and_undone(prepare):
    with serve_in_thread(make_cluster()) as server:
        code, output = prepare(server)
        assert (code, EXPORTER in server.objects) == (0, False), output
        check_labels(server, MARK)
        code, output = prepare(server, gpu_managed_cluster_state="absent")
        assert (code, read_labels(server)) == (0, LABELS), output
        assert {kind for kind, _namespace, _name in server.objects} == {"Namespace", "Node"}


@pytest.mark.thorough
def test_cluster_without_known_gpus_is_refused_before_a_change(prepare):
    cluster = make_cluster()
    for each in cluster.all("Node"):
        each["metadata"]["labels"] = {}
    with serve_in_thread(cluster) as server:
        before = copy.deepcopy(server.objects)
        code, output = prepare(server)
        assert (code != 0, server.objects) == (True, before)
        assert "so set gpu_managed_cluster_node_selector to a label that all your nodes with GPUs have" in output


@pytest.mark.thorough
def test_exporter_that_needs_hosts_is_refused_before_a_change(prepare):
    with serve_in_thread(make_cluster()) as server:
        before = copy.deepcopy(server.objects)
        code, output = prepare(server, gpu_managed_cluster_monitoring="exporter", gpu_exporter_method="archive")
        assert (code != 0, server.objects) == (True, before)
        assert "gpu_exporter_method is archive, which needs the hosts, so leave it out or set it to daemonset" in output
