# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Feature discovery on a cluster in memory: what is deployed, refused, restarted and removed. The release of NFD's chart is not."""

from __future__ import annotations

import json
import re

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

NAMESPACE = "node-feature-discovery"
DRIVER = "amd.com/gpu.driver-version"
RECORD = json.dumps({"gpu_node_labels": {"amd.com/gpu.family": {"set": "AI", "was": None}}})
LABELS = {
    "nvidia.com/gpu.present": "true",
    "gpu-kubernetes/amd.present": "true",
    DRIVER: "6.12",
    "amd.com/gpu.family": "AI",
}
NFD = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "nfd-worker", "namespace": "others", "labels": {}},
    "spec": {"template": {"spec": {"containers": [{"image": "example.com/node-feature-discovery:v0.19.0"}]}}},
}


def run_controllers(cluster):
    """Each DaemonSet of the role has a ready pod on the node, of a name with a number that counts on; the pods of a removed one go."""
    own = {key[2]: item for key, item in cluster.objects.items() if key[:2] == ("DaemonSet", NAMESPACE)}
    for key in [
        key
        for key, item in cluster.objects.items()
        if key[0] == "Pod" and item["metadata"]["labels"]["name"] not in own
    ]:
        del cluster.objects[key]
    for name, daemon_set in own.items():
        counts = ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady")
        daemon_set["status"] = {"observedGeneration": daemon_set["metadata"]["generation"], **dict.fromkeys(counts, 1)}
        if any(pod["metadata"]["labels"]["name"] == name for pod in cluster.all("Pod")):
            continue
        cluster.started.append(name)
        pod = f"{name}-{len(cluster.started)}"
        labels = daemon_set["spec"]["template"]["metadata"]["labels"]
        cluster.objects["Pod", NAMESPACE, pod] = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": pod, "namespace": NAMESPACE, "labels": labels, "uid": pod},
            "spec": {"nodeName": "w1", "containers": []},
            "status": {"phase": "Running"},
        }


@pytest.fixture
def cluster():
    item = {
        "apiVersion": "v1",
        "kind": "Node",
        **node("w1", labels=dict(LABELS), annotations={"gpu-kubernetes/managed-labels": RECORD}),
    }
    with serve_in_thread(SmallCluster(item)) as server:
        server.started = []
        server.react = run_controllers
        yield server


@pytest.fixture
def apply(run, cluster, tmp_path):
    """Run the role on the host of the node: exit code, number of changed tasks, output in one line."""
    kubeconfig = str(write_kubeconfig(cluster.url, tmp_path / "kubeconfig"))

    def play(*options, version="6.12", **variables):
        path = tmp_path / "play.yml"
        path.write_text(
            json.dumps([{"hosts": "all", "gather_facts": False, "roles": ["gpu.kubernetes.gpu_feature_discovery"]}])
        )
        devices = {"vendors": ["amd"], "devices": [], "drivers": {"amdgpu": {"version": version}}}
        common = {
            "ansible_connection": "local",
            "ansible_become": False,
            "gpu_kubeconfig": kubeconfig,
            "gpu_devices": devices,
        }
        inventory = {"all": {"hosts": {"w1": {"gpu_node_name": "w1"}}, "vars": {**common, **variables}}}
        code, output = run(inventory, path, *options)
        changed = sum(int(number) for number in re.findall(r"\bchanged=(\d+)", output))
        return code, changed, " ".join(output.split())

    return play


EDGE = [{"key": "node-role.kubernetes.io/edge", "operator": "Exists", "effect": "NoSchedule"}]
COMPONENTS = {"gpu_feature_discovery_components": ["gfd", "amd_labeller"]}


def test_gfd_without_nfd_is_refused_before_any_change(apply, cluster):
    code, changed, output = apply(**COMPONENTS)
    assert (code, changed, cluster.all("DaemonSet")) == (2, 0, []), output
    assert "add nfd to gpu_feature_discovery_components" in output


def test_tools_are_deployed_restarted_and_removed(apply, cluster):
    cluster.put(NFD)
    before = json.loads(json.dumps(cluster.all("DaemonSet")))
    code, _changed, output = apply(**COMPONENTS, gpu_edge_tolerations=EDGE)
    assert code == 0, output
    assert sorted(cluster.started) == ["amd-gpu-node-labeller", "gpu-feature-discovery"]
    amd, gfd = (
        cluster.objects["DaemonSet", NAMESPACE, name]["spec"]["template"]["spec"] for name in sorted(cluster.started)
    )
    assert (gfd["automountServiceAccountToken"], gfd["nodeSelector"]) == (False, {"nvidia.com/gpu.present": "true"})
    assert gfd["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert gfd["containers"][0]["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.20.1"
    assert amd["nodeSelector"] == {"gpu-kubernetes/amd.present": "true"}
    assert {"-vram", "-driver-version", "-product-name"} <= set(amd["containers"][0]["args"])
    assert {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in amd["tolerations"]
    assert all(EDGE[0] in spec["tolerations"] for spec in (amd, gfd))
    (role,) = cluster.all("ClusterRole")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch", "update"]}]

    code, changed, output = apply("--check", **COMPONENTS, gpu_edge_tolerations=EDGE)
    assert (code, changed) == (0, 0), output
    # The labels have the driver of the labeller's start.
    code, changed, output = apply(version="6.14", **COMPONENTS, gpu_edge_tolerations=EDGE)
    assert (code, changed, cluster.started[2:]) == (0, 1, ["amd-gpu-node-labeller"]), output

    # The tools and their labels are those of all nodes.
    code, changed, output = apply("--limit", "w1", gpu_feature_discovery_state="absent", **COMPONENTS)
    assert (code, changed) == (0, 0), output
    assert "KEPT: gfd, amd_labeller" in output
    assert len(cluster.all("DaemonSet")) == len(before) + 2

    code, _changed, output = apply(gpu_feature_discovery_state="absent", **COMPONENTS)
    assert code == 0, output
    assert [item["metadata"]["name"] for item in cluster.all("DaemonSet")] == [
        item["metadata"]["name"] for item in before
    ]
    assert [cluster.all(kind) for kind in ("ClusterRole", "ConfigMap", "Namespace", "Pod", "ServiceAccount")] == [
        []
    ] * 5
    # The label of gpu_node_labels stays.
    (item,) = cluster.all("Node")
    assert item["metadata"]["labels"] == {name: value for name, value in LABELS.items() if name != DRIVER}
